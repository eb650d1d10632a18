"""Jobs: claimed with a lease, ended only by whoever holds it."""

import time
from collections.abc import Iterable

from msgspec import Raw, Struct

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.jobs import Job, JobAccepted, JobsRetried, JobStatus
from evenhand.core.outcome import Status
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST, as_cut, bounded_rows, newest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.targets import Material, Target, TargetName, find_runs, find_target, read_material

_COLUMNS = (
    "id, status, target_id, target_type, scorer_name, config, rule_id, attempts, error, message, reply, score_id, "
    "created_at, updated_at, project_id, outcome"
)
_NEWEST_FIRST = newest_first("project_id", "id", limited=False)
MANY = 1_000
"""How many failed jobs one request has tried again."""
_INSERT = """INSERT INTO jobs (id, project_id, target_type, target_id, trace_key, scorer_name, config, rule_id, status,
    attempts, open_at, created_at, updated_at, rationale, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?, ?, ?)"""


class JobRequest(Struct, frozen=True, kw_only=True):
    """The score that a job computes, as a request describes it."""

    scorer_name: str
    """The scorer."""
    config: str
    """JSON text of its parameters."""
    rationale: str | None = None
    """Why, if the caller said."""
    metadata: str | None = None
    """A JSON object as text."""


class NewJob(Struct, frozen=True, kw_only=True):
    """A score to be computed."""

    project_id: str
    """Where the target belongs."""
    target_type: str
    """`run` or `span`."""
    target_id: str
    """The run or span."""
    trace_key: str | None = None
    """The span's trace; a span's id alone may be ambiguous."""
    scorer_name: str
    """The scorer."""
    config: str
    """JSON text of its parameters."""
    rule_id: str | None = None
    """The online rule that asks."""
    rationale: str | None = None
    """Why, if the caller said."""
    metadata: str | None = None
    """The score's own metadata: a JSON object as text."""


class Claim(Struct, frozen=True, kw_only=True):
    """A job that this process may work on until its lease runs out."""

    job_id: str
    """The job."""
    lease: str
    """Proves the claim."""
    project_id: str
    """Where the target belongs."""
    target_type: str
    """`run` or `span`."""
    target_id: str
    """The run or span."""
    trace_key: str | None
    """The span's trace."""
    scorer_name: str
    """The scorer."""
    config: str
    """JSON text of its parameters."""
    rationale: str | None
    """Why, if the caller said."""
    metadata: str | None
    """The score's own metadata: a JSON object as text."""
    attempts: int
    """This one included."""


def milliseconds() -> int:
    """The clock of leases."""
    return time.time_ns() // 1_000_000


def add_jobs(connection: Connection, jobs: Iterable[NewJob]) -> list[str]:
    """Their ids. They are durable together with whatever else the transaction holds."""
    stamp, open_at = format_instant(now()), milliseconds()
    rows = [
        (
            new_id(), job.project_id, job.target_type, job.target_id, job.trace_key, job.scorer_name, job.config,
            job.rule_id, open_at, stamp, stamp, job.rationale, job.metadata,
        )
        for job in jobs
    ]  # fmt: skip
    if rows:
        connection.run_many(_INSERT, rows)
    return [row[0] for row in rows]


def add_requested(connection: Connection, asked: Iterable[tuple[Target, JobRequest]]) -> list[str]:
    """The ids of jobs for targets that are known to exist."""
    return add_jobs(
        connection,
        (
            NewJob(
                project_id=target.project_id,
                target_type=target.type,
                target_id=target.id,
                trace_key=target.trace_key,
                scorer_name=request.scorer_name,
                config=request.config,
                rationale=request.rationale,
                metadata=request.metadata,
            )
            for target, request in asked
        ),
    )


def request_job(connection: Connection, name: TargetName, request: JobRequest) -> JobAccepted:
    """A new job; `NOT_FOUND` when its target does not exist."""
    target = find_target(connection, name)
    [job_id] = add_requested(connection, [(target, request)])
    return JobAccepted(job_id=job_id, status="pending")


