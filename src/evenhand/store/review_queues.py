"""Review queues and their items: made, listed, handed out to reviewers with a reservation."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.reviews import (
    Form,
    ItemsAdded,
    JudgeSaid,
    Pick,
    QueueProgress,
    ReviewerCount,
    ReviewQueue,
    ReviewTarget,
    label_weight,
)
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST, newest_first
from evenhand.store.people import milliseconds
from evenhand.store.projects import Owner, Scope, not_found, require_project
from evenhand.store.targets import find_runs
from evenhand.store.traces import find_trace

MAX_ITEMS = 100_000
"""Items of one queue."""
_QUEUE = (
    "id, project_id, name, description, form, reviewers_per_item, reserve_seconds, pick, judge_scorer, item_count,"
    " done_count, created_at, closed_at"
)


class NewQueue(Struct, frozen=True, kw_only=True):
    """A queue to be made."""

    name: str
    description: str | None
    form: Form
    reviewers_per_item: int
    reserve_seconds: int
    pick: Pick
    judge_scorer: str | None


class NewItem(Struct, frozen=True, kw_only=True):
    """An item to be added."""

    target_type: ReviewTarget
    target_id: str
    other_id: str | None = None

    @property
    def key(self) -> str:
        """The target in one text."""
        return encode_text([self.target_type, self.target_id, self.other_id])


def create_queue(connection: Connection, *, owner: Owner, queue: NewQueue) -> ReviewQueue:
    """`CONFLICT` when the project has a queue of this name."""
    require_project(connection, owner.project_id, scope=owner.scope, may_create=owner.may_create)
    if connection.one(
        "SELECT 1 FROM review_queues WHERE project_id = ? AND name = ?", owner.project_id, queue.name
    ):
        raise Refusal("CONFLICT", f"There is a queue '{queue.name}' already.", {"field": "name"})
    queue_id = new_id()
    connection.run(
        f"INSERT INTO review_queues ({_QUEUE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, NULL)",  # noqa: S608  constant columns
        queue_id,
        owner.project_id,
        queue.name,
        queue.description,
        encode_text(msgspec.to_builtins(queue.form)),
        queue.reviewers_per_item,
        queue.reserve_seconds,
        queue.pick,
        queue.judge_scorer,
        format_instant(now()),
    )
    return get_queue(connection, queue_id, scope=owner.project_id)


def get_queue(connection: Connection, queue_id: str, *, scope: Scope) -> ReviewQueue:
    row = connection.one(f"SELECT {_QUEUE} FROM review_queues WHERE id = ?", queue_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("queue", queue_id)
    return _queue(row)


def list_queues(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[ReviewQueue]:
    """Newest first."""
    rows = connection.all(
        f"SELECT {_QUEUE} FROM review_queues WHERE {newest_first('project_id', 'id')}",  # noqa: S608  constant columns
        project_id, before or LAST, project_id, limit,
    )  # fmt: skip
    return [_queue(row) for row in rows]


def queue_progress(connection: Connection, queue_id: str, *, scope: Scope) -> QueueProgress:
    """A queue with what each reviewer has done."""
    queue = get_queue(connection, queue_id, scope=scope)
    reviewers = connection.all(
        "SELECT annotator, COUNT(*) FROM reviews WHERE queue_id = ? AND adjudication = 0"
        " GROUP BY annotator ORDER BY COUNT(*) DESC, annotator LIMIT 200",
        queue_id,
    )
    counts = connection.one(
        "SELECT COALESCE(SUM(is_open), 0), COALESCE(SUM(CASE WHEN flag IS NULL THEN 0 ELSE 1 END), 0)"
        " FROM review_items WHERE queue_id = ?",
        queue_id,
    )
    assert counts is not None
    return QueueProgress(
        **{name: getattr(queue, name) for name in ReviewQueue.__struct_fields__},
        reviewers=[ReviewerCount(annotator=name, review_count=int(count)) for name, count in reviewers],
        open_count=int(counts[0]),
        flagged_count=int(counts[1]),
    )


def set_closed(connection: Connection, queue_id: str, *, closed: bool, scope: Scope) -> ReviewQueue:
    """Stop or go on handing out items."""
    queue = get_queue(connection, queue_id, scope=scope)
    if closed != (queue.closed_at is not None):
        stamp = format_instant(now()) if closed else None
        connection.run("UPDATE review_queues SET closed_at = ? WHERE id = ?", stamp, queue_id)
    return get_queue(connection, queue_id, scope=scope)


def add_items(
    connection: Connection,
    queue_id: str,
    items: Sequence[NewItem],
    *,
    scope: Scope,
    experiment_id: str | None = None,
) -> ItemsAdded:
    """Put traces, runs, pairs or all runs of an experiment into a queue; those that it has already stay as they are."""
    queue = get_queue(connection, queue_id, scope=scope)
    if experiment_id is not None:
        runs = runs_of_experiment(connection, experiment_id, project_id=queue.project_id)
        items = [*items, *(NewItem(target_type="run", target_id=run_id) for run_id in runs)]
    _require_targets(connection, items, project_id=queue.project_id)
    wanted = {item.key: item for item in items}
    known = {
        row[0]
        for row in connection.look_up(
            "target_key",
            "FROM review_items WHERE queue_id = ? AND target_key IN [?]",
            queue_id,
            sorted(wanted),
        )()
    }
    fresh = [item for key, item in wanted.items() if key not in known]
    if queue.item_count + len(fresh) > MAX_ITEMS:
        raise Refusal("INVALID_REQUEST", f"A queue has at most {MAX_ITEMS:,} items.", {"field": "items"})
    rows = _new_rows(connection, queue, fresh)
    if rows:
        connection.run_many(
            "INSERT INTO review_items (id, queue_id, target_type, target_id, other_id, target_key, sort_key, rank,"
            " weight, is_open, review_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, ?)",
            rows,
        )
        connection.run(
            "UPDATE review_queues SET item_count = item_count + ? WHERE id = ?", len(rows), queue_id
        )
    return ItemsAdded(added=len(rows), already=len(wanted) - len(rows))


def _new_rows(connection: Connection, queue: ReviewQueue, items: Sequence[NewItem]) -> list[Row]:
    """The rows of new items. The weight of an item is fixed here: a weight that followed later scores would make the
    reviewed items no sample of the queue."""
    judged = judge_values(connection, queue, items) if queue.pick == "informative" else {}
    stamp = format_instant(now())
    draws = random.SystemRandom()
    rows = []
    for item in items:
        said = judged.get(item.key)
        value = said.value if said is not None and isinstance(said.value, float) else 0.5
        weight = label_weight(value) if queue.pick == "informative" else 1.0
        item_id, rank = new_id(), draws.random() / weight
        sort_key = item_id if queue.pick == "oldest" else f"{rank:020.15f}"
        rows.append(
            (
                item_id,
                queue.id,
                item.target_type,
                item.target_id,
                item.other_id,
                item.key,
                sort_key,
                rank,
                weight,
                stamp,
            )
        )
    return rows


def judge_values(
    connection: Connection, queue: ReviewQueue, items: Sequence[NewItem]
) -> dict[str, JudgeSaid]:
    """The newest score of the queue's judge for each item that has one, by the item's key."""
    if queue.judge_scorer is None:
        return {}
    found: dict[str, JudgeSaid] = {}
    runs = {item.target_id: item.key for item in items if item.target_type == "run"}
    for ids in _chunks(sorted(runs)):
        rows = connection.look_up(
            "target_id, id, number, label, rationale, canonical_name, scorer_version",
            # Ids of runs are unique in the database. With the project, PostgreSQL would read all scores of the scorer
            # for each of them.
            "FROM scores WHERE target_id IN [?] AND target_type = 'run' AND scorer_name = ?",
            ids,
            queue.judge_scorer,
        )()
        found.update(_newest(rows, runs, queue.judge_scorer))
    traces = {item.target_id: item.key for item in items if item.target_type == "trace"}
    for ids in _chunks(sorted(traces)):
        roots = {
            row[0]: (row[1], row[2])
            for row in connection.look_up(
                "trace_key, id, root_span_id",
                "FROM traces WHERE id IN [?] AND project_id = ?",
                ids,
                queue.project_id,
            )()
        }
        rows = connection.look_up(
            "trace_key, id, number, label, rationale, canonical_name, scorer_version, target_id",
            "FROM scores WHERE trace_key IN [?] AND scorer_name = ?",
            sorted(roots),
            queue.judge_scorer,
        )()
        of_roots = [(roots[row[0]][0], *row[1:7]) for row in rows if row[7] == roots[row[0]][1]]
        found.update(_newest(of_roots, traces, queue.judge_scorer))
    return found


def _newest(rows: Iterable[Row], keys: Mapping[str, str], scorer_name: str) -> dict[str, JudgeSaid]:
    newest: dict[str, Row] = {}
    for row in rows:
        if row[0] not in newest or newest[row[0]][1] < row[1]:
            newest[row[0]] = row
    return {
        keys[target]: JudgeSaid(
            scorer_name=scorer_name,
            value=row[3] if row[2] is None else float(row[2]),
            rationale=row[4],
            version=None if row[5] is None else f"{row[5]} {row[6] or ''}".strip(),
        )
        for target, row in newest.items()
    }


def _chunks(ids: Sequence[str], size: int = 5_000) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def _require_targets(connection: Connection, items: Sequence[NewItem], *, project_id: str) -> None:
    run_ids = {
        target
        for item in items
        if item.target_type != "trace"
        for target in (item.target_id, item.other_id)
        if target is not None
    }
    runs = find_runs(connection, run_ids) if run_ids else {}
    for run_id in sorted(run_ids):
        if run_id not in runs or runs[run_id].project_id != project_id:
            raise not_found("run", run_id)
    for item in items:
        if item.target_type == "trace":
            find_trace(connection, item.target_id, scope=project_id, project_id=project_id)


def runs_of_experiment(connection: Connection, experiment_id: str, *, project_id: str) -> list[str]:
    """The ids of an experiment's runs, in order."""
    row = connection.one("SELECT project_id FROM experiments WHERE id = ?", experiment_id)
    if row is None or row[0] != project_id:
        raise not_found("experiment", experiment_id)
    rows = connection.all(
        "SELECT id FROM runs WHERE experiment_id = ? ORDER BY experiment_id, id LIMIT ?",
        experiment_id,
        MAX_ITEMS + 1,
    )
    return [row[0] for row in rows]


