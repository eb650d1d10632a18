"""Errors as pages for browsers. Programs get the JSON envelope."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.server.http.answers import Answer, ErrorEnvelope
from evenhand.server.http.routes import Route
from evenhand.server.pages.frame import Frame, html_answer, visitor
from evenhand.server.pages.links import Here
from evenhand.server.service import Service

HEADINGS = {
    400: "This cannot be done",
    401: "Log in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "In the way",
    413: "Too large",
    422: "This cannot be done",
    429: "Too fast",
    503: "Busy",
}


class ErrorPage(Struct, frozen=True, kw_only=True):
    """What went wrong."""

    title: str
    message: str
    status: int
    here: Here
    crumbs: tuple[()] = ()


class LoginPage(Struct, frozen=True, kw_only=True):
    """How to get in."""

    title: str = "Log in"
    here: Here
    """Where the person wanted to go."""
    trouble: str = ""
    """Why the last attempt failed."""
    crumbs: tuple[()] = ()


def wants_page(scope: Mapping[str, Any], route: Route | None) -> bool:
    """Whether an error is for a person: on a page, or at a public or unknown address that a browser asked for."""
    if route is not None and (route.is_page or route.form is not None):
        return True
    path: bytes = scope["raw_path"]
    accepts = dict(scope["headers"]).get(b"accept", b"")
    for_programs = path.startswith(b"/v1/") if route is None else bool(route.operation)
    return not for_programs and b"text/html" in accepts


def error_page(service: Service, error: Exception, known: Answer, scope: Mapping[str, Any]) -> Answer:
    """The page for an error whose answer to programs is `known`."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    path = scope["raw_path"].decode("ascii", "replace")
    if scope["query_string"]:
        path += "?" + scope["query_string"].decode("ascii", "replace")
    if isinstance(error, Refusal) and error.code == "UNAUTHORIZED":
        return login_page(service, headers, path if scope["method"] in ("GET", "HEAD") else "/")
    body = msgspec.json.decode(known.body, type=ErrorEnvelope).error
    more = body.details.get("request_id") if known.status == 500 else None
    message = f"{body.message} Request {more}." if more else body.message
    page = ErrorPage(
        title=HEADINGS.get(known.status, "Something went wrong"),
        message=message,
        status=known.status,
        here=Here(path),
    )
    answer = html_answer(headers, "error.html", _bare_frame(service, headers), page, known.status)
    answer.headers += known.headers
    return answer


def login_page(
    service: Service, headers: Mapping[bytes, bytes], path: str, trouble: str = "", status: int = 401
) -> Answer:
    """How to get in, for those who are not; `path` is where they wanted to go."""
    page = LoginPage(here=Here(path), trouble=trouble)
    return html_answer(headers, "login.html", _bare_frame(service, headers), page, status)


def _bare_frame(service: Service, headers: Mapping[bytes, bytes]) -> Frame:
    """A frame without a project, made without the database: that may be what failed."""
    secret = service.sessions.form_secret(headers.get(b"cookie", b""))
    return Frame(secret=secret, **visitor(headers))
