"""The first page: where the server is, how to use it and, once logged in, the experiments of every project."""

from html import escape

from msgspec import Struct

from evenhand.core.objects.experiments import ExperimentSummary
from evenhand.server.answers import Answer
from evenhand.server.call import Call
from evenhand.server.routes import Route
from evenhand.server.sessions import COOKIE, SESSION_SECONDS
from evenhand.store.connection import Connection
from evenhand.store.experiments import list_experiments
from evenhand.store.projects import list_projects
from evenhand.store.summaries import KeptSummary, read_summary

HTML = b"text/html; charset=utf-8"
SHOWN_PROJECTS = 50
SHOWN_EXPERIMENTS = 10


class LoginQuery(Struct, frozen=True, kw_only=True):
    """What the login link carries."""

    code: str = ""
    """Works once."""


async def login(call: Call, query: LoginQuery) -> Answer:
    session = call.service.sessions.redeem(query.code)
    if session is None:
        return page(
            "<p>This login link was used already or is too old. Start the server again for a new one.</p>",
            401,
        )
    cookie = COOKIE + f"={session}; HttpOnly; SameSite=Lax; Path=/; Max-Age={SESSION_SECONDS:.0f}".encode()
    return Answer(303, b"", content_type=HTML, headers=[(b"location", b"/"), (b"set-cookie", cookie)])


async def landing(call: Call) -> Answer:
    access = call.service.sessions.access(call.headers.get(b"cookie", b""))
    if access is None:
        return page(
            "<p>The scoring service is running. Send <code>Authorization: Bearer &lt;token&gt;</code> with every call, "
            "or open the login link that the server printed when it started.</p>"
        )
    from evenhand.server.summaries import summarise  # numpy: not needed to start

    def work(connection: Connection) -> list[tuple[str, list[tuple[str, KeptSummary]]]]:
        projects = list_projects(connection, scope=access.scope, after=None, limit=SHOWN_PROJECTS)
        return [
            (
                project.name,
                [
                    (experiment.name, read_summary(connection, experiment.id, scope=None))
                    for experiment in list_experiments(
                        connection, project_id=project.id, before=None, limit=SHOWN_EXPERIMENTS
                    )
                ],
            )
            for project in projects
        ]

    parts = []
    for name, experiments in await call.read(work):
        rows = "".join(_row(title, summarise(kept)) for title, kept in experiments)
        table = f"<table><tr><th>experiment<th>status<th>runs<th>scores{rows}</table>" if rows else ""
        parts.append(f"<h2>{escape(name)}</h2>{table or '<p>No experiments yet.</p>'}")
    return page("".join(parts))


def _row(name: str, summary: ExperimentSummary) -> str:
    scores = []
    for scorer in summary.scores_by_scorer.values():
        if scorer.mean is not None:
            interval = ""
            if scorer.ci_lower is not None and scorer.ci_upper is not None:
                interval = f" (95 %: {scorer.ci_lower:.3f} to {scorer.ci_upper:.3f})"
            scores.append(f"{escape(scorer.scorer_name)} {scorer.mean:.3f}{interval}")
        elif scorer.distribution:
            most = sorted(scorer.distribution.items(), key=lambda pair: -pair[1])[:5]
            counts = ", ".join(f"{escape(label[:40])} {count}" for label, count in most)
            scores.append(f"{escape(scorer.scorer_name)}: {counts}")
    return f"<tr><td>{escape(name)}<td>{summary.status}<td>{summary.run_count}<td>{'<br>'.join(scores)}"


def page(content: str, status: int = 200) -> Answer:
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Evenhand</title><link rel=stylesheet href=/docs/style.css><h1>Evenhand</h1>"
        f"{content}<p><a href=/docs>HTTP reference</a> · <a href=/openapi.json>openapi.json</a></p>"
    )
    return Answer(status, text.encode(), content_type=HTML)


ROUTES = (
    Route(
        method="GET",
        path="/",
        handler=landing,
        role=None,
        summary="The first page",
        tag="Pages",
        documented=False,
    ),
    Route(
        method="GET",
        path="/login",
        handler=login,
        role=None,
        query=LoginQuery,
        status=303,
        summary="Log in with a browser by the link that the server printed",
        tag="Pages",
        documented=False,
    ),
)
