"""Experiments: the list with a mean per scorer, and one experiment with its runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.datasets import Dataset, DatasetItem
from evenhand.core.objects.experiments import Experiment, ExperimentSummary, Run, ScorerSummary
from evenhand.core.objects.scores import Score
from evenhand.core.timestamps import now
from evenhand.plots.intervals import IntervalRow, interval_axis, interval_picture, interval_scale
from evenhand.plots.scale import Scale
from evenhand.reports.numbers import number, signed
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.distributions import score_pictures
from evenhand.server.pages.frame import (
    Crumb,
    ListPage,
    ListQuery,
    NoFields,
    age_of,
    form_route,
    here_of,
    own_project,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import Here, project_path
from evenhand.server.pages.scorer_cells import scorer_cell
from evenhand.server.pages.values import Shown, one_line, show_value
from evenhand.store import experiments as store
from evenhand.store.connection import Connection
from evenhand.store.datasets import get_dataset, read_items
from evenhand.store.pages import has_more
from evenhand.store.runs import RunFilter, list_runs
from evenhand.store.summaries import read_summary
from evenhand.store.writer import Work

LISTING = "experiments page"
RUNS = "runs page"
PAGE_ROWS = 50
SHOWN_SCORERS = 4
"""Columns of scorers that the list has unless all are asked for."""
STATUS_TONES: dict[str, Literal["plain", "info", "good"]] = {
    "created": "plain",
    "running": "info",
    "completed": "good",
}
STATUS_WORDS = {"created": "○ created", "running": "◐ running", "completed": "✓ completed"}


class ExperimentsQuery(ListQuery, frozen=True, kw_only=True):
    """Which experiments."""

    all: bool = False
    """A column for every scorer."""


class ExperimentsPage(ListPage, frozen=True, kw_only=True):
    """A page of the list."""

    template: ClassVar[str] = "experiments.html"
    section: ClassVar[str] = "experiments"
    has_views: ClassVar[bool] = True

    compare: str
    """Where two ticked experiments are compared."""
    hidden_scorers: int
    """Scorers without a column."""
    all_scorers: str
    """The address with all of them."""


async def experiments(call: Call, query: ExperimentsQuery) -> Answer:
    project_id, moment = call.params["project_id"], now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> ExperimentsPage:
        from evenhand.server.api.summaries import summarise  # numpy: not needed to start

        found = store.list_experiments(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        shown = found[:PAGE_ROWS]
        summaries = {one.id: summarise(read_summary(connection, one.id, scope=project_id)) for one in shown}
        datasets = _datasets(connection, {one.dataset_id for one in shown}, project_id)
        names = common_scorers(summaries.values())
        columns = names if query.all else names[:SHOWN_SCORERS]
        more = has_more(found, PAGE_ROWS)
        return ExperimentsPage(
            title="Experiments",
            here=here,
            live=any(one.status == "running" for one in shown),
            grid=_list_grid(shown, summaries, datasets, columns, moment, project_id),
            compare=project_path(project_id, "compare"),
            hidden_scorers=len(names) - len(columns),
            all_scorers=here(all=True),
            next=here(cursor=make_cursor(LISTING, [shown[-1].id])) if more else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query, follows=True)


def _datasets(connection: Connection, ids: set[str], project_id: str) -> dict[str, Dataset]:
    found = {}
    for dataset_id in ids:
        try:
            found[dataset_id] = get_dataset(connection, dataset_id, scope=project_id)
        except Refusal:
            continue  # deleted: its experiments keep their runs
    return found


def common_scorers(summaries: Iterable[ExperimentSummary]) -> list[str]:
    """The scorers of several experiments, those that most of them have first."""
    counts = Counter(name for one in summaries for name in one.scores_by_scorer)
    return [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def _list_grid(
    found: Sequence[Experiment],
    summaries: Mapping[str, ExperimentSummary],
    datasets: Mapping[str, Dataset],
    names: Sequence[str],
    moment: datetime,
    project_id: str,
) -> Grid:
    scales = {name: _scale([summaries[one.id].scores_by_scorer.get(name) for one in found]) for name in names}
    columns = [
        Column(name="Pick", hide_name=True),
        Column(name="Name", kind="cut"),
        Column(name="Dataset"),
        Column(name="Status"),
        Column(name="Runs", kind="num"),
        *(
            Column(name=name, kind="text" if scales[name] is None else "num", picture=_axis(scales[name]))
            for name in names
        ),
        Column(name="Age", kind="num", order="descending"),
    ]
    rows = []
    for one in found:
        summary, dataset = summaries[one.id], datasets.get(one.dataset_id)
        rows.append(
            Row(
                href=project_path(project_id, "experiments", one.id),
                cells=[
                    Cell(text=one.name, check=(f"pick.{one.id}", "1", False), value=one.id),
                    Cell(text=one.name),
                    _dataset_cell(dataset, one, project_id),
                    Cell(text=STATUS_WORDS[one.status], badge=STATUS_TONES[one.status], value=one.status),
                    Cell(text=runs_text(summary), value=summary.run_count),
                    *(_mean_cell(name, summary.scores_by_scorer.get(name), scales[name]) for name in names),
                    Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
                ],
            )
        )
    return Grid(
        caption="Experiments, newest first",
        columns=columns,
        rows=rows,
        exported_columns=range(1, len(columns)),
    )


def _dataset_cell(dataset: Dataset | None, one: Experiment, project_id: str) -> Cell:
    if dataset is None:
        return Cell(text="deleted", quiet=True, value="")
    path = project_path(project_id, "datasets", dataset.id)
    return Cell(text=dataset.name, href=path, note=f"v{one.dataset_version}")


def runs_text(summary: ExperimentSummary) -> str:
    """`42 / 50`: runs, and items of the dataset."""
    return f"{summary.run_count:,} / {summary.dataset_item_count:,}"


def _row_of(name: str, scorer: ScorerSummary | None) -> IntervalRow | None:
    if scorer is None or scorer.mean is None or scorer.mixed_versions:
        return None
    return IntervalRow(label=name, value=scorer.mean, low=scorer.ci_lower, high=scorer.ci_upper)


def _scale(scorers: Sequence[ScorerSummary | None]) -> Scale | None:
    rows = [row for scorer in scorers if (row := _row_of("", scorer)) is not None]
    return interval_scale(rows) if rows else None


def _axis(scale: Scale | None) -> str:
    return interval_axis(scale) if scale is not None else ""


def _mean_cell(name: str, scorer: ScorerSummary | None, scale: Scale | None) -> Cell:
    cell, row = scorer_cell(scorer), _row_of(name, scorer)
    if row is None or scale is None:
        return cell
    return Cell(text=cell.text, note=cell.note, value=cell.value, picture=interval_picture(row, scale))


class PickQuery(Struct, frozen=True, kw_only=True):
    """The experiments that were ticked."""

    pick: dict[str, str] = {}
    """By id."""


async def compare_picked(call: Call, query: PickQuery) -> Answer:
    """Go to the comparison of two experiments; the older one is the base."""
    project_id = call.params["project_id"]
    if len(query.pick) != 2:
        back = project_path(project_id, "experiments")
        return await redirect(call, back, "Tick two experiments to compare them.")
    base, other = sorted(query.pick)
    return await redirect(call, project_path(project_id, "compare", base, other))


class ExperimentQuery(ListQuery, frozen=True, kw_only=True):
    """How the runs are shown."""

    scorer: str = ""
    """The scorer that runs are ordered or narrowed by."""
    sort: Literal["", "value", "-value"] = ""
    """Lowest or highest score first; by age otherwise."""
    min: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Only runs with at least this score."""
    max: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Only runs with at most this score."""
    open: str = ""
    """The run that is open."""
    at_least: Annotated[float, Meta(ge=0, le=1)] | None = None
    """A threshold for the mean of `of`."""
    of: str = ""
    """The scorer of the threshold."""


class Tile(Struct, frozen=True, kw_only=True):
    """A scorer in the head of the page."""

    name: str
    mean: str
    interval: str
    below: str


class OpenRun(Struct, frozen=True, kw_only=True):
    """The run that is open, whole."""

    id: str
    item_id: str
    input: Shown
    expected: Shown
    output: Shown
    scores: Sequence[Score]
    trace: str
    """The address of its trace."""
    history: str
    """The address of its item's history."""


