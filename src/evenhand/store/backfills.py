"""Rules applied to stored spans: step by step, each step's jobs and its place in one transaction.

A step reads without holding up anybody, then writes only if no other server took the same step meanwhile. A killed
server's backfill goes on where its last commit left it.
"""

from typing import NamedTuple

from msgspec import Struct

from evenhand.core.ids import new_id
from evenhand.core.objects.jobs import Backfill, Rule
from evenhand.core.spans import SpanRecord
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.jobs import NewJob, add_jobs
from evenhand.store.pages import LAST, newest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.scoring_rules import get_rule, matches, sampled

_COLUMNS = (
    "id, project_id, rule_id, status, trace_count, job_count, created_at, updated_at, position, end_key"
)
TRACES = 100
"""Traces of one step."""
MOST_OPEN = 1_000
"""Open jobs of a rule at which its backfill waits, so that new spans' jobs do not stand behind millions of old ones."""


class Step(NamedTuple):
    """What one step found."""

    backfill_id: str
    """Whose step it is."""
    position: str
    """Where it began: it counts only while the backfill is still there."""
    last: str | None
    """The last trace that it looked at; None at the end."""
    trace_count: int
    """How many traces it looked at."""
    jobs: list[NewJob]
    """For the spans that match."""


class Asked(Struct, frozen=True, kw_only=True):
    """A backfill to be made."""

    rule_id: str
    """The rule."""
    start_key: str = ""
    """The least trace key."""
    end_key: str | None = None
    """The key before which it ends; None for the traces that are there now."""


def create_backfill(connection: Connection, asked: Asked, *, scope: Scope) -> Backfill:
    """For a rule that the caller sees."""
    rule = get_rule(connection, asked.rule_id, scope=scope)
    stamp, backfill_id = format_instant(now()), new_id()
    # Its id is as new as the newest trace key: what comes later is the rule's own business.
    end = min(asked.end_key or LAST, backfill_id)
    connection.run(
        "INSERT INTO backfills (id, project_id, rule_id, status, position, end_key, trace_count, job_count, created_at,"
        " updated_at) VALUES (?, ?, ?, 'running', ?, ?, 0, 0, ?, ?)",
        backfill_id,
        rule.project_id,
        rule.id,
        asked.start_key,
        end,
        stamp,
        stamp,
    )
    return get_backfill(connection, backfill_id, scope=scope)


def get_backfill(
    connection: Connection, backfill_id: str, *, scope: Scope, rule_id: str | None = None
) -> Backfill:
    row = connection.one(f"SELECT {_COLUMNS} FROM backfills WHERE id = ?", backfill_id)  # noqa: S608  constant columns
    if row is None or scope not in (None, row[1]) or rule_id not in (None, row[2]):
        raise not_found("backfill", backfill_id)
    return _backfill(row)


def list_backfills(
    connection: Connection, rule_id: str, *, scope: Scope, before: str | None, limit: int
) -> list[Backfill]:
    """Newest first."""
    get_rule(connection, rule_id, scope=scope)
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM backfills WHERE {newest_first('rule_id', 'id')}",  # noqa: S608  constant texts
        rule_id,
        before or LAST,
        rule_id,
        limit,
    )
    return [_backfill(row) for row in rows]


def cancel_backfill(connection: Connection, rule_id: str, backfill_id: str, *, scope: Scope) -> Backfill:
    """Stop it; jobs that it made stay. One that has ended stays as it is."""
    get_backfill(connection, backfill_id, scope=scope, rule_id=rule_id)
    connection.run(
        "UPDATE backfills SET status = 'cancelled', updated_at = ? WHERE id = ? AND status = 'running'",
        format_instant(now()),
        backfill_id,
    )
    return get_backfill(connection, backfill_id, scope=scope)


