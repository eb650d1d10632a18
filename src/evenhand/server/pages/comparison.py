"""Two experiments, compared: the page, and its items; `comparison_verdict` says what stands above them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.datasets import DatasetItem
from evenhand.core.objects.experiments import (
    CategoryDelta,
    Experiment,
    ExperimentComparison,
    ItemComparison,
    Run,
)
from evenhand.reports.components import VerdictBanner
from evenhand.reports.numbers import number, signed
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.comparison_verdict import (
    Evidence,
    Sides,
    banner_of,
    checks_of,
    evidence_of,
    how_calculated,
    items_needed,
    next_links,
    state_of,
)
from evenhand.server.pages.distributions import category_grid, delta_picture
from evenhand.server.pages.frame import (
    Crumb,
    PageContext,
    PageQuery,
    here_of,
    page_route,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import Here, project_path
from evenhand.server.pages.tabs import Tab
from evenhand.server.pages.values import one_line, readable
from evenhand.store.comparing import comparison_stamp
from evenhand.store.connection import Connection
from evenhand.store.datasets import get_dataset, read_items
from evenhand.store.experiments import get_experiment
from evenhand.store.runs import read_runs
from evenhand.store.writer import Work

if TYPE_CHECKING:
    from evenhand.server.api.comparing import Compared

PAGE_ROWS = 50
MAX_RUNS = 200
"""Runs of open rows that are read."""
Show = Literal["", "fell", "rose", "same", "unstable", "missing"]


class ComparisonQuery(PageQuery, frozen=True, kw_only=True):
    """How the comparison is shown."""

    max_drop: Annotated[float, Meta(ge=0, le=1)] = 0.05
    """The drop that is tolerated."""
    force: bool = False
    """Compare what is not comparable; the page says so."""
    scorer: str = ""
    """The scorer that the items are listed by."""
    show: Show = ""
    """Which items."""
    sort: Literal["", "best", "item"] = ""
    """Worst first, best first, or in the order of the dataset."""
    q: str = ""
    """Only items whose question holds this."""
    open: str = ""
    """The item that is open."""
    page: Annotated[int, Meta(ge=1, le=100_000)] = 1
    """Which page of the items."""


class Said(Struct, frozen=True, kw_only=True):
    """Equal answers of one side, merged."""

    text: str
    count: int
    right: bool | None
    traces: Sequence[tuple[str, str]]
    """The name and address of each one's trace."""


class Judged(Struct, frozen=True, kw_only=True):
    """Why a scorer gave what it gave, side by side."""

    scorer: str
    base: Sequence[tuple[str, str]]
    other: Sequence[tuple[str, str]]


class OpenItem(Struct, frozen=True, kw_only=True):
    """The item that is open: expected, both sides, reasons in pairs."""

    id: str
    question: str
    expected: str
    base: Sequence[Said]
    other: Sequence[Said]
    judged: Sequence[Judged]
    history: str
    annotate: str
    """The candidate's trace, where it can be annotated; empty without one."""


class ItemRow(Struct, frozen=True, kw_only=True):
    """One row of the items."""

    place: int
    id: str
    question: str
    base: Sequence[float | str]
    """The scores of the repeats."""
    other: Sequence[float | str]
    base_text: str
    other_text: str
    delta: float | None
    flag: str
    flag_tone: str
    href: str
    opened: OpenItem | None


