"""What every page has: the project and its switcher, the navigation, who is logged in, the theme, messages.

A page is four small things: a `PageContext` (what its template shows, typed), a function that reads it from the store,
a template, and a row made by `page_route`. `respond` joins them. Changes are rows made by `form_route`; their handlers
end with `redirect`.
"""

import asyncio
import csv
import gzip
import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar
from urllib.parse import quote_plus

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.objects.projects import Project, Role
from evenhand.core.objects.shares import Share
from evenhand.core.objects.views import View
from evenhand.core.timestamps import now, parse_instant
from evenhand.reports import numbers
from evenhand.reports.rendering import environment
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, encode_json
from evenhand.server.http.auth import ENVIRONMENT, LOGIN_LINK, Access
from evenhand.server.http.forms import MEDIA_TYPES, SECRET
from evenhand.server.http.proxy import ROOT, SCHEME
from evenhand.server.http.routes import Audience, Handler, Route
from evenhand.server.http.sessions import cookie_value
from evenhand.server.pages.assets import asset_path
from evenhand.server.pages.grid import Grid
from evenhand.server.pages.links import Here, local_path, project_path
from evenhand.server.pages.navigation import ICONS, Group, groups_for
from evenhand.server.streams import PARQUET
from evenhand.store.connection import Connection
from evenhand.store.live import project_mark
from evenhand.store.project_summary import queue_counts
from evenhand.store.projects import get_project, list_projects, not_found
from evenhand.store.views import list_views

HTML = b"text/html; charset=utf-8"
THEME_COOKIE = b"evenhand_theme"
THEMES = ("auto", "light", "dark")
SWITCHER_PROJECTS = 20
"""Projects in the switcher; more are on a page of their own."""
SMALLEST_PACKED = 1_400
"""Shorter pages fit into one packet anyway."""
AUDIENCES: dict[Role, Audience] = {
    "review": "session:review",
    "read": "session:read",
    "write": "session:write",
    "admin": "session:admin",
}
T = TypeVar("T", bound="PageContext")


class Crumb(Struct, frozen=True):
    """A page above this one."""

    text: str
    href: str


class PageQuery(Struct, frozen=True, kw_only=True):
    """The query parameters that every page takes."""

    empty_is_absent: ClassVar[bool] = True
    """A filter form sends its empty fields too."""

    format: Literal["html", "csv", "json", "parquet"] = "html"
    """`csv`, `json` and `parquet`: the table on screen as a file."""


class ListQuery(PageQuery, frozen=True, kw_only=True):
    """The query of a page that shows a part of a list."""

    cursor: str = ""
    """Where the part starts."""


class PageContext(Struct, frozen=True, kw_only=True):
    """What a template shows. Each page has its own subclass."""

    template: ClassVar[str]
    """The file in `templates/`."""
    section: ClassVar[str] = ""
    """The entry of the navigation that it belongs to."""

    has_views: ClassVar[bool] = False
    """Whether its filters can be saved under a name."""

    title: str
    """The heading."""
    crumbs: Sequence[Crumb] = ()
    """The pages above it; without any, the project stands there."""
    here: Here
    """Its address."""
    live: bool = False
    """Whether it shows something that still runs: then the page follows it by itself."""
    shared_as: Sequence[str] = ()
    """What a share link of this page shows: a kind of `ShareKind` and the ids; empty where there is none."""

    def table(self) -> Grid | None:
        """The table that the CSV and JSON links export."""
        return None


class ListPage(PageContext, frozen=True, kw_only=True):
    """A part of a list."""

    grid: Grid
    """Its rows."""
    next: str = ""
    """The address of the next part; empty at the end."""
    first: str = ""
    """That of the first part; empty there."""

    def table(self) -> Grid:
        return self.grid


class Frame(Struct, frozen=True, kw_only=True):
    """What stands around a page's own content."""

    project: Project | None = None
    """The project; None where none is chosen."""
    projects: Sequence[Project] = ()
    """Those of the switcher."""
    groups: Sequence[Group] = ()
    """The navigation."""
    person: str = ""
    """Who is logged in; empty for nobody."""
    role: str = ""
    """What they may do."""
    theme: str = "auto"
    """`auto`, `light` or `dark`."""
    secret: str = ""
    """What forms bring back."""
    notices: Sequence[str] = ()
    """What was just done."""
    origin: str = ""
    """This server's address, for commands to copy."""
    moment: datetime
    """When the page was made."""
    views: Sequence[View] = ()
    """Saved states of the page."""
    mark: str = ""
    """What pages that follow something compare with the news; empty for others."""
    shared: Share | None = None
    """The link by which somebody without a session reads the page; None within a project."""

    @property
    def next_theme(self) -> str:
        return THEMES[(THEMES.index(self.theme) + 1) % len(THEMES)]

    @property
    def home(self) -> str:
        """The first page of a project: reviewers see only their own."""
        return "queue" if self.role == "review" else "dashboard"

    @property
    def can_read(self) -> bool:
        return self.role in ("read", "write", "admin")

    @property
    def can_write(self) -> bool:
        return self.role in ("write", "admin")


