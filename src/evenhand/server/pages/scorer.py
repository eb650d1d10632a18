"""One scorer or judge in a project: how far people agree with it, its mean by experiment and over time, each version
apart, and what the registry says about it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.reviews import Reviewed, ReviewItem, ReviewQueue
from evenhand.core.objects.scorers import ScorerInfo
from evenhand.core.timestamps import format_instant, now
from evenhand.plots import reliability
from evenhand.reports.components import VerdictBanner
from evenhand.reports.numbers import number
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.jobs.computing import run_off_loop
from evenhand.server.pages.estimates import estimates_grid
from evenhand.server.pages.frame import Crumb, PageContext, PageQuery, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import Here, project_path, with_query
from evenhand.server.pages.reviewing import reviewer_of
from evenhand.server.pages.scorer_history import by_experiment, over_time
from evenhand.server.pages.tabs import Tab
from evenhand.server.pages.trust import rates_grid, verdict_of
from evenhand.server.pages.values import Shown, one_line, show_value
from evenhand.store import reviews as store
from evenhand.store.connection import Connection
from evenhand.store.review_queues import list_queues
from evenhand.store.reviews import Reviewer
from evenhand.store.score_hours import scorers_of_project

if TYPE_CHECKING:
    from evenhand.judging.against_people import AgainstPeople

DAYS = 28
MOST_QUEUES = 200
MOST_SHOWN = 10
"""Disagreements on the page; the count says how many there are."""
SIDES = {
    "false_good": ("The judge said good, people said bad", "the judge's highest value first"),
    "false_bad": ("The judge said bad, people said good", "the judge's highest value first"),
    "true_good": ("Both said good", ""),
    "true_bad": ("Both said bad", ""),
}


class ScorerQuery(PageQuery, frozen=True, kw_only=True):
    """What is shown of a scorer."""

    queue: str = ""
    """The review queue whose people it is compared with; the newest one at first."""
    version: str | None = None
    """The version that is compared; the one with most items at first. Versions are never mixed."""
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """From here on the judge's value counts as good."""
    side: str = "false_good"
    """Which items are listed."""


class People(Struct, frozen=True, kw_only=True):
    """A judge against the people of one queue."""

    queues: Sequence[Tab]
    versions: Sequence[Tab]
    queue: ReviewQueue
    version: str
    queue_path: str
    reason: str
    """Why nothing can be said; empty where something can."""
    verdict: VerdictBanner | None = None
    means: Grid | None = None
    rates: Grid | None = None
    confusion: Sequence[tuple[str, Sequence[Tab]]] = ()
    """By what people said: a link for each answer of the judge, with its count."""
    disputed: int = 0
    calibration: str = ""
    """The picture."""
    listed: Grid | None = None
    heading: str = ""
    note: str = ""
    total: int = 0
    progress: tuple[int, int] = (0, 0)
    """Labels that there are, and items."""


class ScorerPage(PageContext, frozen=True, kw_only=True):
    """One scorer."""

    template: ClassVar[str] = "scorer.html"
    section: ClassVar[str] = "scorers"

    scorer: ScorerInfo | None
    """What the registry knows; None for a name that only submitted scores have."""
    options: Shown
    people: People | None
    """None where no queue names it as its judge."""
    experiments: Grid
    history: str
    """The picture of its daily means."""
    since: str
    """The first day of the picture, where older ones are left out."""
    threshold: float

    def table(self) -> Grid:
        return self.experiments


class _Read(Struct, frozen=True, kw_only=True):
    """What the store knows about a judge and its people."""

    queues: list[ReviewQueue]
    queue: ReviewQueue | None
    items: list[Reviewed]


async def scorer(call: Call, query: ScorerQuery) -> Answer:
    project_id, name = call.params["project_id"], call.params["scorer_name"]
    here, moment = here_of(call, query), now()
    infos = await run_off_loop(call.service.scorers.infos)
    info = next((one for one in infos if one.name == name), None)

    def read(connection: Connection) -> _Read:
        queues = [
            one
            for one in list_queues(connection, project_id=project_id, before=None, limit=MOST_QUEUES)
            if one.judge_scorer == name
        ]
        if info is None and not queues and name not in scorers_of_project(connection, project_id):
            raise Refusal("NOT_FOUND", f"There is no scorer '{name[:200]}'.")
        chosen = next((one for one in queues if one.id == query.queue), queues[0] if queues else None)
        if chosen is None:
            return _Read(queues=queues, queue=None, items=[])
        _, items = store.read_for_agreement(connection, chosen.id, scope=project_id)
        return _Read(queues=queues, queue=chosen, items=items)

    found = await call.search(read)
    compared = None
    if found.queue is not None:
        compared = await asyncio.to_thread(_compare, found.queue, found.items, query)
    seen = Reviewer(id=reviewer_of(call.access).id, name="", sees_all=True)

    def work(connection: Connection) -> ScorerPage:
        people = None
        if found.queue is not None and compared is not None:
            people = _people(connection, found, compared, query, here, seen)
        picture, since = over_time(connection, project_id, name, moment - timedelta(days=DAYS))
        options = None if info is None or info.options is None else msgspec.json.encode(info.options)
        return ScorerPage(
            title=name,
            here=here,
            crumbs=(Crumb("Scorers", project_path(project_id, "scorers")),),
            scorer=info,
            options=show_value(options, full=True),
            people=people,
            experiments=by_experiment(connection, project_id, name),
            history=picture,
            since=since if since > format_instant(moment - timedelta(days=DAYS))[:10] else "",
            threshold=query.threshold,
        )

    return await respond(call, work, query, search=True)


