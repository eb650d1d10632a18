"""The route table's row, and finding the row for a request.

Everything about an endpoint is said once, here: validation, authorisation, the OpenAPI document and the tests that
walk all endpoints read the same rows.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import Role
from evenhand.server.http.answers import Answer

Method = Literal["GET", "HEAD", "POST", "PATCH", "DELETE"]
Handler = Callable[..., Awaitable[Answer]]
Audience = Literal[
    "public",
    "token:review",
    "token:read",
    "token:write",
    "token:admin",
    "session:review",
    "session:read",
    "session:write",
    "session:admin",
]
"""Who may call an endpoint: everybody, holders of a bearer token, or people who logged in with a browser; of the last
two, those with at least that role."""


ROLES: dict[Audience, Role | None] = {
    "public": None,
    "token:review": "review",
    "session:review": "review",
    "token:read": "read",
    "token:write": "write",
    "token:admin": "admin",
    "session:read": "read",
    "session:write": "write",
    "session:admin": "admin",
}


MOST_PARAMETERS = 64
"""Of one query; each metadata filter is one."""


class Route(Struct, frozen=True, kw_only=True):
    """One endpoint."""

    method: Method
    """The HTTP method."""
    path: str
    """Segments in braces are parameters: `/v1/datasets/{dataset_id}`."""
    handler: Handler
    """Called with the call, then the body (if `request`), then the query (if `query`)."""
    summary: str
    """One line for the reference."""
    audience: Audience
    """Who may call it. There is no default, so that nothing is public by omission."""
    request: Any = None
    """The type of the JSON body; None for no body."""
    form: Any = None
    """The type of a page's form, which comes with its secret; None for no form. Called with it as with a body."""
    query: Any = None
    """The type of the query parameters."""
    response: Any = None
    """The type of the answer's body."""
    status: int = 200
    """The status of success."""
    other_answers: dict[int, Any] = {}
    """Other successes: status and type of the body."""
    errors: tuple[str, ...] = ()
    """The error codes that are this endpoint's own; the general ones are added."""
    reads_body: bool = False
    """True when the handler reads the body itself."""
    stream_types: tuple[str, ...] = ()
    """The content types of an answer that is sent as a stream; none for complete answers."""
    takes_basic: bool = False
    """Whether the token may also come as the password of `Authorization: Basic`."""
    media_types: tuple[str, ...] = ("application/json",)
    """The content types that a body may have."""
    render_error: Callable[[Exception, Mapping[bytes, bytes]], Answer] | None = None
    """Makes the answer to an error, given the request's headers, instead of the JSON envelope."""
    explain_malformed: Callable[[bytes, Exception], Exception] | None = None
    """Turns the error of a body that could not be decoded into a more precise one."""
    body_limit: Literal["body", "otlp", "import"] = "body"
    """Which of the limits on bodies holds."""
    operation: str = ""
    """Its name in the interface for programs, such as `create_score`: generated clients call it so. Pages for people have
    none and are not in the OpenAPI document."""
    body_text: str = ""
    """What a body that the handler reads itself must hold."""
    tag: str = ""
    """The chapter of the reference."""

    @property
    def is_page(self) -> bool:
        """Whether people meet it in a browser: errors are pages then."""
        return self.audience.startswith("session:")

    @property
    def role(self) -> Role | None:
        """The least role that is let in; None for a public endpoint."""
        return ROLES[self.audience]

    @property
    def parameters(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


class Match(Struct, frozen=True):
    """The row for a request and the values of its path's parameters."""

    route: Route
    params: dict[str, str]


class _Node:
    __slots__ = ("children", "parameter", "routes")

    def __init__(self) -> None:
        self.children: dict[bytes, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, Route] = {}


class RouteTable:
    """Finds rows by method and raw path. The path stays encoded, so that an id may contain a slash."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._root
            for part in route.path.encode().split(b"/")[1:]:
                if part.startswith(b"{"):
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.children.setdefault(part, _Node())
            if route.method in node.routes:
                raise ValueError(f"two routes for {route.method} {route.path}")
            node.routes[route.method] = route
        # Most requests go to paths without parameters, which are found in one step.
        self._plain: dict[tuple[str, bytes], Match] = {
            (route.method, route.path.encode()): Match(route, {})
            for route in self.routes
            if not route.parameters
        }

    def find(self, method: str, raw_path: bytes) -> Match:
        """The row; `NOT_FOUND` or `METHOD_NOT_ALLOWED` when there is none."""
        plain = self._plain.get((method, raw_path))
        if plain is not None:
            return plain
        parts = raw_path.split(b"/")[1:]
        wanted = "GET" if method == "HEAD" else method
        found = list(self._walk(self._root, parts, 0, []))
        if not found:
            raise Refusal("NOT_FOUND", "There is nothing at this address.")
        # Most exact first. A trace may have the name of another path: `GET /v1/traces/ingest` reads one.
        node, values = next((pair for pair in found if wanted in pair[0].routes), found[0])
        route = node.routes.get(wanted)
        if route is None:
            allowed = sorted({name for other, _ in found for name in other.routes})
            raise Refusal("METHOD_NOT_ALLOWED", f"{method[:20]} is not possible here.", {"allowed": allowed})
        if not values:
            return Match(route, {})
        return Match(route, dict(zip(route.parameters, map(_percent_decoded, values), strict=True)))

    def _walk(
        self, node: _Node, parts: list[bytes], position: int, values: list[bytes]
    ) -> Iterator[tuple[_Node, list[bytes]]]:
        if position == len(parts):
            if node.routes:
                yield node, values
            return
        part = parts[position]
        child = node.children.get(part)
        if child is not None:
            yield from self._walk(child, parts, position + 1, values)
        if node.parameter is not None and part:
            yield from self._walk(node.parameter, parts, position + 1, [*values, part])


def _percent_decoded(part: bytes) -> str:
    try:
        text = unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("INVALID_REQUEST", "The address is not valid UTF-8.") from None
    if "\x00" in text:
        raise Refusal("INVALID_REQUEST", "An id cannot contain the character NUL.")
    return text


def decode_query(query_string: bytes, wanted: Any) -> Any:
    """The query parameters as `wanted`; unknown ones are ignored, repeated ones are refused.

    `name.key=value` goes into the field `name` where that is a table of texts.
    """
    if not query_string:
        return _without_parameters(wanted)
    given: dict[str, Any] = {}
    if query_string.count(b"&") >= MOST_PARAMETERS:
        raise Refusal("INVALID_REQUEST", f"A query has at most {MOST_PARAMETERS} parameters.")
    for pair in query_string.split(b"&"):
        if not pair:
            continue
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        key = _percent_decoded(name)
        if key in given:
            raise Refusal("INVALID_REQUEST", f"'{key[:100]}' is given twice.", {"field": key[:100]})
        given[key] = _percent_decoded(value)
    return typed_query(given, wanted)


@cache
def _without_parameters(wanted: Any) -> Any:
    return typed_query({}, wanted)


def typed_query(given: dict[str, Any], wanted: Any) -> Any:
    """Decoded parameters as `wanted`."""
    if wanted is dict:
        return given
    if getattr(wanted, "empty_is_absent", False):
        given = {name: value for name, value in given.items() if value != ""}
    for table in _tables(wanted):
        given[table] = {
            key.removeprefix(f"{table}."): value
            for key, value in given.items()
            if key.startswith(f"{table}.")
        }
    try:
        return msgspec.convert(given, type=wanted, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("INVALID_REQUEST", f"In the query: {error}") from None


@cache
def _tables(wanted: Any) -> tuple[str, ...]:
    return tuple(
        field.encode_name for field in msgspec.structs.fields(wanted) if field.type == dict[str, str]
    )
