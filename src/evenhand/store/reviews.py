"""What reviewers said: submitted, shown to whom it may be shown, settled by a lead, and collected for agreement."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.reviews import (
    Form,
    ItemStatus,
    NextItem,
    Review,
    Reviewed,
    ReviewItem,
    ReviewQueue,
    Shown,
    Submitted,
    unsettled,
)
from evenhand.core.timestamps import format_instant, now
from evenhand.store.annotations import create_annotation
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import MOST_BYTES, Cut, oldest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.review_queues import NewItem, get_queue, judge_values, left_for, put_off, reserve
from evenhand.store.traces import raw, root_values

_ITEM = (
    "id, queue_id, target_type, target_id, other_id, target_key, review_count, is_open, flag, rank, weight"
)
_REVIEW = "id, item_id, annotator, answers, adjudication, annotation_id, created_at, reviewer_id"
_WHY = {
    "oldest": "It has waited longest.",
    "random": "It was drawn at random.",
    "informative": "A label here narrows the corrected mean most.",
}


class Reviewer(Struct, frozen=True, kw_only=True):
    """Who reviews."""

    id: str
    """A person's id, a token's, or one made of the name that a program gave."""
    name: str
    """What their annotations carry."""
    sees_all: bool
    """Whether nothing is withheld: leads and programs that may read."""


class ReviewContent(Struct, frozen=True, kw_only=True):
    """What a reviewer or a lead says about an item."""

    answers: dict[str, Any]
    """By field of the queue's form."""
    correction: str | None = None
    """What should have come out, as JSON text."""
    notes: str | None = None
    """Anything else."""


def next_item(connection: Connection, queue_id: str, reviewer: Reviewer, *, scope: Scope) -> NextItem:
    """Hand out an item."""
    queue = get_queue(connection, queue_id, scope=scope)
    found = reserve(connection, queue, reviewer.id)
    left = left_for(connection, queue, reviewer.id)
    if found is None:
        return NextItem(item=None, reserved_until=None, left=left)
    item_id, until = found
    item = _view(connection, queue, _item(connection, queue, item_id), reviewer)
    return NextItem(
        item=item, reserved_until=format_instant(datetime.fromtimestamp(until / 1000, UTC)), left=left
    )


def read_item(
    connection: Connection, queue_id: str, item_id: str, reviewer: Reviewer, *, scope: Scope
) -> ReviewItem:
    """One item, without what is still withheld from the reviewer."""
    queue = get_queue(connection, queue_id, scope=scope)
    return _view(connection, queue, _item(connection, queue, item_id), reviewer)


def list_items(
    connection: Connection,
    queue_id: str,
    reviewer: Reviewer,
    *,
    status: ItemStatus | None,
    scope: Scope,
    after: str | None,
    limit: int,
) -> list[ReviewItem]:
    """In the order they were added."""
    queue = get_queue(connection, queue_id, scope=scope)
    found: list[ReviewItem] = []
    length = 0
    while True:
        rows = connection.all(
            f"SELECT {_ITEM} FROM review_items WHERE {oldest_first('queue_id', 'id')}",  # noqa: S608  constant columns
            queue_id, after or "", queue_id, limit,
        )  # fmt: skip
        for row in rows:
            view = _view(connection, queue, row, reviewer)
            if status is None or view.status == status:
                length += sum(len(text) for one in view.shown for text in (one.input, one.output) if text)
                if length > MOST_BYTES and found:
                    return Cut(found)
                found.append(view)
                if len(found) == limit:
                    return found
        if len(rows) < limit:
            return found
        after = rows[-1][0]


def submit(
    connection: Connection,
    queue_id: str,
    item_id: str,
    reviewer: Reviewer,
    content: ReviewContent,
    *,
    scope: Scope,
) -> Submitted:
    """Store a review. `CONFLICT` for a second one of the same reviewer, and for an item that has all it needs."""
    queue = get_queue(connection, queue_id, scope=scope)
    row = _item(connection, queue, item_id)
    if connection.one(
        "SELECT 1 FROM reviews WHERE item_id = ? AND adjudication = 0 AND reviewer_id = ?",
        item_id,
        reviewer.id,
    ):
        raise Refusal("CONFLICT", "You have reviewed this item already.", {"item_id": item_id})
    # The row is taken before anything is written: of two who submit the last review at once, one is refused.
    taken = connection.run(
        "UPDATE review_items SET review_count = review_count + 1,"
        " is_open = CASE WHEN review_count + 1 >= ? THEN 0 ELSE 1 END WHERE id = ? AND is_open = 1",
        queue.reviewers_per_item,
        item_id,
    )
    if not taken:
        raise Refusal("CONFLICT", "This item has all the reviews that it needs.", {"item_id": item_id})
    review = _store(connection, queue, row, reviewer, content, adjudication=False)
    row = _item(connection, queue, item_id)
    if not row[7]:
        connection.run("UPDATE review_queues SET done_count = done_count + 1 WHERE id = ?", queue_id)
    connection.run(
        "DELETE FROM review_reservations WHERE item_id = ? AND reviewer_id = ?", item_id, reviewer.id
    )
    return Submitted(review=review, item=_view(connection, queue, row, reviewer))


