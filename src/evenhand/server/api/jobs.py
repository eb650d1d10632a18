"""Jobs: scores that the service computes outside of a request."""

from functools import partial

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.jobs import Job, JobAccepted, JobsRetried, JobStatus
from evenhand.core.objects.scores import NotScored, Score
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import jobs as store
from evenhand.store.projects import Owner, in_project
from evenhand.store.scores import get_score
from evenhand.store.targets import TargetName

LISTING = "jobs"
MAX_WAIT = 60.0


class JobQuery(Paging, frozen=True, kw_only=True):
    """Whose jobs."""

    project_id: str | None = None
    """The project; required."""
    status: JobStatus | None = None
    """`pending`, `running`, `completed` or `failed`."""


class WaitQuery(Struct, frozen=True, kw_only=True):
    """How long to wait for a job."""

    wait: float | None = None
    """Seconds to wait for a score that a job computes, 60 at most; absent answers 202 at once."""


async def submit_job(
    call: Call, *, target: TargetName, request: store.JobRequest, wait: float | None
) -> Answer:
    """A durable job for a score; with `wait`, the score itself when it is there in time.

    The configuration was checked by the caller.
    """
    if wait is not None and not 0 <= wait <= MAX_WAIT:
        raise Refusal(
            "INVALID_REQUEST", f"'wait' must be between 0 and {MAX_WAIT:g} seconds.", {"field": "wait"}
        )
    answer = await call.write(
        partial(store.request_job, name=target, request=request),
        202,
    )
    call.service.jobs.wake()
    if not wait:
        return answer
    waited = await _waited(call, answer, wait)
    waited.headers += answer.headers
    return waited


async def _waited(call: Call, answer: Answer, wait: float) -> Answer:
    """201 with the score, 200 without one when the job failed, 202 while it goes on."""
    job = await call.service.jobs.wait_for(msgspec.json.decode(answer.body, type=JobAccepted).job_id, wait)
    score_id = job.score_id
    if job.status == "completed" and score_id is not None:
        score: Score = await call.read(lambda connection: get_score(connection, score_id, scope=call.scope))
        return json_answer(score, 201)
    if job.status == "failed":
        reason = job.error or "failed"
        if job.outcome == "unscored":
            return json_answer(NotScored(score=None, reason=reason))
        return json_answer(NotScored(score=None, reason=reason, error=reason, message=job.message))
    return json_answer(JobAccepted(job_id=job.job_id, status=job.status), 202)


async def get(call: Call) -> Answer:
    job_id = call.params["job_id"]
    return json_answer(
        await call.read(lambda connection: store.get_job(connection, job_id, scope=call.scope))
    )


class RetryAsk(Struct, frozen=True, kw_only=True):
    """Which failed jobs are tried again."""

    project_id: Name
    """The project."""
    scorer_name: Name | None = None
    """Only this scorer's."""
    rule_id: Name | None = None
    """Only this rule's."""


async def retry(call: Call) -> Answer:
    answer = await call.write(partial(store.retry_job, job_id=call.params["job_id"], scope=call.scope))
    call.service.jobs.wake()
    return answer


async def retry_many(call: Call, body: RetryAsk) -> Answer:
    retry_failed = partial(
        store.retry_failed,
        project_id=body.project_id,
        scorer_name=body.scorer_name,
        rule_id=body.rule_id,
    )
    owner = Owner(body.project_id, call.scope, may_create=False)
    answer = await call.write(partial(in_project, owner=owner, work=retry_failed))
    call.service.jobs.wake()
    return answer


async def list_all(call: Call, query: JobQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_jobs(
            connection,
            project_id=project_id,
            status=query.status,
            before=after[0] if after else None,
            limit=limit + 1,
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda job: (job.job_id,)))


ROUTES = (
    Route(
        operation="list_jobs",
        method="GET",
        path="/v1/jobs",
        handler=list_all,
        audience="token:read",
        query=JobQuery,
        response=Page[Job],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's jobs, newest first",
        tag="Jobs",
    ),
    Route(
        operation="get_job",
        method="GET",
        path="/v1/jobs/{job_id}",
        handler=get,
        audience="token:read",
        response=Job,
        errors=("NOT_FOUND",),
        summary="Read a job",
        tag="Jobs",
    ),
    Route(
        operation="retry_job",
        method="POST",
        path="/v1/jobs/{job_id}/retry",
        handler=retry,
        audience="token:write",
        response=Job,
        errors=("NOT_FOUND", "CONFLICT"),
        summary="Have a failed job tried again",
        tag="Jobs",
    ),
    Route(
        operation="retry_jobs",
        method="POST",
        path="/v1/jobs/retry",
        handler=retry_many,
        audience="token:write",
        request=RetryAsk,
        response=JobsRetried,
        errors=("NOT_FOUND",),
        summary="Have a project's failed jobs tried again, 1,000 at a time",
        tag="Jobs",
    ),
)
