"""Deleting scores, experiments, projects and old traces, with everything that counts them.

What a request deletes is out of sight when it is answered. Large things go in small steps in the background, each a
transaction of its own, so that other writes never wait for long; a restart goes on with the next step.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from evenhand.core.ids import new_id
from evenhand.core.jsontext import decode, encode_text
from evenhand.core.objects.datasets import Deleted
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import format_instant, now
from evenhand.store.audit import note_deletion
from evenhand.store.connection import Connection, Row
from evenhand.store.experiments import get_experiment
from evenhand.store.projects import Scope, get_project, not_found
from evenhand.store.score_hours import HOUR, HourKey, count_hours_again, take_from_hours
from evenhand.store.score_removal import take_from_totals
from evenhand.store.session_rows import forget_empty
from evenhand.store.span_blocks import forget_empty_blocks
from evenhand.store.texts import forget_texts
from evenhand.store.trace_marks import forget_marks, marks_of
from evenhand.store.trace_totals import TRACE_COLUMNS, take_totals
from evenhand.store.traces import find_trace, key_from

ROWS = 500
"""Rows that one step deletes from a table."""
SPANS = 2_000
"""Spans that one step deletes, or those of one trace."""
STEPS_AT_ONCE = 12
"""Steps that a request waits for: most experiments are gone when it is answered."""
RETENTION = "retention"
_SCORE = "id, project_id, target_type, target_id, experiment_id, dataset_item_id, scorer_name, number, label, created_at"
_TOTALS = {
    "scorer_totals": "experiment_id, scorer_name",
    "label_totals": "experiment_id, scorer_name, label_hash",
    "item_totals": "experiment_id, scorer_name, dataset_item_id",
    "cluster_totals": "experiment_id, scorer_name, score_count, passes",
    "version_totals": "experiment_id, scorer_name, canonical_name, version",
}


def delete_score(connection: Connection, score_id: str, *, scope: Scope, actor: str) -> Deleted:
    """One score; every aggregate is as if it had never been."""
    row = connection.one(
        f"SELECT {_SCORE}, canonical_name, scorer_version FROM scores WHERE id = ?",  # noqa: S608  constant columns
        score_id,
    )
    if row is None or scope not in (None, row[1]):
        raise not_found("score", score_id)
    (
        _,
        project_id,
        target_type,
        target_id,
        experiment_id,
        item_id,
        scorer_name,
        number,
        label,
        stamp,
        *made,
    ) = row
    connection.run("DELETE FROM scores WHERE id = ?", score_id)
    if experiment_id is not None:
        take_from_totals(
            connection,
            (experiment_id, scorer_name),
            item_id=item_id,
            run_id=target_id,
            value=label if number is None else number,
            version=None if made[0] is None else (made[0], made[1] or ""),
        )
    count_hours_again(connection, [HourKey(project_id, scorer_name, stamp[:HOUR])])
    details = {"target_type": target_type, "target_id": target_id, "scorer_name": scorer_name}
    note_deletion(connection, project_id, actor, "score", score_id, details)
    return Deleted(deleted=True, id=score_id)


def delete_experiment(connection: Connection, experiment_id: str, *, scope: Scope, actor: str) -> Deleted:
    """The experiment with its runs and their scores; of a very large one, the rest goes in the background."""
    experiment = get_experiment(connection, experiment_id, scope=scope)
    connection.run("DELETE FROM experiments WHERE id = ?", experiment_id)
    details = {"name": experiment.name, "run_count": experiment.run_count}
    note_deletion(connection, experiment.project_id, actor, "experiment", experiment_id, details)
    removal = _start(connection, experiment.project_id, "experiment", experiment_id)
    for _ in range(STEPS_AT_ONCE):
        if not _step(connection, *removal):
            break
    return Deleted(deleted=True, id=experiment_id)


def delete_project(connection: Connection, project_id: str, *, scope: Scope, actor: str) -> Deleted:
    """The project with everything in it but the record of deletions; its tokens stop working at once."""
    project = get_project(connection, project_id, scope=scope)
    stamp = format_instant(now())
    connection.run("UPDATE projects SET deleted_at = ? WHERE id = ?", stamp, project_id)
    connection.run(
        "UPDATE tokens SET revoked_at = ? WHERE project_id = ? AND revoked_at IS NULL", stamp, project_id
    )
    connection.run(
        "UPDATE people SET revoked_at = ? WHERE project_id = ? AND revoked_at IS NULL", stamp, project_id
    )
    connection.run("DELETE FROM scoring_rules WHERE project_id = ?", project_id)
    note_deletion(connection, project_id, actor, "project", project_id, {"name": project.name})
    _start(connection, project_id, "project", project_id)
    return Deleted(deleted=True, id=project_id)


def _start(connection: Connection, project_id: str, kind: str, object_id: str) -> tuple[str, str, str]:
    removal_id = new_id()
    connection.run(
        "INSERT INTO removals (id, project_id, kind, object_id, created_at) VALUES (?, ?, ?, ?, ?)",
        removal_id,
        project_id,
        kind,
        object_id,
        format_instant(now()),
    )
    return removal_id, kind, object_id


def any_removal(connection: Connection) -> bool:
    """Whether something waits to be deleted: a look that needs no turn of the writer."""
    return connection.one("SELECT 1 FROM removals LIMIT 1") is not None


def remove_more(connection: Connection) -> bool:
    """One step of the oldest removal; whether there is more to do."""
    row = connection.one("SELECT id, kind, object_id FROM removals ORDER BY id LIMIT 1")
    if row is None:
        return False
    _step(connection, *row)
    return True


def _step(connection: Connection, removal_id: str, kind: str, object_id: str) -> bool:
    """Delete a few rows; False when none were left and the removal is done."""
    more = (
        _experiment_step(connection, object_id)
        if kind == "experiment"
        else _project_step(connection, object_id)
    )
    if not more:
        if kind == "project":
            connection.run("DELETE FROM projects WHERE id = ?", object_id)
        connection.run("DELETE FROM removals WHERE id = ?", removal_id)
    return more


def _experiment_step(connection: Connection, experiment_id: str) -> bool:
    runs = [
        row[0]
        for row in connection.all("SELECT id FROM runs WHERE experiment_id = ? LIMIT ?", experiment_id, ROWS)
    ]
    if runs:
        rows = connection.look_up(
            f"{_SCORE}", "FROM scores WHERE target_id IN [?] AND target_type = 'run'", runs
        )()
        _delete_scores(connection, rows)
        connection.run("DELETE FROM runs WHERE id IN [?]", runs)
        return True
    return any(
        connection.run(
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE experiment_id = ? LIMIT ?)",  # noqa: S608  constant texts
            experiment_id,
            ROWS,
        )
        for table, key in _TOTALS.items()
    )


def _delete_scores(connection: Connection, rows: Sequence[Row]) -> None:
    """Scores whose experiment or trace goes too: only the hours count them then."""
    if rows:
        connection.run("DELETE FROM scores WHERE id IN [?]", [row[0] for row in rows])
        take_from_hours(connection, ((row[1], row[6], row[9], row[7]) for row in rows))


_OF_PROJECT = (
    ("annotations", "id"),
    ("jobs", "id"),
    ("backfills", "id"),
    ("shares", "id"),
    ("ab_reports", "id"),
    ("views", "id"),
    ("people", "id"),
    ("tokens", "id"),
    ("sessions", "project_id, id"),
    ("span_texts", "project_id, trace_id, span_id, place, at_ns, digest"),
    ("score_hours", "project_id, scorer_name, hour"),
    ("trace_marks", "project_id, mark, stretch"),
    ("trace_totals", "project_id, stretch"),
)
_OF_QUEUE = (
    ("reviews", "id"),
    ("review_reservations", "item_id, reviewer_id"),
    ("review_items", "id"),
)


def _project_step(connection: Connection, project_id: str) -> bool:
    """Traces first, then experiments, datasets, queues and what is left."""
    if delete_old_traces(connection, project_id, before=None):
        return True
    row = connection.one("SELECT id FROM experiments WHERE project_id = ? LIMIT 1", project_id)
    if row is not None:
        if not _experiment_step(connection, row[0]):
            connection.run("DELETE FROM experiments WHERE id = ?", row[0])
        return True
    row = connection.one("SELECT id FROM datasets WHERE project_id = ? LIMIT 1", project_id)
    if row is not None:
        if not _some(connection, "dataset_items", "id", "dataset_id", row[0]):
            connection.run("DELETE FROM dataset_versions WHERE dataset_id = ?", row[0])
            connection.run("DELETE FROM datasets WHERE id = ?", row[0])
        return True
    row = connection.one("SELECT id FROM review_queues WHERE project_id = ? LIMIT 1", project_id)
    if row is not None:
        if not any(_some(connection, table, key, "queue_id", row[0]) for table, key in _OF_QUEUE):
            connection.run("DELETE FROM review_queues WHERE id = ?", row[0])
        return True
    # Scores whose target was gone before them.
    rows = connection.all(
        f"SELECT {_SCORE} FROM scores WHERE project_id = ? LIMIT ?",  # noqa: S608  constant columns
        project_id,
        ROWS,
    )
    _delete_scores(connection, rows)
    return bool(rows) or any(
        _some(connection, table, key, "project_id", project_id) for table, key in _OF_PROJECT
    )


def _some(connection: Connection, table: str, key: str, owner: str, owner_id: str) -> int:
    """Delete a few rows of an owner; how many. The names are constants of this module."""
    return connection.run(
        f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {owner} = ? LIMIT ?)",  # noqa: S608  constant texts
        owner_id,
        ROWS,
    )


def delete_old_traces(connection: Connection, project_id: str, *, before: str | None) -> int:
    """Delete the oldest traces of a project (those with keys before one), a step's worth; how many."""
    rows = connection.all(
        "SELECT trace_key, span_count, session_id FROM traces WHERE (project_id, trace_key) >= (?, '')"
        " AND (project_id, trace_key) < (?, ?) ORDER BY project_id, trace_key LIMIT ?",
        project_id,
        project_id,
        before or "~",
        ROWS,
    )
    chosen: list[Row] = []
    spans = 0
    for row in rows:
        if chosen and spans + row[1] > SPANS:
            break
        chosen.append(row)
        spans += row[1]
    delete_traces(connection, project_id, [row[0] for row in chosen], [row[2] for row in chosen])
    return len(chosen)