def adjudicate(
    connection: Connection,
    queue_id: str,
    item_id: str,
    reviewer: Reviewer,
    content: ReviewContent,
    *,
    scope: Scope,
) -> Submitted:
    """Settle an item: this answer counts in the place of the reviewers'. A later one replaces it."""
    queue = get_queue(connection, queue_id, scope=scope)
    row = _item(connection, queue, item_id)
    if not row[6]:
        raise Refusal("CONFLICT", "Nobody has reviewed this item yet.", {"item_id": item_id})
    connection.run("DELETE FROM reviews WHERE item_id = ? AND adjudication = 1", item_id)
    review = _store(connection, queue, row, reviewer, content, adjudication=True)
    return Submitted(review=review, item=_view(connection, queue, row, reviewer))


def skip(
    connection: Connection, queue_id: str, item_id: str, reviewer: Reviewer, *, scope: Scope
) -> NextItem:
    """Put an item off and hand out another one."""
    queue = get_queue(connection, queue_id, scope=scope)
    _item(connection, queue, item_id)
    put_off(connection, queue, item_id, reviewer.id)
    return next_item(connection, queue_id, reviewer, scope=scope)


def flag(
    connection: Connection, queue_id: str, item_id: str, reviewer: Reviewer, *, reason: str, scope: Scope
) -> ReviewItem:
    """Mark an item for the lead; it stays in the queue."""
    queue = get_queue(connection, queue_id, scope=scope)
    _item(connection, queue, item_id)
    connection.run(
        "UPDATE review_items SET flag = ? WHERE id = ?", f"{reviewer.name}: {reason}"[:2_000], item_id
    )
    return _view(connection, queue, _item(connection, queue, item_id), reviewer)


def _item(connection: Connection, queue: ReviewQueue, item_id: str) -> Row:
    row = connection.one(f"SELECT {_ITEM} FROM review_items WHERE id = ?", item_id)  # noqa: S608  constant columns
    if row is None or row[1] != queue.id:
        raise not_found("item", item_id)
    return row


def _store(
    connection: Connection,
    queue: ReviewQueue,
    item: Row,
    reviewer: Reviewer,
    content: ReviewContent,
    *,
    adjudication: bool,
) -> Review:
    correction, notes = content.correction, content.notes
    given = dict(content.answers)
    if correction is not None:
        given["correction"] = msgspec.json.decode(correction)
    if notes:
        given["notes"] = notes
    if not given:
        raise Refusal("EMPTY_ANNOTATION", "Please provide at least a label, correction, or notes.")
    annotation_id = None
    headline = queue.form.headline
    label = None if headline is None else content.answers.get(headline.name)
    says_something = label is not None or correction is not None or bool(notes)
    if item[2] == "trace" and says_something and _trace_exists(connection, item[3], queue.project_id):
        annotation_id = create_annotation(
            connection,
            scope=queue.project_id,
            project_id=queue.project_id,
            trace_id=item[3],
            span_id=None,
            annotator=reviewer.name,
            label=None if label is None else str(label),
            correction=correction,
            notes=notes,
        ).id
    row = (
        new_id(), item[0], reviewer.name, encode_text(given), int(adjudication), annotation_id, format_instant(now()),
        reviewer.id, queue.id,
    )  # fmt: skip
    connection.run(
        f"INSERT INTO reviews ({_REVIEW}, queue_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        *row,
    )
    return _review(row)


def _trace_exists(connection: Connection, trace_id: str, project_id: str) -> bool:
    return (
        connection.one("SELECT 1 FROM traces WHERE id = ? AND project_id = ?", trace_id, project_id)
        is not None
    )