class ComparisonPage(PageContext, frozen=True, kw_only=True):
    """The whole page."""

    template: ClassVar[str] = "comparison.html"
    section: ClassVar[str] = "experiments"
    has_views: ClassVar[bool] = True

    base: Experiment
    other: Experiment
    dataset: tuple[str, str, int]
    """Name, address, version."""
    verdict: VerdictBanner
    state: str
    """`shown`, `open`, `incomparable`, `equivalent`, `little` or `running`."""
    progress: tuple[int, int] | None
    """Items there are, and items that would be needed."""
    next_links: Sequence[tuple[str, str, bool]]
    """Buttons beside the verdict: text, address, whether it is the main one."""
    withheld: bool
    """Numbers are not shown: the two are not comparable."""
    forced: bool
    differing: Sequence[str]
    """What differs between two that are not comparable."""
    evidence: Sequence[Evidence]
    axis: str
    checks: Sequence[tuple[bool, str]]
    """What was checked before the numbers were trusted."""
    calculated: Sequence[str]
    scorer: str
    scorers: Sequence[str]
    tabs: Sequence[Tab]
    rows: Sequence[ItemRow]
    grid: Grid
    deltas: str
    """The picture of the items' differences; empty for labels."""
    categories: Grid | None
    query: ComparisonQuery
    swap: str
    next: str
    previous: str
    matching: int
    total: int
    repeats: int

    def table(self) -> Grid:
        return self.grid


class DifferentDatasets(PageContext, frozen=True, kw_only=True):
    """Two experiments that share no dataset."""

    template: ClassVar[str] = "comparison-datasets.html"
    section: ClassVar[str] = "experiments"

    base: Experiment
    other: Experiment
    links: tuple[str, str]


class _Read(NamedTuple):
    """What was read for a comparison."""

    base: Experiment
    other: Experiment
    sides: "Compared | None"


async def comparison(call: Call, query: ComparisonQuery) -> Answer:
    ids = [call.params["base_id"], call.params["other_id"]]
    work = await open_comparison(call, call.params["project_id"], ids, query, here_of(call, query))
    return await respond(call, work, query, follows=True)


async def open_comparison(
    call: Call, project_id: str, ids: Sequence[str], query: ComparisonQuery, here: Here
) -> Work[PageContext]:
    """What reads the comparison of two experiments, in their project or behind a share link."""
    from evenhand.compare.comparison import Options  # numpy: not needed to start
    from evenhand.server.api.comparing import compare, read_sides

    base_id, other_id = ids

    def look(connection: Connection) -> tuple[Experiment, Experiment, tuple[object, ...]]:
        base = get_experiment(connection, base_id, scope=project_id)
        other = get_experiment(connection, other_id, scope=project_id)
        return base, other, comparison_stamp(connection, base, other)

    def read(connection: Connection) -> _Read:
        base = get_experiment(connection, base_id, scope=project_id)
        other = get_experiment(connection, other_id, scope=project_id)
        try:
            sides = read_sides(connection, base_id, other_id, None, scope=project_id)
        except Refusal as error:
            if error.code != "INCOMPATIBLE_EXPERIMENTS":
                raise
            sides = None
        return _Read(base=base, other=other, sides=sides)

    base, other, stamp = await call.search(look)
    key = (stamp, query.max_drop, query.force)
    kept = call.service.comparisons.get(key)
    if kept is None:
        given = await call.search(read)
        if given.sides is None:
            return lambda connection: _different_datasets(given, here, project_id)
        options = Options(max_drop=query.max_drop, force=query.force)
        found = await asyncio.to_thread(compare, given.sides, options, per_item=True)
        call.service.comparisons.put(key, (found, given))
    else:
        # Names and status may have changed meanwhile; nothing is computed from them.
        found, given = kept[0], kept[1]._replace(base=base, other=other)
    return lambda connection: _page(connection, found, given, query, here, project_id)


def _different_datasets(given: _Read, here: Here, project_id: str) -> DifferentDatasets:
    return DifferentDatasets(
        title="Not comparable",
        here=here,
        crumbs=(Crumb("Experiments", project_path(project_id, "experiments")),),
        base=given.base,
        other=given.other,
        links=(
            project_path(project_id, "experiments", given.base.id),
            project_path(project_id, "experiments", given.other.id),
        ),
    )


