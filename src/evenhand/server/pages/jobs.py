"""Jobs: scores that are computed outside of a request; which wait, which failed and why."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

from evenhand.core.objects.jobs import Job, JobStatus
from evenhand.core.timestamps import now
from evenhand.reports.numbers import counted
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.frame import (
    ListPage,
    ListQuery,
    NoFields,
    age_of,
    form_route,
    here_of,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Button, Cell, Column, Grid, Row, Tone
from evenhand.server.pages.links import project_path
from evenhand.server.pages.tabs import Tab
from evenhand.store import jobs as store
from evenhand.store.connection import Connection
from evenhand.store.live import anything_running
from evenhand.store.pages import has_more

LISTING = "jobs page"
PAGE_ROWS = 50
STATUS: dict[JobStatus, tuple[str, Tone]] = {
    "pending": ("○ pending", "plain"),
    "running": ("◐ running", "info"),
    "completed": ("✓ completed", "good"),
    "failed": ("✕ failed", "err"),
}


class JobsQuery(ListQuery, frozen=True, kw_only=True):
    """Which jobs."""

    status: JobStatus | None = None


class JobsPage(ListPage, frozen=True, kw_only=True):
    """A page of the list."""

    template: ClassVar[str] = "jobs.html"
    section: ClassVar[str] = "jobs"
    has_views: ClassVar[bool] = True

    tabs: Sequence[Tab]
    status: JobStatus | None
    any_failed: bool
    path: str


async def jobs(call: Call, query: JobsQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> JobsPage:
        rows = store.list_jobs(
            connection, project_id=project_id, status=query.status, before=start, limit=PAGE_ROWS + 1
        )
        more = has_more(rows, PAGE_ROWS)
        failed = store.list_jobs(connection, project_id=project_id, status="failed", before=None, limit=1)
        writes = call.access.allows("write")
        return JobsPage(
            title="Jobs",
            here=here,
            live=anything_running(connection, project_id),
            grid=_grid(rows[:PAGE_ROWS], moment, project_id, writes=writes),
            tabs=[
                Tab("All", here(status=None), query.status is None),
                *(
                    Tab(text, here(status=status), query.status == status)
                    for status, (text, _) in STATUS.items()
                ),
            ],
            status=query.status,
            next=here(cursor=make_cursor(LISTING, [rows[:PAGE_ROWS][-1].job_id])) if more else "",
            first=here() if query.cursor else "",
            any_failed=bool(failed),
            path=project_path(project_id, "jobs"),
        )

    return await respond(call, work, query, follows=True)


def _grid(rows: Sequence[Job], moment: datetime, project_id: str, *, writes: bool) -> Grid:
    columns = [
        Column(name="Scorer"),
        Column(name="Status"),
        Column(name="What happened", kind="cut"),
        Column(name="Target"),
        Column(name="Tries", kind="num"),
        Column(name="Changed", kind="num"),
        Column(name="Age", kind="num", order="descending"),
        Column(name="Retry", hide_name=True),
    ]
    return Grid(
        caption="Jobs, newest first",
        columns=columns,
        rows=[_row(job, moment, project_id, writes=writes) for job in rows],
        exported_columns=range(7),
    )


def _row(job: Job, moment: datetime, project_id: str, *, writes: bool) -> Row:
    text, tone = STATUS[job.status]
    said = job.message or job.error or ("" if job.outcome != "unscored" else "nothing to measure")
    retry = Cell()
    if job.status == "failed" and writes:
        action = project_path(project_id, "jobs", job.job_id, "retry")
        retry = Cell(button=Button(text="Try again", about=f"{job.scorer_name}, {said}", action=action))
    return Row(
        cells=[
            Cell(text=job.scorer_name),
            Cell(text=text, badge=tone, value=job.status),
            Cell(text=said, below=f"reply: {job.reply[:300]}" if job.reply else ""),
            Cell(text=f"{job.target_type} {job.target_id}"[:60], quiet=True),
            Cell(text=f"{job.attempts}", value=job.attempts),
            Cell(text=age_of(job.updated_at, moment), instant=job.updated_at, value=job.updated_at),
            Cell(text=age_of(job.created_at, moment), instant=job.created_at, value=job.created_at),
            retry,
        ],
    )


async def retry(call: Call, form: NoFields) -> Answer:
    project_id, job_id = call.params["project_id"], call.params["job_id"]
    # Within this project alone, whatever else the session may see.
    await call.service.database.write(partial(store.retry_job, job_id=job_id, scope=project_id))
    call.service.jobs.wake()
    return await redirect(call, project_path(project_id, "jobs"), "The job is tried again.")


async def retry_all(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    done = await call.service.database.write(
        partial(store.retry_failed, project_id=project_id, scorer_name=None, rule_id=None)
    )
    call.service.jobs.wake()
    more = " There are more." if done.more else ""
    return await redirect(
        call, project_path(project_id, "jobs"), f"Tried again: {counted(done.retried_count, 'job')}.{more}"
    )


_JOBS = "/projects/{project_id}/jobs"
ROUTES = (
    page_route(_JOBS, jobs, query=JobsQuery, summary="Scores that are computed outside of a request"),
    form_route(f"{_JOBS}/retry", retry_all, NoFields, summary="Have every failed job tried again"),
    form_route(f"{_JOBS}/{{job_id}}/retry", retry, NoFields, summary="Have a failed job tried again"),
)