class Threshold(Struct, frozen=True, kw_only=True):
    """PASS or FAIL, with the gap."""

    passed: bool
    text: str


class ExperimentPage(ListPage, frozen=True, kw_only=True):
    """One experiment."""

    template: ClassVar[str] = "experiment.html"
    section: ClassVar[str] = "experiments"
    has_views: ClassVar[bool] = True

    experiment: Experiment
    dataset: Dataset | None
    summary: ExperimentSummary
    spread: Sequence[tuple[str, str]]
    """Pictures of the items' scores, each with its scorer."""
    tiles: Sequence[Tile]
    opened: OpenRun | None
    query: ExperimentQuery
    scorers: Sequence[str]
    threshold: Threshold | None
    complete: str
    """Where "Mark complete" posts to."""
    others: Sequence[tuple[str, str]]
    """Experiments of the same dataset to compare with: name and address."""


async def experiment(call: Call, query: ExperimentQuery) -> Answer:
    ids = [call.params["experiment_id"]]
    work = await open_experiment(call, call.params["project_id"], ids, query, here_of(call, query))
    return await respond(call, work, query, search=bool(query.scorer), follows=True)


async def open_experiment(
    call: Call, project_id: str, ids: Sequence[str], query: ExperimentQuery, here: Here
) -> Work[ExperimentPage]:
    """What reads the page of an experiment, in its project or behind a share link."""
    [experiment_id] = ids
    start = tuple(read_cursor(query.cursor, RUNS, 2)) if query.cursor else None
    wanted = RunFilter(
        scorer_name=query.scorer or None,
        min_value=query.min if query.scorer else None,
        max_value=query.max if query.scorer else None,
        by_value=bool(query.scorer and query.sort),
        descending=query.sort == "-value",
    )

    def work(connection: Connection) -> ExperimentPage:
        from evenhand.server.api.summaries import summarise  # numpy: not needed to start

        kept = read_summary(connection, experiment_id, scope=project_id)
        summary = summarise(kept)
        found = list_runs(
            connection, experiment_id, scope=project_id, wanted=wanted, after=start, limit=PAGE_ROWS + 1
        )
        more, runs = has_more(found, PAGE_ROWS), [run for run, _ in found[:PAGE_ROWS]]
        items = read_items(connection, [run.dataset_item_id for run in runs], scope=project_id)
        scorers = list(summary.scores_by_scorer)
        opened = next((run for run in runs if run.id == query.open), None)
        found_datasets = _datasets(connection, {kept.experiment.dataset_id}, project_id)
        last = found[:PAGE_ROWS][-1] if more else None
        return ExperimentPage(
            title=kept.experiment.name,
            here=here,
            crumbs=(Crumb("Experiments", project_path(project_id, "experiments")),),
            shared_as=("experiment", experiment_id),
            live=kept.experiment.status == "running",
            experiment=kept.experiment,
            dataset=found_datasets.get(kept.experiment.dataset_id),
            summary=summary,
            spread=score_pictures(connection, experiment_id, scorers, kept.experiment.run_count),
            tiles=[_tile(one) for one in summary.scores_by_scorer.values()],
            grid=_runs_grid(runs, scorers, items, here, query, project_id, traces=not call.is_public),
            opened=_open_run(opened, items, project_id) if opened else None,
            query=query,
            scorers=scorers,
            threshold=_threshold(query, summary),
            complete=f"{here.path}/complete",
            others=_comparable(connection, kept.experiment, project_id),
            next=here(cursor=make_cursor(RUNS, _place(last))) if last is not None else "",
            first=here() if query.cursor else "",
        )

    return work


