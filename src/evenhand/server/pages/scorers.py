"""The scorers and judges of a project: what each came to lately, and those that this server could run."""

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from msgspec import Struct

from evenhand.core.objects.reviews import ReviewQueue
from evenhand.core.objects.scorers import ScorerInfo
from evenhand.core.objects.scores import ScoreHour
from evenhand.core.timestamps import format_instant, now
from evenhand.plots import IntervalRow, interval_axis, interval_picture, interval_scale
from evenhand.reports.numbers import number
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.jobs.computing import run_off_loop
from evenhand.server.pages.frame import PageContext, PageQuery, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.kept_days import mean_of_hours
from evenhand.server.pages.links import project_path
from evenhand.store.connection import Connection
from evenhand.store.review_queues import list_queues
from evenhand.store.score_hours import list_hours, scorers_of_project

DAYS = 28
MOST_USED = 100
MOST_QUEUES = 200


class Used(Struct, frozen=True, kw_only=True):
    """A name under which the project has scores."""

    name: str
    info: ScorerInfo | None
    hours: Sequence[ScoreHour]
    queue: ReviewQueue | None
    """The newest queue whose people it is compared with."""


class ScorersPage(PageContext, frozen=True, kw_only=True):
    """Every scorer."""

    template: ClassVar[str] = "scorers.html"
    section: ClassVar[str] = "scorers"

    grid: Grid
    """Those with scores."""
    available: Grid
    """Those that could be used."""

    def table(self) -> Grid:
        return self.grid if self.grid.rows else self.available


async def scorers(call: Call, query: PageQuery) -> Answer:
    project_id = call.params["project_id"]
    here, since = here_of(call, query), format_instant(now() - timedelta(days=DAYS))
    infos = await run_off_loop(call.service.scorers.infos)
    known = {one.name: one for one in infos}

    def work(connection: Connection) -> ScorersPage:
        judged: dict[str, ReviewQueue] = {}
        for queue in list_queues(connection, project_id=project_id, before=None, limit=MOST_QUEUES):
            if queue.judge_scorer is not None:
                judged.setdefault(queue.judge_scorer, queue)
        used = [
            Used(
                name=name,
                info=known.get(name),
                hours=list_hours(connection, project_id=project_id, scorer_name=name, since=since),
                queue=judged.get(name),
            )
            for name in scorers_of_project(connection, project_id, limit=MOST_USED)
        ]
        return ScorersPage(
            title="Scorers and judges",
            here=here,
            grid=_used(used, project_id),
            available=_available(infos, project_id),
        )

    return await respond(call, work, query)


def _used(used: Sequence[Used], project_id: str) -> Grid:
    drawn = []
    for one in used:
        mean = mean_of_hours(one.hours)
        drawn.append(
            IntervalRow(
                label=one.name,
                value=None if mean is None else mean.value,
                low=None if mean is None else mean.low,
                high=None if mean is None else mean.high,
            )
        )
    scale = interval_scale(drawn, include=(0.0, 1.0))
    rows = []
    for one, row in zip(used, drawn, strict=True):
        scores = sum(hour.score_count + hour.label_count for hour in one.hours)
        known = row.low is not None and row.high is not None
        labelled = (
            "—"
            if one.queue is None
            else f"{one.queue.done_count:,} of {one.queue.item_count:,} in {one.queue.name}"
        )
        rows.append(
            Row(
                href=project_path(project_id, "scorers", one.name),
                cells=[
                    Cell(text=one.name),
                    Cell(text="—" if one.info is None or not one.info.summary else one.info.summary),
                    Cell(text=f"{scores:,}", value=scores),
                    Cell(
                        text=_mean_text(row, one.hours),
                        value=row.value,
                        note=f"[{number(row.low, 2)}, {number(row.high, 2)}]" if known else "",
                    ),
                    Cell(picture=interval_picture(row, scale) if row.value is not None else "", value=""),
                    Cell(text=labelled, quiet=one.queue is None),
                ],
            )
        )
    return Grid(
        caption="Scorers with scores in this project",
        columns=[
            Column(name="Scorer"),
            Column(name="Measures", kind="cut"),
            Column(name=f"Scores, {DAYS} days", kind="num"),
            Column(name=f"Mean, {DAYS} days", kind="num"),
            Column(name="On one axis", kind="plot", hide_name=True, picture=interval_axis(scale)),
            Column(name="Reviewed by people"),
        ],
        rows=rows,
        exported_columns=(0, 1, 2, 3, 5),
    )


def _mean_text(row: IntervalRow, hours: Sequence[ScoreHour]) -> str:
    if row.value is not None:
        return number(row.value)
    return "labels" if any(hour.label_count for hour in hours) else "—"


def _available(infos: Sequence[ScorerInfo], project_id: str) -> Grid:
    return Grid(
        caption="Scorers by name",
        columns=[
            Column(name="Scorer"),
            Column(name="Version"),
            Column(name="Measures", kind="cut"),
            Column(name="Needs an expected output"),
            Column(name="Runs"),
        ],
        rows=[
            Row(
                href=project_path(project_id, "scorers", one.name),
                cells=[
                    Cell(text=one.name),
                    Cell(text=one.version or "—"),
                    Cell(text=one.summary or "—"),
                    Cell(text={True: "yes", False: "no", None: "—"}[one.needs_expected_output]),
                    Cell(text=_runs(one)),
                ],
            )
            for one in infos
        ],
    )


def _runs(one: ScorerInfo) -> str:
    if not one.enabled:
        return "not enabled here"
    return "as a job" if one.runs_as_job else "at once"


ROUTES = (
    page_route("/projects/{project_id}/scorers", scorers, query=PageQuery, summary="Scorers and judges"),
)