def next_step(connection: Connection, after: str = "") -> Step | None:
    """The next step of the oldest running backfill with an id past `after`; None when there is none.

    A backfill whose rule has enough open jobs has a step that does nothing."""
    row = connection.one(
        f"SELECT {_COLUMNS} FROM backfills WHERE status = 'running' AND id > ? ORDER BY id LIMIT 1",  # noqa: S608  constant columns
        after,
    )
    if row is None:
        return None
    backfill_id, project_id, rule_id, position, end = row[0], row[1], row[2], row[8], row[9]
    rule = get_rule(connection, rule_id, scope=project_id)
    [(waiting,)] = connection.all(
        "SELECT COUNT(*) FROM (SELECT 1 FROM jobs WHERE project_id = ? AND status = 'pending' AND rule_id = ?"
        " ORDER BY project_id, status, id LIMIT ?) AS open_jobs",
        project_id,
        rule_id,
        MOST_OPEN,
    )
    if waiting >= MOST_OPEN:
        return Step(backfill_id, position, position, 0, [])
    traces = connection.all(
        "SELECT trace_key, id FROM traces WHERE (project_id, trace_key) > (?, ?) AND (project_id, trace_key) < (?, ?)"
        " ORDER BY project_id, trace_key LIMIT ?",
        project_id,
        position,
        project_id,
        end,
        TRACES,
    )
    wanted = {key: trace_id for key, trace_id in traces if sampled(trace_id, rule.sample_rate)}
    last = traces[-1][0] if len(traces) == TRACES else None
    return Step(backfill_id, position, last, len(traces), _jobs(connection, rule, wanted))


def _jobs(connection: Connection, rule: Rule, traces: dict[str, str]) -> list[NewJob]:
    rows = connection.look_up(
        "trace_key, id, parent_span_id, name, start_us, duration_ms, model, metadata, error",
        "FROM spans WHERE trace_key IN [?]",
        list(traces),
    )()
    return [
        NewJob(
            project_id=rule.project_id,
            target_type="span",
            target_id=row[1],
            trace_key=row[0],
            scorer_name=rule.scorer_name,
            config=bytes(rule.config).decode(),
            rule_id=rule.id,
        )
        for row in sorted(rows)
        if matches(rule.filter, _record(row, traces[row[0]]))
    ]


def _record(row: Row, trace_id: str) -> SpanRecord:
    """What a rule's filter looks at; texts are not read."""
    return SpanRecord(
        trace_id=trace_id,
        id=row[1],
        parent_span_id=row[2],
        name=row[3],
        start_us=row[4],
        duration_ms=row[5],
        model=row[6],
        metadata=row[7],
        error=row[8],
    )


def take_step(connection: Connection, step: Step) -> int:
    """Store a step's jobs and how far it came; nothing when another server took it. The number of jobs."""
    row = connection.one(
        "SELECT rule_id FROM backfills WHERE id = ? AND status = 'running' AND position = ?",
        step.backfill_id,
        step.position,
    )
    if row is None or not (step.trace_count or step.last is None):
        return 0
    known = set(
        connection.look_up(
            "trace_key, target_id",
            "FROM jobs WHERE rule_id = ? AND trace_key IN [?]",
            row[0],
            sorted({job.trace_key or "" for job in step.jobs}),
        )()
        if step.jobs
        else ()
    )
    fresh = [job for job in step.jobs if (job.trace_key, job.target_id) not in known]
    add_jobs(connection, fresh)
    connection.run(
        "UPDATE backfills SET position = ?, status = ?, trace_count = trace_count + ?, job_count = job_count + ?,"
        " updated_at = ? WHERE id = ?",
        step.position if step.last is None else step.last,
        "completed" if step.last is None else "running",
        step.trace_count,
        len(fresh),
        format_instant(now()),
        step.backfill_id,
    )
    return len(fresh)


def _backfill(row: Row) -> Backfill:
    return Backfill(
        id=row[0],
        project_id=row[1],
        rule_id=row[2],
        status=row[3],
        trace_count=row[4],
        job_count=row[5],
        created_at=row[6],
        updated_at=row[7],
    )