class _Compared(Struct, frozen=True, kw_only=True):
    """A version against people, or why not."""

    versions: dict[str, int]
    version: str
    result: "AgainstPeople | None"
    reason: str


def _compare(queue: ReviewQueue, items: Sequence[Reviewed], query: ScorerQuery) -> _Compared:
    from evenhand.judging.against_people import against_people, versions_in  # numpy: not needed to start

    versions = versions_in(items)
    version = query.version if query.version in versions else next(iter(versions), "")
    result, reason = against_people(queue, items, version=version or "", threshold=query.threshold)
    return _Compared(versions=versions, version=version or "", result=result, reason=reason)


def _people(
    connection: Connection,
    found: _Read,
    compared: _Compared,
    query: ScorerQuery,
    here: Here,
    seen: Reviewer,
) -> People:
    queue, result = found.queue, compared.result
    assert queue is not None
    path = project_path(queue.project_id, "queues", queue.id)
    base = People(
        queues=[Tab(one.name, here(queue=one.id, version=None), one.id == queue.id) for one in found.queues],
        versions=[
            Tab(name or "submitted", here(version=name), name == compared.version, count)
            for name, count in compared.versions.items()
        ],
        queue=queue,
        version=compared.version,
        queue_path=path,
        reason=compared.reason,
    )
    if result is None:
        return base
    side = query.side if query.side in SIDES else "false_good"
    ids: list[str] = getattr(result.sides, side)
    shown = [
        store.read_item(connection, queue.id, one, seen, scope=queue.project_id) for one in ids[:MOST_SHOWN]
    ]
    return msgspec.structs.replace(
        base,
        verdict=verdict_of(result, compared.version),
        means=_means(result),
        rates=None if result.passes is None else rates_grid(result.passes),
        confusion=_confusion(result, here, side),
        disputed=result.disputed,
        calibration=reliability(
            result.bins, title=f"{queue.judge_scorer}: what people say by what the judge says"
        ),
        listed=_items(shown, queue, path),
        heading=SIDES[side][0],
        note=SIDES[side][1],
        total=len(ids),
        progress=(result.mean.labelled, result.mean.items),
    )


def _means(result: "AgainstPeople") -> Grid:
    labelled, items = result.mean.labelled, result.mean.items
    return estimates_grid(
        [
            ("judge alone", result.mean.judge_only, [Cell(text=f"{items:,}", value=items)]),
            ("people", result.values.human_only, [Cell(text=f"{labelled:,}", value=labelled)]),
            ("corrected", result.mean.corrected, [Cell(text=f"{items:,}", value=items)]),
        ],
        ("Mean", "Items"),
        "Judge's, people's and corrected mean",
    )


def _confusion(result: "AgainstPeople", here: Here, side: str) -> list[tuple[str, Sequence[Tab]]]:
    def tab(name: str) -> Tab:
        return Tab(SIDES[name][0], f"{here(side=name)}#items", name == side, len(getattr(result.sides, name)))

    return [("good", [tab("true_good"), tab("false_bad")]), ("bad", [tab("false_good"), tab("true_bad")])]


def _items(items: Sequence[ReviewItem], queue: ReviewQueue, path: str) -> Grid:
    headline = queue.form.headline
    rows = []
    for item in items:
        shown = item.shown[0] if item.shown else None
        said = [
            f"{one.annotator}: {one.answers[headline.name]}"
            for one in item.reviews
            if headline is not None and headline.name in one.answers
        ]
        judge = item.judge
        value = None if judge is None else judge.value
        rows.append(
            Row(
                href=with_query(path, {"item": item.id}),
                cells=[
                    Cell(
                        text=one_line(None if shown is None else shown.input),
                        below=one_line(None if shown is None else shown.output),
                    ),
                    Cell(text=value if isinstance(value, str) else number(value, 2), value=value),
                    Cell(
                        text="—" if judge is None or not judge.rationale else one_line_text(judge.rationale)
                    ),
                    Cell(text=" · ".join(said)),
                ],
            )
        )
    return Grid(
        caption="Items",
        columns=[
            Column(name="Question and answer", kind="cut"),
            Column(name="Judge", kind="num"),
            Column(name="The judge's reason", kind="cut"),
            Column(name="People"),
        ],
        rows=rows,
    )


def one_line_text(text: str) -> str:
    """The beginning of a text, for one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else f"{flat[:199]}…"


ROUTES = (
    page_route(
        "/projects/{project_id}/scorers/{scorer_name}",
        scorer,
        query=ScorerQuery,
        summary="A scorer, and how far people agree with it",
    ),
)
