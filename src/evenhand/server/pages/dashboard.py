"""The dashboard: a project at a glance."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from evenhand.core.objects.experiments import Experiment, ExperimentSummary
from evenhand.core.objects.project_summary import ProjectSummary
from evenhand.core.objects.scores import ScoreHour
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import format_instant, now
from evenhand.plots import Step, timeline
from evenhand.reports.numbers import number, percent
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.distributions import trace_pictures
from evenhand.server.pages.frame import PageContext, PageQuery, age_of, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.kept_days import label_of, mean_of_hours
from evenhand.server.pages.links import project_path
from evenhand.server.pages.scorer_cells import scorer_cell
from evenhand.server.pages.tabs import Tab
from evenhand.store.connection import Connection
from evenhand.store.datasets import list_datasets
from evenhand.store.experiments import list_experiments
from evenhand.store.live import anything_running
from evenhand.store.project_summary import summarise_project
from evenhand.store.score_hours import list_hours, scorers_of_project
from evenhand.store.summaries import read_summary
from evenhand.store.traces import key_from
from evenhand.store.traffic import count_traffic

DAYS = 28
RECENT = 5
MOST_DATASETS = 200
MOST_SCORERS = 8
STATUS = {
    "created": ("○ created", "plain"),
    "running": ("◐ running", "info"),
    "completed": ("✓ completed", "good"),
}


class DashboardQuery(PageQuery, frozen=True, kw_only=True):
    """What the pictures show."""

    scorer: str = ""
    """The scorer over time; the first one at first."""


class DashboardPage(PageContext, frozen=True, kw_only=True):
    """Numbers, pictures over four weeks, datasets and experiments."""

    template: ClassVar[str] = "dashboard.html"
    section: ClassVar[str] = "dashboard"

    summary: ProjectSummary
    error_interval: str
    """The interval of the error rate of 24 hours; empty where there are no traces."""
    scorer: str
    """The scorer over time; empty for none."""
    scorers: Sequence[Tab]
    scores: str
    """The picture of its daily means."""
    spread: Sequence[tuple[str, str]]
    """Pictures of duration, tokens and cost, each with a heading."""
    errors: str
    """The picture of the daily error rates; empty without traces."""
    datasets: Grid
    experiments: Grid
    newest: Sequence[tuple[str, Cell]]
    """The scorers of the newest completed experiment."""

    @property
    def is_empty(self) -> bool:
        return not (
            self.datasets.rows or self.experiments.rows or self.summary.traces.last_7d.count or self.errors
        )


async def dashboard(call: Call, query: DashboardQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    here = here_of(call, query)

    def work(connection: Connection) -> DashboardPage:
        summary = summarise_project(connection, project_id, moment)
        names = _numeric_scorers(connection, project_id, moment)
        scorer = query.scorer if query.scorer in names else next(iter(names), "")
        recent = list_experiments(connection, project_id=project_id, before=None, limit=RECENT)
        newest = summary.experiments.most_recent_completed
        return DashboardPage(
            title="Dashboard",
            here=here,
            live=anything_running(connection, project_id),
            summary=summary,
            error_interval=_error_interval(summary),
            scorer=scorer,
            scorers=[Tab(name, here(scorer=name), name == scorer) for name in names],
            scores=_score_picture(connection, project_id, scorer, moment) if scorer else "",
            errors=_error_picture(connection, project_id, moment),
            spread=trace_pictures(connection, project_id),
            datasets=_datasets(connection, project_id, moment),
            experiments=_experiments(recent, project_id, moment),
            newest=_scores_of(connection, newest.id) if newest is not None else (),
        )

    return await respond(call, work, query, search=True, follows=True)


def _numeric_scorers(connection: Connection, project_id: str, moment: datetime) -> list[str]:
    """The scorers with numbers in the last weeks; the one with numbers on most days first."""
    since = format_instant(moment - timedelta(days=DAYS))
    days: dict[str, int] = {}
    for name in scorers_of_project(connection, project_id, limit=MOST_SCORERS):
        hours = list_hours(connection, project_id=project_id, scorer_name=name, since=since)
        days[name] = len({hour.hour[:10] for hour in hours if hour.score_count})
    return sorted((name for name in days if days[name]), key=lambda name: -days[name])


def _error_interval(summary: ProjectSummary) -> str:
    from evenhand.metrics.intervals import proportion_interval  # numpy: not needed to start

    day = summary.traces.last_24h
    if not day.count:
        return ""
    found = proportion_interval(day.error_count, day.count)
    return f"{100 * found.ci_lower:.1f} to {100 * found.ci_upper:.1f}"


def _days(moment: datetime) -> list[datetime]:
    """The starts of the last days, oldest first; the last one is today."""
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return [today - timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]


def _score_picture(connection: Connection, project_id: str, scorer: str, moment: datetime) -> str:
    days = _days(moment)
    hours = list_hours(connection, project_id=project_id, scorer_name=scorer, since=format_instant(days[0]))
    by_day: defaultdict[str, list[ScoreHour]] = defaultdict(list)
    for hour in hours:
        by_day[hour.hour[:10]].append(hour)
    steps = [_score_step(day, by_day[f"{day:%Y-%m-%d}"]) for day in days]
    steps = _from_first(steps)
    return timeline(
        steps,
        title=f"{scorer} per day with its 95 % interval",
        write=lambda value: number(value, 2),
        gap="nothing scored",
        bounds=(0.0, 1.0),
    )


def _from_first(steps: list[Step]) -> list[Step]:
    """Without the days before there was anything, but never a single one."""
    first = next((at for at, step in enumerate(steps) if step.value is not None), 0)
    return steps[min(first, len(steps) - 7) :]


def _score_step(day: datetime, hours: Sequence[ScoreHour]) -> Step:
    mean = mean_of_hours(hours)
    if mean is None:
        return Step(label=label_of(day), value=None)
    return Step(
        label=label_of(day), value=mean.value, low=mean.low, high=mean.high, note=f"{mean.count:,} scored"
    )


def _error_picture(connection: Connection, project_id: str, moment: datetime) -> str:
    from evenhand.metrics.intervals import proportion_interval  # numpy: not needed to start

    days = _days(moment)
    keys = [key_from(microseconds(day) // 1000) for day in [*days, moment + timedelta(minutes=1)]]
    steps = []
    for day, traffic in zip(days, count_traffic(connection, project_id, keys), strict=True):
        if not traffic.count:
            steps.append(Step(label=label_of(day), value=None))
            continue
        found = proportion_interval(traffic.error_count, traffic.count)
        note = f"{traffic.error_count:,} of {traffic.count:,} traces"
        steps.append(
            Step(label=label_of(day), value=found.value, low=found.ci_lower, high=found.ci_upper, note=note)
        )
    if all(step.value is None for step in steps):
        return ""
    return timeline(
        _from_first(steps),
        title="Error rate per day with its 95 % interval",
        tone="error",
        write=lambda value: percent(value, 0),
        floor=0.0,
        gap="no traces",
        bounds=(0.0, 1.0),
    )


def _datasets(connection: Connection, project_id: str, moment: datetime) -> Grid:
    found = list_datasets(connection, project_id=project_id, before=None, limit=MOST_DATASETS)
    found.sort(key=lambda dataset: dataset.updated_at, reverse=True)
    columns = [
        Column(name="Name", kind="cut"),
        Column(name="Items", kind="num"),
        Column(name="Version"),
        Column(name="Changed", kind="num"),
    ]
    rows = [
        Row(
            href=project_path(project_id, "datasets", dataset.id),
            cells=[
                Cell(text=dataset.name),
                Cell(text=f"{dataset.item_count:,}", value=dataset.item_count),
                Cell(text=f"v{dataset.version}", value=dataset.version),
                Cell(text=age_of(dataset.updated_at, moment), instant=dataset.updated_at),
            ],
        )
        for dataset in found[:10]
    ]
    return Grid(caption="Datasets, latest change first", columns=columns, rows=rows)


def _experiments(found: Sequence[Experiment], project_id: str, moment: datetime) -> Grid:
    columns = [
        Column(name="Name", kind="cut"),
        Column(name="Status"),
        Column(name="Runs", kind="num"),
        Column(name="Age", kind="num"),
    ]
    rows = []
    for one in found:
        text, tone = STATUS[one.status]
        rows.append(
            Row(
                href=project_path(project_id, "experiments", one.id),
                cells=[
                    Cell(text=one.name),
                    Cell(text=text, badge=tone),  # type: ignore[arg-type]  # a tone of the table
                    Cell(text=f"{one.run_count:,}", value=one.run_count),
                    Cell(text=age_of(one.created_at, moment), instant=one.created_at),
                ],
            )
        )
    return Grid(caption="Experiments, newest first", columns=columns, rows=rows)


def _scores_of(connection: Connection, experiment_id: str) -> list[tuple[str, Cell]]:
    from evenhand.server.api.summaries import summarise  # numpy: not needed to start

    summary: ExperimentSummary = summarise(read_summary(connection, experiment_id, scope=None))
    return [(name, scorer_cell(scorer)) for name, scorer in summary.scores_by_scorer.items()]


ROUTES = (
    page_route(
        "/projects/{project_id}/dashboard", dashboard, query=DashboardQuery, summary="A project at a glance"
    ),
)
