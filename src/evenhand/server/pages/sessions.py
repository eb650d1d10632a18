"""Sessions: the traces of one conversation, read as one."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.traces import Session, TraceRow
from evenhand.core.timestamps import now
from evenhand.reports.numbers import dollars_text
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.frame import (
    Crumb,
    ListPage,
    ListQuery,
    PageContext,
    PageQuery,
    age_of,
    here_of,
    page_route,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path
from evenhand.server.pages.traces import traces_grid, with_models
from evenhand.server.pages.values import Readable, readable
from evenhand.store import traces as store
from evenhand.store.connection import Connection
from evenhand.store.pages import has_more
from evenhand.store.sessions import list_sessions

LISTING = "sessions page"
PAGE_ROWS = 50
MOST_TURNS = 100


class SessionsQuery(ListQuery, frozen=True, kw_only=True):
    """Where the page of the list starts."""


class SessionsPage(ListPage, frozen=True, kw_only=True):
    """A page of the list."""

    template: ClassVar[str] = "sessions.html"
    section: ClassVar[str] = "sessions"
    has_views: ClassVar[bool] = True


class Turn(Struct, frozen=True, kw_only=True):
    """What was asked and answered in one trace."""

    trace: TraceRow
    href: str
    question: Readable
    answer: Readable
    age: str


class SessionPage(PageContext, frozen=True, kw_only=True):
    """One conversation."""

    template: ClassVar[str] = "session.html"
    section: ClassVar[str] = "sessions"

    turns: Sequence[Turn]
    """Oldest first."""
    left_out: bool
    """Whether there are older ones than are shown."""
    grid: Grid
    tokens: int
    cost: str
    errors: int
    users: Sequence[str]

    def table(self) -> Grid:
        return self.grid


async def sessions(call: Call, query: SessionsQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> SessionsPage:
        rows = list_sessions(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        more = len(rows) > PAGE_ROWS
        shown = [session for _, session in rows[:PAGE_ROWS] if session is not None]
        return SessionsPage(
            title="Sessions",
            here=here,
            grid=_grid(shown, moment, project_id),
            next=here(cursor=make_cursor(LISTING, [rows[PAGE_ROWS - 1][0]])) if more else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query)


def _grid(shown: Sequence[Session], moment: datetime, project_id: str) -> Grid:
    columns = [
        Column(name="Session", kind="cut"),
        Column(name="User"),
        Column(name="Errors"),
        Column(name="Traces", kind="num"),
        Column(name="Tokens", kind="num"),
        Column(name="Cost", kind="num"),
        Column(name="Started", kind="num", order="descending"),
        Column(name="Last", kind="num"),
    ]
    rows = [
        Row(
            href=project_path(project_id, "sessions", one.id),
            cells=[
                Cell(text=one.id),
                Cell(text=", ".join(one.user_ids[:2]) or "—"),
                Cell(text=f"✕ {one.error_count:,}", badge="err", value=one.error_count)
                if one.error_count
                else Cell(value=0),
                Cell(text=f"{one.trace_count:,}", value=one.trace_count),
                Cell(text=f"{one.tokens:,} tok", value=one.tokens),
                Cell(text=dollars_text(one.cost_usd), value=one.cost_usd),
                Cell(text=age_of(one.first_at, moment), instant=one.first_at, value=one.first_at),
                Cell(text=age_of(one.last_at, moment), instant=one.last_at, value=one.last_at),
            ],
        )
        for one in shown
    ]
    return Grid(caption="Sessions, newest first", columns=columns, rows=rows)


async def session(call: Call, query: PageQuery) -> Answer:
    project_id, session_id = call.params["project_id"], call.params["session_id"]
    moment = now()
    here = here_of(call, query)

    def work(connection: Connection) -> SessionPage:
        found = store.list_traces(
            connection,
            project_id=project_id,
            narrow=store.TraceFilter(session_id=session_id),
            before=None,
            limit=MOST_TURNS + 1,
        )
        if not found:
            raise Refusal("NOT_FOUND", f"There is no session '{session_id[:200]}'.")
        shown = with_models(connection, found[:MOST_TURNS])
        roots = store.root_values(connection, [key for key, _ in found[:MOST_TURNS]])
        turns = [
            Turn(
                trace=row,
                href=project_path(project_id, "traces", row.id),
                question=readable(roots[key].input if key in roots else None),
                answer=readable(roots[key].output if key in roots else None),
                age=age_of(row.created_at, moment),
            )
            for key, row in reversed(found[:MOST_TURNS])
        ]
        known = [row.cost_usd for row in shown if row.cost_usd is not None]
        return SessionPage(
            title=session_id,
            here=here,
            crumbs=(Crumb("Sessions", project_path(project_id, "sessions")),),
            turns=turns,
            left_out=has_more(found, MOST_TURNS),
            grid=traces_grid(shown, moment, here, project_id, writes=call.access.allows("write")),
            tokens=sum(row.tokens for row in shown),
            cost=dollars_text(sum(known) if known else None),
            errors=sum(row.error_count > 0 for row in shown),
            users=sorted({row.user_id for row in shown if row.user_id is not None}),
        )

    return await respond(call, work, query)


ROUTES = (
    page_route("/projects/{project_id}/sessions", sessions, query=SessionsQuery, summary="Conversations"),
    page_route(
        "/projects/{project_id}/sessions/{session_id}", session, query=PageQuery, summary="One conversation"
    ),
)