def person_of(access: Access) -> str:
    """Who is logged in, as pages and annotations name them."""
    known = {LOGIN_LINK: "Local user", ENVIRONMENT: "Administrator"}
    return access.reviewer or known.get(access.token_id, access.token_id)


def page_route(path: str, handler: Handler, *, summary: str, role: Role = "read", query: Any = None) -> Route:
    """The row of a page: people who are logged in with at least `role` see it."""
    return Route(
        method="GET",
        path=path,
        handler=handler,
        audience=AUDIENCES[role],
        query=query,
        summary=summary,
        tag="Pages",
    )


def form_route(path: str, handler: Handler, form: Any, *, summary: str, role: Role = "write") -> Route:
    """The row of something that a page changes: a form with its secret, from people with at least `role`."""
    return Route(
        method="POST",
        path=path,
        handler=handler,
        audience=AUDIENCES[role],
        form=form,
        media_types=MEDIA_TYPES,
        status=303,
        summary=summary,
        tag="Pages",
    )


def own_project(call: Call) -> str:
    """The project in the address; `NOT_FOUND` unless the caller may see it. Pages check it with their frame; what a
    form changes checks it here."""
    project_id = call.params["project_id"]
    if call.scope is not None and call.scope != project_id:
        raise not_found("project", project_id)
    return project_id


class NoFields(Struct, frozen=True, kw_only=True):
    """A form of buttons alone."""


def here_of(call: Call, query: Struct | None = None) -> Here:
    """The address of the page that a call asks for."""
    return Here(call.path.decode("ascii", "replace"), query)


async def respond(
    call: Call,
    work: Callable[[Connection], T],
    query: PageQuery | None = None,
    *,
    search: bool = False,
    follows: bool = False,
) -> Answer:
    """The page that `work` reads from the store. It runs away from the event loop, like the rendering.

    `search`: for lists whose filter may have to look at many rows. `follows`: for pages that may be `live`.
    """
    around = _around(call)
    project_id = call.params.get("project_id")

    def read(connection: Connection) -> tuple[Frame, T]:
        frame = load_frame(connection, project_id, call.scope, around)
        # Before the page: what changes meanwhile is news then.
        mark = project_mark(connection, project_id) if follows and project_id is not None else ""
        context = work(connection)
        found: Sequence[View] = ()
        if context.has_views and project_id is not None:
            found = list_views(connection, project_id=project_id, page=context.here.page)
        return replace(frame, mark=mark if context.live else "", views=found), context

    frame, context = await (call.search if search else call.read)(read)
    kind = "html" if query is None else query.format
    if kind != "html" and (table := context.table()) is not None:
        return await asyncio.to_thread(_export, table, kind, context.title)
    return await asyncio.to_thread(html_answer, call.headers, context.template, frame, context)


async def respond_shared(call: Call, share: Share, work: Callable[[Connection], PageContext]) -> Answer:
    """The page that `work` reads, for somebody who has a share link."""

    def read(connection: Connection) -> tuple[Frame, PageContext]:
        project = get_project(connection, share.project_id, scope=share.project_id)
        return Frame(project=project, shared=share, **visitor(call.headers)), work(connection)

    frame, context = await call.search(read)
    return await asyncio.to_thread(html_answer, call.headers, context.template, frame, context)


def load_frame(
    connection: Connection, project_id: str | None, scope: str | None, around: Mapping[str, Any]
) -> Frame:
    """`NOT_FOUND` for a project that is not there, or that the caller may not see."""
    projects = list_projects(connection, scope=scope, after=None, limit=SWITCHER_PROJECTS + 1)
    if project_id is None:
        return Frame(projects=projects, **around)
    project = get_project(connection, project_id, scope=scope)
    waiting = queue_counts(connection, project_id).pending_count
    groups = groups_for(project_path(project_id), around["role"], {"queue": waiting})
    return Frame(project=project, projects=projects, groups=groups, **around)


def _around(call: Call) -> dict[str, Any]:
    """The parts of a frame that need no database."""
    return {
        "person": person_of(call.access),
        "role": call.access.role,
        **visitor(call.headers),
        "secret": call.service.sessions.form_secret(call.headers.get(b"cookie", b"")),
        "notices": call.service.sessions.take_notices(call.headers.get(b"cookie", b"")),
    }


def visitor(headers: Mapping[bytes, bytes]) -> dict[str, Any]:
    """What a browser says about itself."""
    theme = cookie_value(headers.get(b"cookie", b""), THEME_COOKIE)
    scheme = "https" if is_secure(headers) else "http"
    return {
        "theme": theme if theme in THEMES else "auto",
        "origin": f"{scheme}://{headers.get(b'host', b'localhost').decode('latin-1')}"
        + headers.get(ROOT, b"").decode(),
        "moment": now(),
    }