def paired_runs(
    connection: Connection, experiment_id: str, other_id: str, *, project_id: str
) -> list[tuple[str, str]]:
    """The runs of two experiments on the same item and with the same repeat."""
    for one in (experiment_id, other_id):
        row = connection.one("SELECT project_id FROM experiments WHERE id = ?", one)
        if row is None or row[0] != project_id:
            raise not_found("experiment", one)
    rows = connection.all(
        "SELECT a.id, b.id FROM runs a JOIN runs b ON b.experiment_id = ? AND b.dataset_item_id = a.dataset_item_id"
        " AND b.repeat_number = a.repeat_number WHERE a.experiment_id = ? ORDER BY a.id LIMIT ?",
        other_id,
        experiment_id,
        MAX_ITEMS + 1,
    )
    return [(row[0], row[1]) for row in rows]


def reserve(connection: Connection, queue: ReviewQueue, reviewer_id: str) -> tuple[str, int] | None:
    """The id of the next item for a reviewer and until when it is theirs; None when there is nothing for them.

    Whoever asks again before submitting gets the same item. An item is handed out to as many reviewers as it still
    needs; a reservation that has run out counts no more.
    """
    if queue.closed_at is not None:
        return None
    # Locks the queue on PostgreSQL: two servers would otherwise hand out the same last review.
    connection.run("UPDATE review_queues SET item_count = item_count WHERE id = ?", queue.id)
    moment = milliseconds()
    until = moment + 1000 * queue.reserve_seconds
    held = connection.one(
        "SELECT v.item_id FROM review_reservations v JOIN review_items i ON i.id = v.item_id"
        " WHERE v.queue_id = ? AND v.reviewer_id = ? AND v.skipped = 0 AND v.expires_at > ? AND i.is_open = 1"
        " ORDER BY i.sort_key LIMIT 1",
        queue.id,
        reviewer_id,
        moment,
    )
    found = held or connection.one(
        "SELECT i.id FROM review_items i"
        " LEFT JOIN review_reservations own ON own.item_id = i.id AND own.reviewer_id = ?"
        " WHERE i.queue_id = ? AND i.is_open = 1"
        " AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.item_id = i.id AND r.adjudication = 0 AND r.reviewer_id = ?)"
        " AND i.review_count + (SELECT COUNT(*) FROM review_reservations v WHERE v.item_id = i.id"
        " AND v.reviewer_id <> ? AND v.skipped = 0 AND v.expires_at > ?) < ?"
        " ORDER BY COALESCE(own.skipped, 0), i.sort_key LIMIT 1",
        reviewer_id,
        queue.id,
        reviewer_id,
        reviewer_id,
        moment,
        queue.reviewers_per_item,
    )
    if found is None:
        return None
    _keep_reservation(connection, queue.id, found[0], reviewer_id, until=until, skipped=False)
    return found[0], until