def any_claimable(connection: Connection) -> bool:
    """Whether there is anything to claim: a look that needs no turn of the writer."""
    row = connection.one(
        "SELECT 1 FROM jobs WHERE open_at IS NOT NULL AND open_at <= ? LIMIT 1", milliseconds()
    )
    return row is not None


def claim_jobs(connection: Connection, *, limit: int, lease_ms: int) -> list[Claim]:
    """Take open jobs, those whose lease ran out included."""
    moment = milliseconds()
    rows = connection.all(
        "SELECT id, project_id, target_type, target_id, trace_key, scorer_name, config, attempts, rationale,"
        " metadata FROM jobs"
        " WHERE open_at IS NOT NULL AND open_at <= ? ORDER BY open_at, id LIMIT ?",
        moment,
        limit,
    )
    if not rows:
        return []
    lease, stamp = new_id(), format_instant(now())
    connection.run(
        "UPDATE jobs SET status = 'running', lease = ?, open_at = ?, attempts = attempts + 1, updated_at = ?"
        " WHERE id IN [?]",
        lease,
        moment + lease_ms,
        stamp,
        [row[0] for row in rows],
    )
    return [
        Claim(
            job_id=row[0],
            lease=lease,
            project_id=row[1],
            target_type=row[2],
            target_id=row[3],
            trace_key=row[4],
            scorer_name=row[5],
            config=row[6],
            attempts=row[7] + 1,
            rationale=row[8],
            metadata=row[9],
        )
        for row in rows
    ]


def keep_claims(connection: Connection, claims: Iterable[Claim], *, lease_ms: int) -> None:
    """Put off the end of leases that are still held."""
    for claim in claims:
        connection.run(
            "UPDATE jobs SET open_at = ? WHERE id = ? AND lease = ? AND open_at IS NOT NULL",
            milliseconds() + lease_ms,
            claim.job_id,
            claim.lease,
        )


def holds(connection: Connection, claim: Claim) -> bool:
    """Whether the job is still ours to end."""
    row = connection.one(
        "SELECT 1 FROM jobs WHERE id = ? AND lease = ? AND open_at IS NOT NULL", claim.job_id, claim.lease
    )
    return row is not None


def end_job(
    connection: Connection,
    claim: Claim,
    *,
    status: JobStatus,
    outcome: Status,
    error: str | None = None,
    message: str | None = None,
    reply: str | None = None,
    score_id: str | None = None,
) -> None:
    """Close the job; the caller has checked `holds` in this transaction."""
    connection.run(
        "UPDATE jobs SET status = ?, outcome = ?, error = ?, message = ?, reply = ?, score_id = ?, open_at = NULL,"
        " lease = NULL, updated_at = ? WHERE id = ?",
        status,
        outcome,
        error,
        message,
        reply,
        score_id,
        format_instant(now()),
        claim.job_id,
    )


def reopen_job(
    connection: Connection,
    claim: Claim,
    *,
    delay_ms: int,
    error: str | None = None,
    message: str | None = None,
) -> None:
    """Give the job back, to be claimed again after a while."""
    connection.run(
        "UPDATE jobs SET status = 'pending', lease = NULL, open_at = ?, error = ?, message = ?, updated_at = ?"
        " WHERE id = ? AND lease = ? AND open_at IS NOT NULL",
        milliseconds() + delay_ms,
        error,
        message,
        format_instant(now()),
        claim.job_id,
        claim.lease,
    )


def target_of(connection: Connection, claim: Claim) -> Target | None:
    """What the job is about; None when it is gone."""
    if claim.target_type == "run":
        return find_runs(connection, [claim.target_id]).get(claim.target_id)
    row = connection.one(
        "SELECT 1 FROM spans WHERE trace_key = ? AND id = ?", claim.trace_key, claim.target_id
    )
    if row is None:
        return None
    return Target(type="span", id=claim.target_id, project_id=claim.project_id, trace_key=claim.trace_key)