def _page(
    connection: Connection,
    found: ExperimentComparison,
    given: _Read,
    query: ComparisonQuery,
    here: Here,
    project_id: str,
) -> ComparisonPage:
    assert given.sides is not None
    scorers = [one.scorer_name for one in found.scorer_comparisons]
    scorer = query.scorer if query.scorer in scorers else (_main_scorer(found) if scorers else "")
    withheld = found.verdict == "NOT_COMPARABLE" and not query.force
    items = [one for one in found.per_item_results if one.scorer_name == scorer]
    scores = _repeats(given.sides, scorer)
    unstable = {one.dataset_item_id for one in items if _is_unstable(scores[1].get(one.dataset_item_id, ()))}
    order = {
        item.id: place for place, item in enumerate(sorted(given.sides.items, key=lambda one: one.id), 1)
    }
    chosen = _ordered([one for one in items if _matches(one, query.show, unstable)], query.sort, order)
    texts = _texts(connection, chosen, query, project_id)
    if query.q:
        wanted = query.q.casefold()
        chosen = [one for one in chosen if wanted in texts[one.dataset_item_id].casefold()]
    start = (query.page - 1) * PAGE_ROWS
    shown = chosen[start : start + PAGE_ROWS]
    known = read_items(connection, [one.dataset_item_id for one in shown], scope=project_id)
    sides: Sides = (given.base, given.other)
    state = state_of(found, sides, withheld=withheld)
    evidence, axis = evidence_of(found, withheld=withheld, running=state == "running")
    rows = [
        _item_row(connection, one, found, scores, known, order, unstable, query, here, project_id)
        for one in shown
    ]
    return ComparisonPage(
        title=f"{given.base.name} → {given.other.name}",
        here=here,
        crumbs=(Crumb("Experiments", project_path(project_id, "experiments")),),
        shared_as=("comparison", given.base.id, given.other.id),
        live="running" in (given.base.status, given.other.status),
        base=given.base,
        other=given.other,
        dataset=_dataset(connection, given.base, project_id),
        verdict=banner_of(found, state, scorer, withheld=withheld, forced=query.force),
        state=state,
        progress=items_needed(found, state),
        next_links=next_links(found, scorer, here, withheld=withheld),
        withheld=withheld,
        forced=query.force,
        differing=[one.not_comparable for one in found.scorer_comparisons if one.not_comparable],
        evidence=evidence,
        axis=axis,
        checks=checks_of(found, sides),
        calculated=how_calculated(found),
        scorer=scorer,
        scorers=scorers,
        tabs=[] if withheld else _tabs(items, unstable, query, here),
        rows=[] if withheld else rows,
        grid=_grid(rows, scorer) if not withheld else Grid(caption="Items", columns=[], rows=[]),
        deltas="" if withheld else delta_picture(items, scorer),
        categories=None if withheld else category_grid(_categories(found, scorer)),
        query=query,
        swap=project_path(project_id, "compare", given.other.id, given.base.id),
        next=here(page=query.page + 1) if len(chosen) > start + PAGE_ROWS else "",
        previous=here(page=query.page - 1 if query.page > 2 else None) if query.page > 1 else "",
        matching=len(chosen),
        total=len(items),
        repeats=max((len(runs) for side in scores for runs in side.values()), default=1),
    )


def _categories(found: ExperimentComparison, scorer: str) -> Sequence[CategoryDelta]:
    own = next((one for one in found.scorer_comparisons if one.scorer_name == scorer), None)
    return () if own is None else own.categories or ()


def _main_scorer(found: ExperimentComparison) -> str:
    """The scorer that items are listed by: the one that changed most surely, numbers before labels."""
    by_p = sorted(
        found.scorer_comparisons,
        key=lambda one: (
            one.paired_delta is None,
            one.p_value if one.p_value is not None else 2.0,
            one.scorer_name,
        ),
    )
    return by_p[0].scorer_name


Scores = tuple[dict[str, list[float | str]], dict[str, list[float | str]]]


