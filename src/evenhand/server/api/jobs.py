"""Jobs: scores that the service computes outside of a request."""

from functools import partial

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.jobs import Job, JobAccepted, JobStatus
from evenhand.core.objects.scores import NotScored, Score, TargetType
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import jobs as store
from evenhand.store.scores import get_score

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
    call: Call, *, target_type: TargetType, target_id: str, request: store.JobRequest, wait: float | None
) -> Answer:
    """A durable job for a score; with `wait`, the score itself when it is there in time.

    The configuration was checked by the caller.
    """
    if wait is not None and not 0 <= wait <= MAX_WAIT:
        raise Refusal(
            "INVALID_REQUEST", f"'wait' must be between 0 and {MAX_WAIT:g} seconds.", {"field": "wait"}
        )
    answer = await call.write(
        partial(
            store.request_job,
            target_type=target_type,
            target_id=target_id,
            request=request,
            scope=call.scope,
        ),
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
        score: Score = await call.read(lambda connection: get_score(connection, score_id))
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


async def list_all(call: Call, query: JobQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    ask = call.read if query.status is None else call.search
    rows = await ask(
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
        method="GET",
        path="/v1/jobs/{job_id}",
        handler=get,
        audience="token:read",
        response=Job,
        errors=("NOT_FOUND",),
        summary="Read a job",
        tag="Jobs",
    ),
)