def delete_traces(
    connection: Connection, project_id: str, keys: Sequence[str], sessions: Sequence[str | None]
) -> None:
    """Traces of one project with their spans and the spans' scores. Annotations stay: they are what a person said."""
    if not keys:
        return
    _delete_scores(connection, connection.look_up(_SCORE, "FROM scores WHERE trace_key IN [?]", keys)())
    gone = connection.look_up(
        f"{TRACE_COLUMNS}, id, root_name, facets, models",
        "FROM traces WHERE trace_key IN [?]",
        keys,
    )()
    blocks = connection.look_up(
        "trace_key, block", "FROM spans WHERE trace_key IN [?] GROUP BY trace_key, block", keys
    )()
    connection.run("DELETE FROM spans WHERE trace_key IN [?]", keys)
    connection.run("DELETE FROM traces WHERE trace_key IN [?]", keys)
    forget_empty_blocks(connection, (block for _, block in blocks))
    take_totals(connection, project_id, [row[:8] for row in gone])
    forget_empty(connection, project_id, sessions)
    forget_texts(connection, project_id, [row[8] for row in gone])
    forget_marks(
        connection,
        project_id,
        ((row[0], marks_of(row[9], row[3], row[10], filter(None, row[11].split("\n")))) for row in gone),
    )