def put_off(connection: Connection, queue: ReviewQueue, item_id: str, reviewer_id: str) -> None:
    """The item comes back for this reviewer after all others."""
    _keep_reservation(connection, queue.id, item_id, reviewer_id, until=0, skipped=True)


def _keep_reservation(
    connection: Connection, queue_id: str, item_id: str, reviewer_id: str, *, until: int, skipped: bool
) -> None:
    connection.run(
        "INSERT INTO review_reservations (item_id, reviewer_id, queue_id, expires_at, skipped)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (item_id, reviewer_id)"
        " DO UPDATE SET expires_at = excluded.expires_at, skipped = excluded.skipped",
        item_id,
        reviewer_id,
        queue_id,
        until,
        int(skipped),
    )


def left_for(connection: Connection, queue: ReviewQueue, reviewer_id: str) -> int:
    """How many open items the reviewer has not reviewed."""
    row = connection.one(
        "SELECT COUNT(*) FROM review_items i WHERE i.queue_id = ? AND i.is_open = 1 AND NOT EXISTS"
        " (SELECT 1 FROM reviews r WHERE r.item_id = i.id AND r.adjudication = 0 AND r.reviewer_id = ?)",
        queue.id,
        reviewer_id,
    )
    assert row is not None
    return 0 if queue.closed_at is not None else int(row[0])


def _queue(row: Row) -> ReviewQueue:
    return ReviewQueue(
        id=row[0],
        project_id=row[1],
        name=row[2],
        description=row[3],
        form=msgspec.json.decode(row[4], type=Form),
        reviewers_per_item=row[5],
        reserve_seconds=row[6],
        pick=row[7],
        judge_scorer=row[8],
        item_count=row[9],
        done_count=row[10],
        created_at=row[11],
        closed_at=row[12],
    )
