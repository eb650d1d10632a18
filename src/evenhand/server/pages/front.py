"""The way in: logging in and out, choosing a project, and the theme."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import Project
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.forms import MEDIA_TYPES
from evenhand.server.http.routes import Route
from evenhand.server.http.sessions import SESSION_SECONDS
from evenhand.server.pages.errors import login_page
from evenhand.server.pages.frame import (
    HTML,
    THEME_COOKIE,
    NoFields,
    PageContext,
    PageQuery,
    form_route,
    here_of,
    is_secure,
    page_route,
    respond,
)
from evenhand.server.pages.links import local_path, project_path, with_query
from evenhand.store.connection import Connection
from evenhand.store.projects import list_projects

SHOWN_PROJECTS = 200
YEAR = 365 * 24 * 3600


class LoginQuery(Struct, frozen=True, kw_only=True):
    """What the login link carries."""

    code: str = ""
    """Works once."""
    next: str = "/"
    """Where to go on to."""


class LoginForm(Struct, frozen=True, kw_only=True):
    """Logging in with a token."""

    token: str = ""
    """The secret of a token."""
    next: str = "/"
    """Where to go on to."""


class ThemeForm(Struct, frozen=True, kw_only=True):
    """Light, dark, or as the system has it."""

    theme: Literal["auto", "light", "dark"]
    next: str = "/"
    """The page to go back to."""


class ProjectsQuery(PageQuery, frozen=True, kw_only=True):
    """Which projects."""

    after: str = ""
    """Those after this one."""


class ProjectsPage(PageContext, frozen=True, kw_only=True):
    """Every project, to choose one."""

    template: ClassVar[str] = "projects.html"

    projects: Sequence[Project]
    """By id."""
    more: str = ""
    """The address of those that follow."""


async def login(call: Call, query: LoginQuery) -> Answer:
    sessions = call.service.sessions
    found = await sessions.redeem(query.code) if query.code else None
    if found is not None:
        return _logged_in(call, found.session, found.destination)
    # Browsers open a link twice by themselves, for instance ahead of time: who is logged in need not hear of it.
    if await sessions.access(call.headers.get(b"cookie", b"")) is not None:
        return _go_on(query.next)
    trouble = "This login link was used already or is too old. Start the server again for a new one, or use a token."
    return login_page(call.service, call.headers, local_path(query.next), trouble if query.code else "")


async def login_with_token(call: Call, form: LoginForm) -> Answer:
    authenticator = call.service.authenticator
    access = await authenticator.access_for(form.token.strip().encode())
    if access is None:
        try:
            authenticator.wrong.record("login")
        except Refusal as error:
            return login_page(call.service, call.headers, local_path(form.next), str(error), 429)
        return login_page(call.service, call.headers, local_path(form.next), "No such token.")
    return _logged_in(call, await call.service.sessions.open(access), local_path(form.next))


def _logged_in(call: Call, session: str, destination: str) -> Answer:
    secure = "; Secure" if is_secure(call.headers) else ""
    flags = f"; HttpOnly; SameSite=Lax; Path=/; Max-Age={SESSION_SECONDS}{secure}"
    cookie = call.service.sessions.cookie + f"={session}{flags}".encode()
    return _go_on(destination, (b"set-cookie", cookie))


def _go_on(path: str, *headers: tuple[bytes, bytes]) -> Answer:
    location = (b"location", local_path(path).encode())
    return Answer(303, b"", content_type=HTML, headers=[location, *headers])


async def look_at_login(call: Call) -> Answer:
    return Answer(200, b"", content_type=HTML)


async def logout(call: Call, form: NoFields) -> Answer:
    await call.service.sessions.close(call.headers.get(b"cookie", b""))
    return _go_on("/login")


async def choose_theme(call: Call, form: ThemeForm) -> Answer:
    cookie = THEME_COOKIE + f"={form.theme}; HttpOnly; SameSite=Lax; Path=/; Max-Age={YEAR}".encode()
    return _go_on(form.next, (b"set-cookie", cookie))


async def first_page(call: Call) -> Answer:
    """One project is chosen by itself; several are shown to choose from."""
    found = await call.read(
        lambda connection: list_projects(connection, scope=call.scope, after=None, limit=2)
    )
    if len(found) == 1:
        return _go_on(project_path(found[0].id, _home(call)))
    return _go_on("/projects")


async def projects(call: Call, query: ProjectsQuery) -> Answer:
    def work(connection: Connection) -> ProjectsPage:
        found = list_projects(
            connection, scope=call.scope, after=query.after or None, limit=SHOWN_PROJECTS + 1
        )
        more = len(found) > SHOWN_PROJECTS
        return ProjectsPage(
            title="Projects",
            here=here_of(call, query),
            projects=found[:SHOWN_PROJECTS],
            more=with_query("/projects", {"after": found[SHOWN_PROJECTS - 1].id}) if more else "",
        )

    return await respond(call, work, query)


async def project_root(call: Call) -> Answer:
    return _go_on(project_path(call.params["project_id"], _home(call)))


def _home(call: Call) -> str:
    return "dashboard" if call.access.allows("read") else "queue"


ROUTES = (
    page_route("/", first_page, role="review", summary="The first page"),
    page_route("/projects", projects, role="review", query=ProjectsQuery, summary="Choose a project"),
    page_route("/projects/{project_id}", project_root, role="review", summary="A project's first page"),
    Route(
        method="GET",
        path="/login",
        handler=login,
        audience="public",
        query=LoginQuery,
        status=303,
        summary="Log in with a browser by the link that the server printed",
        tag="Pages",
    ),
    Route(
        method="HEAD",
        path="/login",
        handler=look_at_login,
        audience="public",
        summary="Looking at the link does not use it up",
        tag="Pages",
    ),
    Route(
        method="POST",
        path="/login",
        handler=login_with_token,
        audience="public",
        form=LoginForm,
        media_types=MEDIA_TYPES,
        status=303,
        summary="Log in with a browser by a token",
        tag="Pages",
    ),
    form_route("/logout", logout, NoFields, role="review", summary="Log out"),
    Route(
        method="POST",
        path="/theme",
        handler=choose_theme,
        audience="public",
        form=ThemeForm,
        media_types=MEDIA_TYPES,
        status=303,
        summary="Light, dark, or as the system has it",
        tag="Pages",
    ),
)
