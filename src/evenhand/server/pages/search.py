"""Search: names, inputs and outputs of spans, newest traces first."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import Meta

from evenhand.core.objects.search import Found
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.frame import (
    ListQuery,
    PageContext,
    age_of,
    here_of,
    page_route,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path, with_query
from evenhand.store.connection import Connection
from evenhand.store.searching import Searched, search_spans, words_of
from evenhand.store.spans import created_at_of

LISTING = "search page"
PAGE_ROWS = 50


class SearchQuery(ListQuery, frozen=True, kw_only=True):
    """What is searched for."""

    q: Annotated[str, Meta(max_length=1_000)] = ""
    """Words, all of which a span must hold."""


class SearchPage(PageContext, frozen=True, kw_only=True):
    """What was found."""

    template: ClassVar[str] = "search.html"
    section: ClassVar[str] = "search"
    has_views: ClassVar[bool] = True

    q: str
    grid: Grid
    next: str
    """The address that searches on."""
    until: str
    """Traces back to this instant were searched; empty for all of them."""

    def table(self) -> Grid:
        return self.grid


async def search(call: Call, query: SearchQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    words = words_of(query.q)
    here = here_of(call, query)

    def work(connection: Connection) -> SearchPage:
        searched = Searched([], None)
        if words:
            searched = search_spans(
                connection, project_id=project_id, words=words, before=start, limit=PAGE_ROWS
            )
        last = searched.last
        return SearchPage(
            title="Search",
            here=here,
            q=query.q,
            grid=_grid(searched.found, moment, project_id),
            next="" if last is None else here(cursor=make_cursor(LISTING, [last])),
            until="" if last is None else created_at_of(last),
        )

    return await respond(call, work, query, search=True)


def _grid(found: Sequence[Found], moment: datetime, project_id: str) -> Grid:
    columns = [
        Column(name="Span"),
        Column(name="In"),
        Column(name="Text", kind="cut"),
        Column(name="Age", kind="num", order="descending"),
    ]
    rows = [
        Row(
            href=with_query(project_path(project_id, "traces", one.trace_id), {"span": one.span_id}),
            cells=[
                Cell(text=one.name[:60]),
                Cell(text=one.place, quiet=True),
                Cell(text=one.excerpt),
                Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
            ],
        )
        for one in found
    ]
    return Grid(caption="Spans that hold every word, newest first", columns=columns, rows=rows)


ROUTES = (page_route("/projects/{project_id}/search", search, query=SearchQuery, summary="Search spans"),)