def _repeats(sides: "Compared", scorer: str) -> Scores:
    """For each side: the scores of an item's repeats."""
    found: Scores = ({}, {})
    for side, into in zip((sides.base, sides.other), found, strict=True):
        scores = side.stored.scores.get(scorer, {})
        for run in side.stored.runs:
            one = scores.get(run.id)
            if one is not None and one.numbers:
                into.setdefault(run.item_id, []).append(sum(one.numbers) / len(one.numbers))
            elif one is not None and one.labels:
                into.setdefault(run.item_id, []).append(one.labels[-1])
    return found


def _is_unstable(scores: Sequence[float | str]) -> bool:
    return len(set(scores)) > 1


def _matches(one: ItemComparison, show: Show, unstable: set[str]) -> bool:
    if show == "unstable":
        return one.dataset_item_id in unstable
    if show == "missing":
        return one.base_score is None or one.compare_score is None
    if not show:
        return True
    return _moved(one) == show


def _moved(one: ItemComparison) -> Show:
    if one.base_score is None or one.compare_score is None:
        return "missing"
    if one.delta is None:
        return "same" if one.base_score == one.compare_score else "fell"
    return "same" if one.delta == 0 else "fell" if one.delta < 0 else "rose"


def _ordered(items: list[ItemComparison], sort: str, order: Mapping[str, int]) -> list[ItemComparison]:
    if sort == "item":
        return sorted(items, key=lambda one: order.get(one.dataset_item_id, 0))
    sign = -1 if sort == "best" else 1
    return sorted(
        items,
        key=lambda one: (
            one.delta is None,
            sign * (one.delta or 0.0),
            order.get(one.dataset_item_id, 0),
        ),
    )


def _texts(
    connection: Connection, items: Iterable[ItemComparison], query: ComparisonQuery, project_id: str
) -> dict[str, str]:
    """The questions, where they are searched."""
    if not query.q:
        return {}
    ids = [one.dataset_item_id for one in items]
    known = read_items(connection, ids, scope=project_id)
    return {item_id: readable(known[item_id].input).text if item_id in known else "" for item_id in ids}


def _dataset(connection: Connection, base: Experiment, project_id: str) -> tuple[str, str, int]:
    try:
        name = get_dataset(connection, base.dataset_id, scope=project_id).name
    except Refusal:
        return "deleted dataset", "", base.dataset_version
    return name, project_path(project_id, "datasets", base.dataset_id), base.dataset_version


def _tabs(
    items: Sequence[ItemComparison], unstable: set[str], query: ComparisonQuery, here: Here
) -> list[Tab]:
    counts: dict[Show, int] = {"fell": 0, "rose": 0, "same": 0, "missing": 0}
    for one in items:
        counts[_moved(one)] += 1
    names: dict[Show, str] = {
        "": "All",
        "fell": "▼ Fell",
        "rose": "▲ Rose",
        "same": "= Same",
        "missing": "▨ Missing",
        "unstable": "≈ Unstable",
    }
    numbers: dict[Show, int] = {"": len(items), **counts, "unstable": len(unstable)}
    return [
        Tab(text, here(show=show or None, page=None, open=None) + "#items", query.show == show, numbers[show])
        for show, text in names.items()
        if show in ("", "fell", "rose", "same") or numbers[show]
    ]


def _item_row(
    connection: Connection,
    one: ItemComparison,
    found: ExperimentComparison,
    scores: Scores,
    known: Mapping[str, DatasetItem],
    order: Mapping[str, int],
    unstable: set[str],
    query: ComparisonQuery,
    here: Here,
    project_id: str,
) -> ItemRow:
    item = known.get(one.dataset_item_id)
    is_open = query.open == one.dataset_item_id
    flag, tone = "", ""
    if _moved(one) == "fell" and one.compare_score == 0:
        flag, tone = ("▼ newly fails", "bad") if one.base_score == 1 else ("▼ fails", "bad")
    elif one.dataset_item_id in unstable:
        flag, tone = "≈ unstable", "warn"
    change = here(open=None if is_open else one.dataset_item_id, page=query.page if query.page > 1 else None)
    return ItemRow(
        place=order.get(one.dataset_item_id, 0),
        id=one.dataset_item_id,
        question=one_line(item.input) if item is not None else "(item is gone)",
        base=scores[0].get(one.dataset_item_id, []),
        other=scores[1].get(one.dataset_item_id, []),
        base_text=_score_text(one.base_score),
        other_text=_score_text(one.compare_score),
        delta=one.delta,
        flag=flag,
        flag_tone=tone,
        href=f"{change}#item-{one.dataset_item_id}",
        opened=_opened(connection, one, item, found, scores, project_id) if is_open else None,
    )