def material_of(connection: Connection, claim: Claim) -> Material | None:
    """What the scorer looks at; None when the target is gone."""
    target = target_of(connection, claim)
    return None if target is None else read_material(connection, [target])[0]


def get_job(connection: Connection, job_id: str, *, scope: Scope) -> Job:
    row = connection.one(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", job_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[14] != scope):
        raise not_found("job", job_id)
    return _job(row)


def list_jobs(
    connection: Connection, *, project_id: str, status: JobStatus | None, before: str | None, limit: int
) -> list[Job]:
    """Newest first."""
    if status is None:
        narrow, values = _NEWEST_FIRST, [project_id, before or LAST, project_id]
    else:
        narrow = (
            "(project_id, status, id) < (?, ?, ?) AND (project_id, status) >= (?, ?)"
            " ORDER BY project_id DESC, status DESC, id DESC"
        )
        values = [project_id, status, before or LAST, project_id, status]
    texts = ("config", "message", "reply")
    rows = bounded_rows(connection, _COLUMNS, texts, f"FROM jobs WHERE {narrow}", values, limit)
    return as_cut(rows, [_job(row) for row in rows])


def retry_job(connection: Connection, job_id: str, *, scope: Scope) -> Job:
    """Have a failed job tried again, with a fresh budget of attempts; `CONFLICT` for one that has not failed."""
    job = get_job(connection, job_id, scope=scope)
    if job.status != "failed":
        raise Refusal(
            "CONFLICT", f"The job is {job.status}; only failed ones are tried again.", {"status": job.status}
        )
    _reopen(connection, [job_id])
    return get_job(connection, job_id, scope=scope)


def retry_failed(
    connection: Connection, *, project_id: str, scorer_name: str | None, rule_id: str | None
) -> JobsRetried:
    """The same for a project's failed jobs, oldest first, `MANY` of them at once."""
    rows = connection.all(
        "SELECT id FROM jobs WHERE project_id = ? AND status = 'failed' AND (? = '' OR scorer_name = ?)"
        " AND (? = '' OR rule_id = ?) ORDER BY project_id, status, id LIMIT ?",
        project_id,
        scorer_name or "",
        scorer_name or "",
        rule_id or "",
        rule_id or "",
        MANY + 1,
    )
    ids = [row[0] for row in rows[:MANY]]
    if ids:
        _reopen(connection, ids)
    return JobsRetried(retried_count=len(ids), more=len(rows) > MANY)


def _reopen(connection: Connection, ids: list[str]) -> None:
    connection.run(
        "UPDATE jobs SET status = 'pending', attempts = 0, lease = NULL, open_at = ?, error = NULL, message = NULL,"
        " reply = NULL, outcome = NULL, updated_at = ? WHERE id IN [?]",
        milliseconds(),
        format_instant(now()),
        ids,
    )


def open_job_count(connection: Connection) -> int:
    """Jobs that wait or run."""
    row = connection.one("SELECT COUNT(*) FROM jobs WHERE open_at IS NOT NULL")
    return int(row[0]) if row else 0


def _job(row: Row) -> Job:
    return Job(
        job_id=row[0],
        status=row[1],
        target_id=row[2],
        target_type=row[3],
        scorer_name=row[4],
        config=Raw(row[5].encode()),
        rule_id=row[6],
        attempts=row[7],
        error=row[8],
        message=row[9],
        reply=row[10],
        score_id=row[11],
        created_at=row[12],
        updated_at=row[13],
        outcome=row[15],
    )


def open_jobs(connection: Connection) -> list[tuple[str, int, str]]:
    """Of the jobs that have not ended: status, number, and when the oldest was made."""
    return [
        (row[0], int(row[1]), row[2])
        for row in connection.all(
            "SELECT status, COUNT(*), MIN(created_at) FROM jobs WHERE open_at IS NOT NULL GROUP BY status"
        )
    ]
