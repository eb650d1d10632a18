"""Share links: one object, read by whoever has the link, and the list from which links are taken back.

The page behind a link is the object's own page without the frame of the project, without forms and without links to
other pages. The secret is in the path, which logs never have: they name routes.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.shares import Share, ShareKind
from evenhand.core.timestamps import format_instant, now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.http.routes import Route, decode_query, typed_query
from evenhand.server.pages.ab import open_report
from evenhand.server.pages.comparison import ComparisonQuery, open_comparison
from evenhand.server.pages.experiments import ExperimentQuery, open_experiment
from evenhand.server.pages.frame import (
    ListPage,
    ListQuery,
    NoFields,
    PageContext,
    PageQuery,
    age_of,
    form_route,
    here_of,
    page_route,
    person_of,
    redirect,
    respond,
    respond_shared,
)
from evenhand.server.pages.grid import Button, Cell, Column, Grid, Row, Tone
from evenhand.server.pages.links import Here, project_path, query_values, with_query
from evenhand.server.pages.trace import TraceQuery, open_trace
from evenhand.store import shares as store
from evenhand.store.connection import Connection
from evenhand.store.writer import Work

LISTING = "shares page"
PAGE_ROWS = 50
MAX_DAYS = 365
MAX_SECRET = 200


class Shareable(Struct, frozen=True, kw_only=True):
    """A kind of page that can be shared."""

    name: str
    """For people."""
    ids: int
    """How many ids name the object."""
    query: Any
    """The type of its query."""
    open: Callable[[Call, str, Sequence[str], Any, Here], Awaitable[Work[Any]]]
    """What reads it: of a project, ids, query and the page's own address."""


KINDS: dict[ShareKind, Shareable] = {
    "trace": Shareable(name="Trace", ids=1, query=TraceQuery, open=open_trace),
    "experiment": Shareable(name="Experiment", ids=1, query=ExperimentQuery, open=open_experiment),
    "comparison": Shareable(name="Comparison", ids=2, query=ComparisonQuery, open=open_comparison),
    "ab": Shareable(name="A/B report", ids=1, query=PageQuery, open=open_report),
}


async def shared(call: Call, given: dict[str, str]) -> Answer:
    """The object behind a link; `NOT_FOUND` for one that was never made, has ended or was taken back."""
    secret = call.params["secret"]
    share = None
    if len(secret) <= MAX_SECRET:
        share = await call.read(lambda connection: store.find_share(connection, secret))
    if share is None:
        call.service.wrong_shares.record("share")
        raise Refusal(
            "NOT_FOUND", "This link shows nothing: it has ended, was taken back, or is not complete."
        )
    call.service.share_views.record(share.id)
    kind = KINDS[share.kind]
    # What an export or a list would add is not part of what was shared.
    kept = {name: value for name, value in given.items() if name not in ("format", "list")}
    query = typed_query(kept, kind.query)
    work = await kind.open(call, share.project_id, share.object_ids, query, here_of(call, query))
    return await respond_shared(call, share, work)


class SharesQuery(ListQuery, frozen=True, kw_only=True):
    """Which part of the list."""


class SharesPage(ListPage, frozen=True, kw_only=True):
    """The links of a project."""

    template: ClassVar[str] = "shares.html"
    section: ClassVar[str] = "shares"

    link: str = ""
    """A link that was just made; it is in this answer and nowhere else."""
    made: Share | None = None
    """What it shows."""


async def shares(call: Call, query: SharesQuery) -> Answer:
    return await respond(call, _listed(call, query), query)