def _place(last: tuple[Run, float | None]) -> list[str]:
    run, value = last
    return [run.id, run.id] if value is None else [repr(value), run.id]


def _comparable(connection: Connection, one: Experiment, project_id: str) -> list[tuple[str, str]]:
    """The newest others on the same dataset."""
    recent = store.list_experiments(connection, project_id=project_id, before=None, limit=PAGE_ROWS)
    return [
        (other.name, project_path(project_id, "compare", *sorted((other.id, one.id))))
        for other in recent
        if other.dataset_id == one.dataset_id and other.id != one.id
    ]


def _tile(scorer: ScorerSummary) -> Tile:
    cell = scorer_cell(scorer)
    below = "" if scorer.min is None else f"min {number(scorer.min, 2)}, max {number(scorer.max, 2)}"
    runs = f"{scorer.scored_run_count:,} runs scored"
    return Tile(
        name=scorer.scorer_name,
        mean=cell.text,
        interval=cell.note,
        below=" · ".join(part for part in (below, runs, cell.below) if part),
    )


def _threshold(query: ExperimentQuery, summary: ExperimentSummary) -> Threshold | None:
    scorer = summary.scores_by_scorer.get(query.of)
    if query.at_least is None or scorer is None:
        return None
    if scorer.mean is None or scorer.mixed_versions:
        return Threshold(passed=False, text=f"FAIL: {scorer.scorer_name} has no single mean")
    # As printed and as asked for: a mean of 0.80 passes 0.80.
    gap = Decimal(repr(scorer.mean)) - Decimal(repr(query.at_least))
    word = "PASS" if gap >= 0 else "FAIL"
    return Threshold(
        passed=gap >= 0, text=f"{word} {signed(float(gap), 2)} ({scorer.scorer_name} ≥ {query.at_least:g})"
    )