def _score_text(score: float | str | None) -> str:
    return "—" if score is None else score[:40] if isinstance(score, str) else number(score, 2)


def _opened(
    connection: Connection,
    one: ItemComparison,
    item: DatasetItem | None,
    found: ExperimentComparison,
    scores: Scores,
    project_id: str,
) -> OpenItem:
    runs = read_runs(connection, [*one.base_run_ids, *one.compare_run_ids][:MAX_RUNS], scope=project_id)
    base = [runs[run_id] for run_id in one.base_run_ids if run_id in runs]
    other = [runs[run_id] for run_id in one.compare_run_ids if run_id in runs]
    judged = [
        Judged(scorer=name, base=_reasons(base, name), other=_reasons(other, name))
        for name in (each.scorer_name for each in found.scorer_comparisons)
    ]
    traced = next((run.trace_id for run in other if run.trace_id), None)
    return OpenItem(
        id=one.dataset_item_id,
        question=readable(item.input).text if item is not None else "(item is gone)",
        expected=readable(item.expected_output).text if item is not None else "—",
        base=_merged(base, one.scorer_name, project_id),
        other=_merged(other, one.scorer_name, project_id),
        judged=[each for each in judged if any(reason for _, reason in (*each.base, *each.other))],
        history=project_path(project_id, "items", one.dataset_item_id),
        annotate=project_path(project_id, "traces", traced) if traced else "",
    )


def _reasons(runs: Sequence[Run], name: str) -> list[tuple[str, str]]:
    """Value and reason of a scorer for each run."""
    found = []
    for run in runs:
        newest = next((score for score in reversed(run.scores) if score.scorer_name == name), None)
        if newest is not None:
            found.append((_score_text(newest.value), newest.rationale or ""))
    return found


def _merged(runs: Sequence[Run], scorer: str, project_id: str) -> list[Said]:
    """Equal answers once, with a count, in the order in which they first appear."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(readable(run.output).text, []).append(run)
    found = []
    for text, same in groups.items():
        values = [
            score.value
            for run in same
            for score in run.scores
            if score.scorer_name == scorer and not isinstance(score.value, str)
        ]
        right = None if not values else all(value >= 1 for value in values)
        traces = [
            (f"trace {run.repeat + 1}", project_path(project_id, "traces", run.trace_id))
            for run in same
            if run.trace_id is not None
        ]
        found.append(Said(text=text, count=len(same), right=right, traces=traces))
    return found


def _grid(rows: Sequence[ItemRow], scorer: str) -> Grid:
    """The items as they are exported."""
    return Grid(
        caption="Items",
        columns=[
            Column(name="#", kind="num"),
            Column(name="Item"),
            Column(name="Question"),
            Column(name=f"{scorer}, base", kind="num"),
            Column(name=f"{scorer}, candidate", kind="num"),
            Column(name="Change", kind="num"),
        ],
        rows=[
            Row(
                cells=[
                    Cell(text=str(row.place), value=row.place),
                    Cell(text=row.id),
                    Cell(text=row.question),
                    Cell(text=row.base_text),
                    Cell(text=row.other_text),
                    Cell(text=signed(row.delta), value=row.delta),
                ]
            )
            for row in rows
        ],
    )


ROUTES = (
    page_route(
        "/projects/{project_id}/compare/{base_id}/{other_id}",
        comparison,
        query=ComparisonQuery,
        summary="Two experiments, compared",
    ),
)
