"""The first page: where the server is, how to use it and, once logged in, the experiments of every project."""

from collections.abc import Mapping
from functools import partial
from html import escape

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import ExperimentSummary, ScorerSummary
from evenhand.core.objects.projects import Project
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, answer_for, error_answer
from evenhand.server.http.routes import Route
from evenhand.server.http.sessions import SESSION_SECONDS
from evenhand.store.connection import Connection
from evenhand.store.experiments import list_experiments
from evenhand.store.projects import list_projects
from evenhand.store.summaries import read_summary

HTML = b"text/html; charset=utf-8"
SHOWN_PROJECTS = 50
SHOWN_EXPERIMENTS = 10


class LoginQuery(Struct, frozen=True, kw_only=True):
    """What the login link carries."""

    code: str = ""
    """Works once."""


async def login(call: Call, query: LoginQuery) -> Answer:
    sessions = call.service.sessions
    session = sessions.redeem(query.code)
    if session is not None:
        flags = f"; HttpOnly; SameSite=Lax; Path=/; Max-Age={SESSION_SECONDS:.0f}"
        return _to_first_page((b"set-cookie", sessions.cookie + f"={session}{flags}".encode()))
    # Browsers open a link twice by themselves, for instance ahead of time: who is logged in need not hear of it.
    if sessions.access(call.headers.get(b"cookie", b"")) is not None:
        return _to_first_page()
    return page(
        "<p>This login link was used already or is too old. Start the server again for a new one.</p>", 401
    )


def _to_first_page(*headers: tuple[bytes, bytes]) -> Answer:
    return Answer(303, b"", content_type=HTML, headers=[(b"location", b"/"), *headers])


async def look_at_login(call: Call) -> Answer:
    return Answer(200, b"", content_type=HTML)


async def landing(call: Call) -> Answer:
    return page(await call.read(partial(_projects, scope=call.scope)))


def without_session(error: Exception, headers: Mapping[bytes, bytes]) -> Answer:
    """How to log in, for those who have not; other errors as everywhere."""
    if isinstance(error, Refusal) and error.code == "UNAUTHORIZED":
        return page(
            "<p>The scoring service is running. Send <code>Authorization: Bearer &lt;token&gt;</code> with every call, "
            "or open the login link that the server printed when it started.</p>"
        )
    return answer_for(error) or error_answer(
        "INTERNAL_ERROR", "Something went wrong; the server's log says more."
    )


def _projects(connection: Connection, *, scope: str | None) -> str:
    """Every project with its newest experiments; worked out away from the event loop."""
    projects = list_projects(connection, scope=scope, after=None, limit=SHOWN_PROJECTS + 1)
    parts = [_project(connection, project) for project in projects[:SHOWN_PROJECTS]]
    if len(projects) > SHOWN_PROJECTS:
        parts.append(
            f"<p>These are the first {SHOWN_PROJECTS} projects; <code>/v1/projects</code> has all.</p>"
        )
    return "".join(parts) or "<p>No projects yet.</p>"


def _project(connection: Connection, project: Project) -> str:
    from evenhand.server.api.summaries import summarise  # numpy: not needed to start

    title = f"<h2>{escape(project.name)} <code>{escape(project.id)}</code></h2>"
    found = list_experiments(connection, project_id=project.id, before=None, limit=SHOWN_EXPERIMENTS + 1)
    if not found:
        return title + "<p>No experiments yet.</p>"
    rows = [
        _row(one.name, summarise(read_summary(connection, one.id, scope=None)))
        for one in found[:SHOWN_EXPERIMENTS]
    ]
    more = f"<p>These are the newest {SHOWN_EXPERIMENTS}.</p>" if len(found) > SHOWN_EXPERIMENTS else ""
    table = f"<table><tr><th>experiment<th>scores<th>status<th>runs{''.join(rows)}</table>"
    return f"{title}<div class=wide>{table}</div>{more}"


def _by_version(scorer: ScorerSummary) -> str:
    """Two versions of a scorer have no mean in common."""
    return ", ".join(
        escape(f"{one.canonical_name} {one.version}" if one.version else "submitted")
        + ("" if one.mean is None else f" {one.mean:.3f}")
        + f" ({one.score_count:,})"
        for one in scorer.versions
    )


def _row(name: str, summary: ExperimentSummary) -> str:
    scores = []
    for scorer in summary.scores_by_scorer.values():
        if scorer.mixed_versions:
            scores.append(f"{escape(scorer.scorer_name)}: {_by_version(scorer)}")
        elif scorer.mean is not None:
            interval = ""
            if scorer.ci_lower is not None and scorer.ci_upper is not None:
                interval = f" (95 %: {scorer.ci_lower:.3f} to {scorer.ci_upper:.3f})"
            mixed = "" if scorer.mixed is None else f": {escape(scorer.mixed)}"
            scores.append(f"{escape(scorer.scorer_name)} {scorer.mean:.3f}{interval}{mixed}")
        elif scorer.distribution:
            most = sorted(scorer.distribution.items(), key=lambda pair: -pair[1])[:5]
            counts = ", ".join(f"{escape(label[:40])} {count}" for label, count in most)
            scores.append(f"{escape(scorer.scorer_name)}: {counts}")
    return (
        f"<tr><td class=long>{escape(name)}<td class=long>{'<br>'.join(scores)}"
        f"<td>{summary.status}<td>{summary.run_count}"
    )


def page(content: str, status: int = 200) -> Answer:
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Evenhand</title>"
        "<link rel=icon href=/docs/icon.svg><link rel=stylesheet href=/docs/style.css><h1>Evenhand</h1>"
        f"{content}<p><a href=/docs>HTTP reference</a> · <a href=/openapi.json>openapi.json</a></p>"
    )
    return Answer(status, text.encode(), content_type=HTML)


ROUTES = (
    Route(
        method="GET",
        path="/",
        handler=landing,
        audience="session:read",
        render_error=without_session,
        summary="The first page",
        tag="Pages",
        documented=False,
    ),
    Route(
        method="GET",
        path="/login",
        handler=login,
        audience="public",
        query=LoginQuery,
        status=303,
        summary="Log in with a browser by the link that the server printed",
        tag="Pages",
        documented=False,
    ),
    Route(
        method="HEAD",
        path="/login",
        handler=look_at_login,
        audience="public",
        summary="Looking at the link does not use it up",
        tag="Pages",
        documented=False,
    ),
)