def is_secure(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the browser came over HTTPS: its own word for forms, otherwise that of a listed proxy."""
    return headers.get(SCHEME) == b"https" or headers.get(b"origin", b"").startswith(b"https://")


_LOCAL = re.compile(r' (href|src|action)="/(?!/)')


def under_root(text: str, headers: Mapping[bytes, bytes]) -> str:
    """The page with the root path before its own addresses. Text from users cannot hold a quoted attribute: it is
    escaped."""
    root = headers.get(ROOT, b"").decode()
    return _LOCAL.sub(rf' \1="{root}/', text) if root else text


_WAY_OUT = re.compile(r'<a\b([^>]*) href="/(?!shared/)[^"]*"([^>]*)>(.*?)</a>', re.DOTALL)
_CLASS = re.compile(r' class="[^"]*"')
_FORM = re.compile(r'<form\b[^>]* method="post".*?</form>', re.DOTALL)


def without_ways_out(text: str) -> str:
    """The page for somebody who has a share link and nothing else: links to other pages become their words, and forms
    that would change something go. Text from users cannot hold an element: it is escaped."""
    return _WAY_OUT.sub(_words_of, _FORM.sub("", text))


def _words_of(link: re.Match[str]) -> str:
    own = _CLASS.search(link[1] + link[2])
    return f"<span{own[0] if own else ''}>{link[3]}</span>"


def html_answer(
    headers: Mapping[bytes, bytes], template: str, frame: Frame, page: object, status: int = 200
) -> Answer:
    """The rendered page, compressed where the browser takes that."""
    text = templates().get_template(template).render(page=page, frame=frame)
    more = [(b"vary", b"accept-encoding, cookie")]
    if frame.shared is not None:
        text = without_ways_out(text)
        more.append((b"x-robots-tag", b"noindex, nofollow"))
    body = under_root(text, headers).encode()
    if len(body) > SMALLEST_PACKED and b"gzip" in headers.get(b"accept-encoding", b""):
        body = gzip.compress(body, 5, mtime=0)
        more.append((b"content-encoding", b"gzip"))
    return Answer(status, body, content_type=HTML, headers=more)


async def redirect(call: Call, path: str, notice: str = "") -> Answer:
    """The answer to a form: go on to `path`, where `notice` says what was done."""
    if notice:
        call.service.sessions.notify(call.headers.get(b"cookie", b""), notice)
    return Answer(303, b"", content_type=HTML, headers=[(b"location", local_path(path).encode())])


def _export(table: Grid, kind: str, title: str) -> Answer:
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in title)[:80] or "table"
    if kind == "json":
        body, content_type = encode_json(table.records()), b"application/json"
    elif kind == "parquet":
        from evenhand.server.parquet_files import records_file  # pyarrow is an extra

        body, content_type = records_file(table.heads(), table.records()), PARQUET.encode()
    else:
        out = io.StringIO()
        csv.writer(out).writerows(table.lines())
        body, content_type = out.getvalue().encode(), b"text/csv; charset=utf-8"
    disposition = f'attachment; filename="{name}.{kind}"'.encode()
    return Answer(200, body, content_type=content_type, headers=[(b"content-disposition", disposition)])


@cache
def templates() -> Environment:
    """The pages' templates over the reports' components, with the filters that pages use."""
    made = environment(PackageLoader("evenhand.server.pages"))
    made.globals.update(asset=asset_path, icons=ICONS, secret_field=SECRET, project_path=project_path)
    made.filters.update(
        duration=numbers.duration,
        number=numbers.number,
        signed=numbers.signed,
        percent=numbers.percent,
        counted=numbers.counted,
        size=numbers.bytes_text,
        dollars=numbers.dollars_text,
        address=quote_plus,
        moment=moment,
        clock=clock,
    )
    return made


def moment(instant: str | datetime | None, *, seconds: bool = False) -> Markup:
    """An instant as an element: in UTC, and in the reader's zone where scripts run."""
    if instant is None:
        return Markup("—")
    at = parse_instant(instant) if isinstance(instant, str) else instant
    shown = f"{at.day} {at:%b %Y, %H:%M:%S}" if seconds else f"{at.day} {at:%b %Y, %H:%M}"
    return Markup('<time datetime="{}" data-shown="{}">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z", "seconds" if seconds else "minutes", shown
    )


def clock(instant: str | None) -> Markup:
    """The time of day of an instant, to the millisecond."""
    if instant is None:
        return Markup("—")
    at = parse_instant(instant)
    return Markup('<time datetime="{}" data-shown="clock">{}</time>').format(
        instant, f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
    )


def age_of(instant: str, moment: datetime) -> str:
    """How long ago, in one unit."""
    return numbers.age((moment - parse_instant(instant)).total_seconds())
