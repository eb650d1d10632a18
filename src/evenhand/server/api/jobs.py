"""Jobs: scores that the service works out on its own."""

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.jobs import Job, JobStatus
from evenhand.core.objects.scores import NotScored, Score, TargetType
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.call import Call
from evenhand.server.measuring import JUDGE
from evenhand.server.paging import Paging, page_of
from evenhand.server.routes import Route
from evenhand.store import jobs as store
from evenhand.store.connection import Connection
from evenhand.store.projects import not_found
from evenhand.store.scores import get_score
from evenhand.store.targets import find_targets

LISTING = "jobs"
MAX_WAIT = 60.0


class JobQuery(Paging, frozen=True, kw_only=True):
    """Whose jobs."""

    project_id: str | None = None
    """The project; required."""
    status: JobStatus | None = None
    """`pending`, `running`, `completed` or `failed`."""


class JobAccepted(Struct, frozen=True, kw_only=True):
    """The score will be worked out."""

    job_id: str
    """Ask `GET /v1/jobs/{job_id}` how far it is."""
    status: JobStatus
    """`pending`, unless it was waited for."""


class WaitQuery(Struct, frozen=True, kw_only=True):
    """How long to wait for a judge."""

    wait: float | None = None
    """Seconds to wait for an `llm_judge` score, 60 at most; absent answers 202 at once."""


async def submit_judge(
    call: Call, *, target_type: TargetType, target_id: str, config_text: str, wait: float | None
) -> Answer:
    """A durable job for an `llm_judge` score; with `wait`, the score itself when it is there in time.

    The configuration was checked by the caller.
    """
    if wait is not None and not 0 <= wait <= MAX_WAIT:
        raise Refusal(
            "INVALID_REQUEST", f"'wait' must be between 0 and {MAX_WAIT:g} seconds.", {"field": "wait"}
        )

    def work(connection: Connection) -> JobAccepted:
        [target] = find_targets(connection, [(target_type, target_id, call.scope)])
        if target is None:
            raise not_found(target_type, target_id)
        job = store.NewJob(
            project_id=target.project_id,
            target_type=target_type,
            target_id=target_id,
            trace_key=target.trace_key,
            scorer_name=JUDGE,
            config=config_text,
        )
        [job_id] = store.add_jobs(connection, [job])
        return JobAccepted(job_id=job_id, status="pending")

    answer = await call.write(work, 202)
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
        return json_answer(NotScored(score=None, reason=job.error or "failed"))
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
        response=Job,
        errors=("NOT_FOUND",),
        summary="Read a job",
        tag="Jobs",
    ),
)
