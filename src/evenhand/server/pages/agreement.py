"""How far reviewers agree, what is to be settled, and what their labels make of the judge's mean."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from evenhand.core.objects.reviews import (
    Agreement,
    Estimate,
    PairAgreement,
    Reviewed,
    ReviewItem,
    ReviewQueue,
    unsettled,
)
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.estimates import estimates_grid
from evenhand.server.pages.frame import Crumb, PageContext, PageQuery, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path, with_query
from evenhand.server.pages.reviewing import reviewer_of
from evenhand.server.pages.tabs import Tab
from evenhand.server.pages.values import one_line
from evenhand.store import reviews as store
from evenhand.store.connection import Connection
from evenhand.store.review_queues import list_queues
from evenhand.store.reviews import Reviewer

MOST_QUEUES = 50
MOST_SHOWN = 50
"""Disagreements on the page; the count says how many there are."""


class AgreementQuery(PageQuery, frozen=True, kw_only=True):
    """Which queue."""

    queue: str = ""
    """The newest one at first."""


class Confusion(Struct, frozen=True, kw_only=True):
    """How two reviewers' answers meet."""

    field: str
    pair: PairAgreement
    kappa: str


class AgreementPage(PageContext, frozen=True, kw_only=True):
    """The agreement in one queue."""

    template: ClassVar[str] = "agreement.html"
    section: ClassVar[str] = "agreement"

    tabs: list[Tab]
    queue: ReviewQueue | None
    """None where there is no queue yet."""
    result: Agreement | None
    fields: Grid | None
    confusions: Sequence[Confusion]
    disagreements: Grid | None
    means: Grid | None
    queue_path: str

    def table(self) -> Grid | None:
        return self.fields


def _no_page(call: Call, query: AgreementQuery) -> AgreementPage:
    return AgreementPage(
        title="Agreement",
        here=here_of(call, query),
        tabs=[],
        queue=None,
        result=None,
        fields=None,
        confusions=(),
        disagreements=None,
        means=None,
        queue_path="",
    )


async def agreement(call: Call, query: AgreementQuery) -> Answer:
    project_id = call.params["project_id"]
    here = here_of(call, query)
    seen = Reviewer(id=reviewer_of(call.access).id, name="", sees_all=True)

    def read(
        connection: Connection,
    ) -> tuple[list[ReviewQueue], ReviewQueue, list[Reviewed], list[ReviewItem]] | None:
        queues = list_queues(connection, project_id=project_id, before=None, limit=MOST_QUEUES)
        if not queues and not query.queue:
            return None
        queue, items = store.read_for_agreement(connection, query.queue or queues[0].id, scope=project_id)
        differing = [one.item_id for one in items if unsettled(queue.form, one.reviews)][:MOST_SHOWN]
        shown = [store.read_item(connection, queue.id, one, seen, scope=project_id) for one in differing]
        return queues, queue, items, shown

    found = await call.search(read)
    if found is None:
        return await respond(call, lambda _: _no_page(call, query), query)
    queues, queue, items, shown = found
    from evenhand.judging.reviewers import agreement as compute  # numpy: not needed to start

    result = await asyncio.to_thread(compute, queue, items)
    page = AgreementPage(
        title="Agreement",
        here=here,
        crumbs=(Crumb("Review queue", project_path(project_id, "queue")),),
        tabs=[Tab(one.name, here(queue=one.id), one.id == queue.id) for one in queues],
        queue=queue,
        result=result,
        fields=_fields(result),
        confusions=[
            Confusion(field=field.name, pair=pair, kappa=_words(pair.kappa))
            for field in result.fields
            for pair in field.pairs
        ],
        disagreements=_disagreements(shown, queue, project_id),
        means=_means(result),
        queue_path=project_path(project_id, "queues", queue.id),
    )
    return await respond(call, lambda _: page, query)


def _words(found: Estimate | None) -> str:
    if found is None:
        return "—"
    return f"{found.value:.2f} ({found.ci_lower:.2f} to {found.ci_upper:.2f})".replace("-", "−")


def _fields(result: Agreement) -> Grid | None:
    rows: list[tuple[str, Estimate | None, Sequence[Cell]]] = []
    for field in result.fields:
        rows.append(
            (f"{field.name}, everybody (α)", field.alpha, [Cell(text=f"{field.items:,}", value=field.items)])
        )
        rows += [
            (
                f"{field.name}, {pair.first} and {pair.second} (κ)",
                pair.kappa,
                [Cell(text=f"{pair.items:,}", value=pair.items)],
            )
            for pair in field.pairs
        ]
    return estimates_grid(rows, ("Question", "Items"), "Agreement per question") if rows else None


def _means(result: Agreement) -> Grid | None:
    found = result.corrected
    if found is None:
        return None
    rows: list[tuple[str, Estimate | None, Sequence[Cell]]] = [
        ("judge alone", found.judge_only, [Cell(text=f"{found.items:,}", value=found.items)]),
        ("corrected by people", found.corrected, [Cell(text=f"{found.labelled:,}", value=found.labelled)]),
    ]
    return estimates_grid(rows, ("Mean", "Items"), "What the labels changed")


def _disagreements(items: Sequence[ReviewItem], queue: ReviewQueue, project_id: str) -> Grid | None:
    headline = queue.form.headline
    if not items or headline is None:
        return None
    path = project_path(project_id, "queues", queue.id)
    return Grid(
        caption="Disagreements to settle",
        columns=[
            Column(name="Question", kind="cut"),
            Column(name="What people said"),
            Column(name="Judge"),
        ],
        rows=[
            Row(
                href=with_query(path, {"item": item.id}),
                cells=[
                    Cell(text=one_line(item.shown[0].input if item.shown else None)),
                    Cell(
                        text=" · ".join(
                            f"{one.annotator}: {one.answers[headline.name]}"
                            for one in item.reviews
                            if headline.name in one.answers
                        )
                    ),
                    Cell(text=_judged(item)),
                ],
            )
            for item in items
        ],
    )


def _judged(item: ReviewItem) -> str:
    if item.judge is None:
        return "—"
    return item.judge.value if isinstance(item.judge.value, str) else f"{item.judge.value:.2f}"


ROUTES = (
    page_route(
        "/projects/{project_id}/agreement", agreement, query=AgreementQuery, summary="How far reviewers agree"
    ),
)