def delete_trace(
    connection: Connection, trace_id: str, *, scope: Scope, actor: str, project_id: str | None = None
) -> Deleted:
    """The trace, its spans and their scores."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    delete_traces(connection, row[2], [row[0]], [row[14]])
    note_deletion(connection, row[2], actor, "trace", trace_id, {"span_count": row[6]})
    return Deleted(deleted=True, id=trace_id)


def with_retention(connection: Connection) -> list[tuple[str, int]]:
    """The projects that keep traces for a limited time, and for how many days."""
    return [
        (row[0], row[1])
        for row in connection.all(
            "SELECT id, retain_days FROM projects WHERE retain_days IS NOT NULL AND deleted_at IS NULL ORDER BY id"
        )
    ]


def retain(connection: Connection, project_id: str, days: int, instant: datetime | None = None) -> bool:
    """One step of a project's retention; whether there may be more to do."""
    limit = (instant or now()) - timedelta(days=days)
    traces = delete_old_traces(connection, project_id, before=key_from(microseconds(limit) // 1000))
    jobs = connection.run(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE project_id = ? AND id < ? AND open_at IS NULL"
        " ORDER BY project_id, id LIMIT ?)",
        project_id,
        key_from(microseconds(limit) // 1000),
        ROWS,
    )
    if traces or jobs:
        _note_retention(connection, project_id, traces, jobs)
    return bool(traces or jobs)


def _note_retention(connection: Connection, project_id: str, traces: int, jobs: int) -> None:
    """One entry per project and day counts what went."""
    moment = now()
    day = format_instant(moment)[:10]
    row = connection.one(
        "SELECT id, details FROM audit_log WHERE project_id = ? AND id >= ? AND actor = ? AND object_id = ?"
        " ORDER BY id DESC LIMIT 1",
        project_id,
        key_from(microseconds(moment - timedelta(days=2)) // 1000),
        RETENTION,
        day,
    )
    if row is None:
        details = {"trace_count": traces, "job_count": jobs}
        note_deletion(connection, project_id, RETENTION, "traces", day, details)
        return
    kept = decode(row[1])
    details = {"trace_count": kept["trace_count"] + traces, "job_count": kept["job_count"] + jobs}
    connection.run("UPDATE audit_log SET details = ? WHERE id = ?", encode_text(details), row[0])
