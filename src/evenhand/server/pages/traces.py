"""The list of traces: newest first, with the filters in the address."""

from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.errors import InputError, Refusal
from evenhand.core.objects.traces import TraceRow
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import now, parse_instant
from evenhand.reports.numbers import duration
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.frame import (
    ListPage,
    ListQuery,
    age_of,
    form_route,
    here_of,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Button, Cell, Column, Grid, Row
from evenhand.server.pages.links import Here, project_path, with_query
from evenhand.server.pages.tabs import Tab
from evenhand.store import traces as store
from evenhand.store.connection import Connection
from evenhand.store.pages import has_more
from evenhand.store.trace_tree import main_models

LISTING = "traces page"
PAGE_ROWS = 50
NAME_LENGTH = 60
COUNTED_SPANS = 200
HOURS = {1: "1 h", 6: "6 h", 24: "24 h", 168: "7 d"}


class TracesQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to."""

    h: Literal[1, 6, 24, 168] | None = None
    """The last so many hours."""
    after: str = ""
    """An own range: created after this instant."""
    before: str = ""
    """And before this one."""
    errors: bool = False
    """Only traces with a span that failed."""
    queue: bool = False
    """Only those in the review queue."""
    name: str = ""
    """The root span's name."""
    model: str = ""
    """A model that some span names."""
    key: str = ""
    """A key of the root span's metadata,"""
    value: str = ""
    """and its value."""

    @property
    def is_narrow(self) -> bool:
        """Whether rows in between may be left out."""
        return bool(self.errors or self.queue or self.name or self.model or self.key)


class TracesPage(ListPage, frozen=True, kw_only=True):
    """A page of the list."""

    template: ClassVar[str] = "traces.html"
    section: ClassVar[str] = "traces"
    has_views: ClassVar[bool] = True

    query: TracesQuery
    times: list[Tab]
    """The time ranges."""
    kinds: list[Tab]
    """Errors, queue."""
    own_range: bool
    """Whether the fields of an own range are open."""


def narrowed(query: TracesQuery, moment: datetime) -> store.TraceFilter:
    """The store's filter for a query."""
    after = _key("after", query.after) if query.after else None
    if query.h is not None:
        after = store.key_from(microseconds(moment - timedelta(hours=query.h)) // 1000)
    return store.TraceFilter(
        after=after,
        before=_key("before", query.before) if query.before else None,
        has_error=True if query.errors else None,
        in_queue=True if query.queue else None,
        name=query.name or None,
        model=query.model or None,
        metadata=((query.key, query.value),) if query.key else (),
    )


def _key(name: str, text: str) -> str:
    try:
        # What a browser's field for date and time sends has no zone: it is UTC, as the page says.
        zoned = text if text[10:].strip() and any(mark in text[10:] for mark in "Zz+-") else f"{text}Z"
        return store.key_from(microseconds(parse_instant(zoned)) // 1000)
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}': {error.reason}", {"field": name}) from None


async def traces(call: Call, query: TracesQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    narrow = narrowed(query, moment)
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> TracesPage:
        rows = store.list_traces(
            connection, project_id=project_id, narrow=narrow, before=start, limit=PAGE_ROWS + 1
        )
        more = has_more(rows, PAGE_ROWS)
        shown = with_models(connection, rows[:PAGE_ROWS])
        return TracesPage(
            title="Traces",
            here=here,
            query=query,
            grid=traces_grid(shown, moment, here, project_id, writes=call.access.allows("write")),
            times=time_tabs(query, here),
            kinds=[
                Tab("✕ Errors", here(errors=not query.errors), query.errors),
                Tab("In queue", here(queue=not query.queue), query.queue),
            ],
            next=here(cursor=make_cursor(LISTING, [rows[:PAGE_ROWS][-1][0]])) if more else "",
            first=here() if query.cursor else "",
            own_range=bool(query.after or query.before),
        )

    return await respond(call, work, query, search=query.is_narrow)


def with_models(connection: Connection, rows: list[tuple[str, TraceRow]]) -> list[TraceRow]:
    """The rows with their main model first. Traces of very many spans keep the first that was seen: to count theirs
    would take longer than the page may."""
    several = [key for key, row in rows if len(row.models) > 1 and row.span_count <= COUNTED_SPANS]
    main = main_models(connection, several) if several else {}
    return [
        replace(row, models=[main[key], *(one for one in row.models if one != main[key])])
        if key in main
        else row
        for key, row in rows
    ]


def time_tabs(query: TracesQuery, here: Here) -> list[Tab]:
    """All, the last hours."""
    ranged = query.h is not None or query.after or query.before
    return [
        Tab("All", here(h=None, after=None, before=None), not ranged),
        *(
            Tab(text, here(h=hours, after=None, before=None), query.h == hours)
            for hours, text in HOURS.items()
        ),
    ]


def traces_grid(rows: list[TraceRow], moment: datetime, here: Here, project_id: str, *, writes: bool) -> Grid:
    """The table of traces."""
    columns = [
        Column(name="Root span", kind="cut"),
        Column(name="Errors"),
        Column(name="Spans", kind="num"),
        Column(name="Duration", kind="num"),
        Column(name="Tokens", kind="num"),
        Column(name="Model"),
        Column(name="Queue"),
        Column(name="Age", kind="num", order="descending"),
    ]
    return Grid(
        caption="Traces, newest first",
        columns=columns,
        rows=[_row(row, moment, here, project_id, writes=writes) for row in rows],
    )


def _row(row: TraceRow, moment: datetime, here: Here, project_id: str, *, writes: bool) -> Row:
    name = shortened(row.name) if row.name is not None else "— root span not here yet"
    path = project_path(project_id, "traces", row.id)
    queue = Cell(text="", value=False)
    if row.queued_at is not None:
        queue = Cell(text="✓ in queue", badge="plain", value=True)
    elif writes:
        button = Button(text="Add to queue", about=name, action=f"{path}/queue", fields={"next": here.same})
        queue = Cell(button=button, value=False)
    return Row(
        href=with_query(path, {"list": with_query("", here.values)[1:]}),
        cells=[
            Cell(text=name, value=row.name),
            Cell(text="✕ error", badge="err", value=row.error_count) if row.error_count else Cell(value=0),
            Cell(text=f"{row.span_count:,}", value=row.span_count),
            Cell(text=duration(row.duration_ms), value=row.duration_ms),
            Cell(text=f"{row.tokens:,} tok", value=row.tokens),
            Cell(text=row.models[0] if row.models else "—", value=", ".join(row.models)),
            queue,
            Cell(text=age_of(row.created_at, moment), instant=row.created_at, value=row.created_at),
        ],
    )


def shortened(name: str, length: int = NAME_LENGTH) -> str:
    """The first characters of a name."""
    return name if len(name) <= length else name[: length - 1] + "…"


class QueueForm(Struct, frozen=True, kw_only=True):
    """Putting a trace into the review queue."""

    next: str = ""
    """The page to go back to."""


async def add_to_queue(call: Call, form: QueueForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    await call.service.database.write(
        partial(store.queue_trace, trace_id=trace_id, scope=call.scope, project_id=project_id)
    )
    back = form.next or project_path(project_id, "traces", trace_id)
    return await redirect(call, back, "Added to the review queue.")


ROUTES = (
    page_route("/projects/{project_id}/traces", traces, query=TracesQuery, summary="The traces of a project"),
    form_route(
        "/projects/{project_id}/traces/{trace_id}/queue",
        add_to_queue,
        QueueForm,
        summary="Put a trace into the review queue",
    ),
)