def _listed(
    call: Call, query: SharesQuery, made: Share | None = None, link: str = ""
) -> Callable[[Connection], SharesPage]:
    project_id, moment = call.params["project_id"], now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = Here(project_path(project_id, "shares"), query)

    def work(connection: Connection) -> SharesPage:
        found = store.list_shares(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        shown = found[:PAGE_ROWS]
        return SharesPage(
            title="Share links",
            here=here,
            grid=_grid(shown, project_id, moment),
            made=made,
            link=link,
            next=here(cursor=make_cursor(LISTING, [shown[-1].id])) if len(found) > PAGE_ROWS else "",
            first=here() if query.cursor else "",
        )

    return work


def _grid(found: Sequence[Share], project_id: str, moment: datetime) -> Grid:
    columns = [
        Column(name="Shows", kind="cut"),
        Column(name="Kind"),
        Column(name="State"),
        Column(name="Shared by"),
        Column(name="Until"),
        Column(name="Age", kind="num", order="descending"),
        Column(name="Take back", hide_name=True),
    ]
    rows = [_row(one, project_id, moment) for one in found]
    return Grid(caption="Share links, newest first", columns=columns, rows=rows, exported_columns=range(6))


def _row(one: Share, project_id: str, moment: datetime) -> Row:
    text, tone = state_of(one, moment)
    back = Cell()
    if text == "✓ works":
        action = project_path(project_id, "shares", one.id, "revoke")
        back = Cell(button=Button(text="Take back", about=one.title[:60], action=action))
    return Row(
        cells=[
            Cell(text=one.title),
            Cell(text=KINDS[one.kind].name),
            Cell(text=text, badge=tone, value=text[2:]),
            Cell(text=one.made_by),
            Cell(text=one.expires_at[:10], value=one.expires_at),
            Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
            back,
        ]
    )


def state_of(one: Share, moment: datetime) -> tuple[str, Tone]:
    """Whether a link still shows something, in words and a tone."""
    if one.revoked_at is not None:
        return "✕ taken back", "plain"
    return ("✓ works", "good") if one.expires_at > format_instant(moment) else ("○ ended", "plain")


class ShareForm(Struct, frozen=True, kw_only=True):
    """What is shared."""

    kind: ShareKind
    object_id: list[str]
    """Its ids."""
    view: str = ""
    """The state of its page, as a query string."""
    days: Annotated[int, Meta(ge=1, le=MAX_DAYS)] = 7
    """How long the link works."""


async def share(call: Call, form: ShareForm) -> Answer:
    project_id, kind = call.params["project_id"], KINDS[form.kind]
    if len(form.object_id) != kind.ids:
        raise Refusal("INVALID_REQUEST", f"A link to a {form.kind} names {kind.ids} of them.")
    view = msgspec.structs.replace(decode_query(form.view.encode(), kind.query), format="html")
    # Reading the page proves that the object is there, and in this project.
    work = await kind.open(call, project_id, form.object_id, view, here_of(call, view))
    page: PageContext = await call.search(work)
    made, secret = await call.service.database.write(
        partial(
            store.create_share,
            project_id=project_id,
            kind=form.kind,
            object_ids=form.object_id,
            title=page.title[:200],
            made_by=person_of(call.access),
            actor=call.access.token_id,
            days=form.days,
        )
    )
    state = {name: value for name, value in query_values(view).items() if name != "list"}
    link = with_query(f"/shared/{secret}", state)
    return await respond(call, _listed(call, SharesQuery(), made, link))


async def revoke(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    taken = await call.service.database.write(
        partial(
            store.revoke_share,
            share_id=call.params["share_id"],
            project_id=project_id,
            actor=call.access.token_id,
        )
    )
    return await redirect(
        call, project_path(project_id, "shares"), f"The link to “{taken.title[:60]}” is taken back."
    )


_SHARES = "/projects/{project_id}/shares"
ROUTES = (
    page_route(_SHARES, shares, role="write", query=SharesQuery, summary="Links for people without a login"),
    form_route(_SHARES, share, ShareForm, summary="Make a share link"),
    form_route(f"{_SHARES}/{{share_id}}/revoke", revoke, NoFields, summary="Take a share link back"),
    Route(
        method="GET",
        path="/shared/{secret}",
        handler=shared,
        audience="public",
        query=dict,
        summary="What a share link shows",
        tag="Pages",
    ),
)