def _view(connection: Connection, queue: ReviewQueue, row: Row, reviewer: Reviewer) -> ReviewItem:
    reviews = [
        (_review(one), one[7])
        for one in connection.all(
            f"SELECT {_REVIEW} FROM reviews WHERE item_id = ? ORDER BY adjudication, id",  # noqa: S608  constant columns
            row[0],
        )
    ]
    submitted = any(reviewer.id == by for review, by in reviews if not review.adjudication)
    withheld = queue.blind and not reviewer.sees_all and not submitted
    item = NewItem(target_type=row[2], target_id=row[3], other_id=row[4])
    said = [review for review, _ in reviews]
    return ReviewItem(
        id=row[0],
        queue_id=row[1],
        target_type=row[2],
        target_id=row[3],
        other_id=row[4],
        shown=_shown(connection, row, queue.project_id),
        review_count=0 if withheld else row[6],
        status="open" if withheld else _status(queue.form, row, said),
        why=_WHY[queue.pick],
        reviews=[] if withheld else said,
        judge=None if withheld else judge_values(connection, queue, [item]).get(item.key),
        withheld=withheld,
    )


def _status(form: Form, row: Row, reviews: list[Review]) -> ItemStatus:
    if row[8] is not None:
        return "flagged"
    if row[7]:
        return "open"
    return "disagreed" if unsettled(form, reviews) else "done"


def _shown(connection: Connection, row: Row, project_id: str) -> list[Shown]:
    if row[2] == "trace":
        found = connection.one(
            "SELECT trace_key FROM traces WHERE id = ? AND project_id = ?", row[3], project_id
        )
        # A root without texts shows those of its first model call here too.
        root = None if found is None else root_values(connection, [found[0]]).get(found[0])
        given, output = (None, None) if root is None else (root.input, root.output)
        return [Shown(input=given, output=output, trace_id=row[3])]
    return [_shown_run(connection, run_id) for run_id in (row[3], row[4]) if run_id is not None]


def _shown_run(connection: Connection, run_id: str) -> Shown:
    found = connection.one(
        "SELECT i.input, r.output, r.trace_id FROM runs r LEFT JOIN dataset_items i ON i.id = r.dataset_item_id"
        " WHERE r.id = ?",
        run_id,
    )
    given, output, trace_id = found or (None, None, None)
    return Shown(input=raw(given), output=raw(output), trace_id=trace_id, run_id=run_id)


def _review(row: Row) -> Review:
    return Review(
        id=row[0],
        item_id=row[1],
        annotator=row[2],
        answers=msgspec.json.decode(row[3]),
        adjudication=bool(row[4]),
        annotation_id=row[5],
        created_at=row[6],
    )


def read_for_agreement(
    connection: Connection, queue_id: str, *, scope: Scope
) -> tuple[ReviewQueue, list[Reviewed]]:
    """The queue and all its items with reviews and the judge's values."""
    queue = get_queue(connection, queue_id, scope=scope)
    rows = connection.all(
        f"SELECT {_ITEM} FROM review_items WHERE queue_id = ? ORDER BY queue_id, id",  # noqa: S608  constant columns
        queue_id,
    )
    reviews: dict[str, list[Review]] = {}
    for row in connection.all(
        f"SELECT {_REVIEW} FROM reviews WHERE queue_id = ? ORDER BY queue_id, id",  # noqa: S608  constant columns
        queue_id,
    ):
        reviews.setdefault(row[1], []).append(_review(row))
    items = [NewItem(target_type=row[2], target_id=row[3], other_id=row[4]) for row in rows]
    judged = judge_values(connection, queue, items)
    return queue, [
        Reviewed(
            item_id=row[0],
            rank=row[9],
            weight=row[10],
            judge=judged.get(item.key),
            reviews=reviews.get(row[0], []),
        )
        for row, item in zip(rows, items, strict=True)
    ]


def withheld_annotations(
    connection: Connection, trace_id: str, *, project_id: str, reviewer_id: str
) -> set[str]:
    """Annotations of a trace that blind queues keep from a reviewer: those of items that they have not reviewed."""
    key = NewItem(target_type="trace", target_id=trace_id).key
    rows = connection.all(
        "SELECT r.annotation_id FROM review_queues q JOIN review_items i ON i.queue_id = q.id AND i.target_key = ?"
        " JOIN reviews r ON r.item_id = i.id"
        " WHERE q.project_id = ? AND q.reviewers_per_item > 1 AND r.annotation_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM reviews own WHERE own.item_id = i.id AND own.adjudication = 0 AND own.reviewer_id = ?)",
        key,
        project_id,
        reviewer_id,
    )
    return {row[0] for row in rows}