def _runs_grid(
    runs: Sequence[Run],
    scorers: Sequence[str],
    items: Mapping[str, DatasetItem],
    here: Here,
    query: ExperimentQuery,
    project_id: str,
    *,
    traces: bool,
) -> Grid:
    def sort_of(name: str) -> str:
        current = query.sort if query.scorer == name else ""
        return here(scorer=name, sort={"": "value", "value": "-value", "-value": "value"}[current], open=None)

    orders: dict[str, Literal["", "ascending", "descending"]] = {
        "": "",
        "value": "ascending",
        "-value": "descending",
    }
    columns = [
        Column(name="Input", kind="cut"),
        Column(name="Output", kind="cut"),
        Column(name="Repeat", kind="num"),
        *(
            Column(
                name=name,
                kind="num",
                sort=sort_of(name),
                order=orders[query.sort] if query.scorer == name else "",
            )
            for name in scorers
        ),
        *([Column(name="Trace")] if traces else []),
    ]
    rows = []
    for run in runs:
        item = items.get(run.dataset_item_id)
        newest = {score.scorer_name: score for score in run.scores}
        is_open = run.id == query.open
        trace = Cell(text="—", quiet=True)
        if run.trace_id is not None:
            trace = Cell(
                text="trace", href=project_path(project_id, "traces", run.trace_id), value=run.trace_id
            )
        rows.append(
            Row(
                href=here(open=None if is_open else run.id, cursor=query.cursor) + "#opened",
                current=is_open,
                anchor=f"run-{run.id}",
                cells=[
                    Cell(text=one_line(item.input) if item is not None else "(item is gone)"),
                    Cell(text=one_line(run.output)),
                    Cell(text=str(run.repeat), value=run.repeat),
                    *(_score_cell(newest.get(name)) for name in scorers),
                    *([trace] if traces else []),
                ],
            )
        )
    return Grid(caption="Runs", columns=columns, rows=rows)


def _score_cell(score: Score | None) -> Cell:
    if score is None:
        return Cell(text="—", quiet=True, value="")
    if isinstance(score.value, str):
        return Cell(text=score.value[:40], badge="plain", value=score.value)
    return Cell(text=number(score.value, 2), value=score.value)


def _open_run(run: Run, items: Mapping[str, DatasetItem], project_id: str) -> OpenRun:
    item = items.get(run.dataset_item_id)
    return OpenRun(
        id=run.id,
        item_id=run.dataset_item_id,
        input=show_value(item.input if item is not None else None),
        expected=show_value(item.expected_output if item is not None else None),
        output=show_value(run.output),
        scores=run.scores,
        trace=project_path(project_id, "traces", run.trace_id) if run.trace_id else "",
        history=project_path(project_id, "items", run.dataset_item_id),
    )


async def complete(call: Call, form: NoFields) -> Answer:
    project_id, experiment_id = own_project(call), call.params["experiment_id"]
    await call.service.database.write(
        partial(store.complete_experiment, experiment_id=experiment_id, scope=project_id)
    )
    return await redirect(
        call, project_path(project_id, "experiments", experiment_id), "The experiment is completed."
    )


ROUTES = (
    page_route(
        "/projects/{project_id}/experiments",
        experiments,
        query=ExperimentsQuery,
        summary="The experiments of a project",
    ),
    page_route(
        "/projects/{project_id}/experiments/{experiment_id}",
        experiment,
        query=ExperimentQuery,
        summary="One experiment",
    ),
    page_route(
        "/projects/{project_id}/compare",
        compare_picked,
        query=PickQuery,
        summary="Compare two ticked experiments",
    ),
    form_route(
        "/projects/{project_id}/experiments/{experiment_id}/complete",
        complete,
        NoFields,
        summary="Mark an experiment as completed",
    ),
)
