"""The application: one ASGI callable over the route table."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from evenhand.core.errors import InputError, Refusal
from evenhand.core.ids import new_id
from evenhand.server.call import Call
from evenhand.server.config import ServerConfig
from evenhand.server.http.answers import Answer, StreamingAnswer, answer_for, error_answer
from evenhand.server.http.auth import Access, bearer_of
from evenhand.server.http.bodies import (
    OFF_LOOP_BYTES,
    Disconnected,
    Receive,
    check_length,
    check_media_type,
    decode_body,
    limit_for,
    read_body,
    too_large,
    with_timeout,
)
from evenhand.server.http.forms import MEDIA_TYPES, SECRET, read_fields, typed_form
from evenhand.server.http.hosts import HostCheck
from evenhand.server.http.openapi import document
from evenhand.server.http.protocol import EXTENSION, Exchange
from evenhand.server.http.reference import reference_page
from evenhand.server.http.routes import Match, Route, RouteTable, decode_query
from evenhand.server.http.sessions import same_origin
from evenhand.server.pages.errors import error_page, wants_page
from evenhand.server.service import Service
from evenhand.server.table import all_routes
from evenhand.store.database import Database
from evenhand.store.projects import not_found

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

log = logging.getLogger("evenhand.server")

SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


PROBES = (b"/healthz", b"/readyz", b"/metrics")
"""Answered under any load, so that an orchestrator does not restart a busy server."""


_NO_EXTENSIONS: dict[str, Any] = {}


class Application:
    """Finds the row, checks the caller, decodes the body, calls the handler and sends the answer."""

    def __init__(self, service: Service, table: RouteTable) -> None:
        self.service = service
        self.table = table
        self._decoders = {
            id(route): msgspec.json.Decoder(route.request)
            for route in table.routes
            if route.request is not None
        }
        self._limits = {id(route): limit_for(route, service.config.limits) for route in table.routes}
        self._hosts = HostCheck(service.config)
        self._endless: set[asyncio.Task[None]] = set()

    def end_streams(self) -> None:
        """End the streams that would not end by themselves, because the server stops."""
        for stream in self._endless:
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.service.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        telemetry = self.service.telemetry
        request_log = _RequestLog()
        telemetry.under_way += 1
        exchange: Exchange | None = scope.pop("extensions", _NO_EXTENSIONS).get(EXTENSION)
        try:
            answer = await self._answer(scope, receive, exchange, request_log)
        except Disconnected:
            return
        except Exception as error:
            known = answer_for(error)
            if known is None or known.status == 500:
                log.exception("unexpected error", extra={"fields": {"request_id": request_log.request_id()}})
                known = error_answer(
                    "INTERNAL_ERROR",
                    "Something went wrong; the server's log says more.",
                    {"request_id": request_log.request_id()},
                )
            answer = known
            route = request_log.route
            if route is not None and route.render_error is not None:
                answer = route.render_error(error, dict(scope["headers"]))
            elif wants_page(scope, route):
                answer = error_page(self.service, error, known, scope)
        finally:
            telemetry.under_way -= 1
        if request_log.given:
            answer.headers = [*answer.headers, (b"x-request-id", request_log.given)]
        try:
            if isinstance(answer, StreamingAnswer):
                await self._send_stream(answer, receive, send, head=scope["method"] == "HEAD")
            elif (
                exchange is None
                or answer.headers
                or answer.status == 408
                or not _send_whole(exchange, answer)
            ):
                await _send(send, answer)
        finally:
            self._record(scope, answer, time.perf_counter() - started, request_log)

    def _record(self, scope: Scope, answer: Answer, seconds: float, request_log: "_RequestLog") -> None:
        path = request_log.route.path if request_log.route is not None else "unknown"
        method = scope["method"] if request_log.route is not None else "other"
        self.service.telemetry.record(method, path, answer.status, seconds)
        access_log = self.service.config.access_log
        # An outage of the database has its own line in the log; one for every request would hide it.
        failed = answer.status >= 500 and not (answer.status == 503 and self.service.database.is_away)
        if access_log or failed or log.isEnabledFor(logging.DEBUG):
            level = logging.WARNING if failed else logging.INFO if access_log else logging.DEBUG
            _log_request(level, method, path, answer.status, seconds, request_log)

    async def _send_stream(
        self, answer: StreamingAnswer, receive: Receive, send: Send, *, head: bool
    ) -> None:
        """Send the chunks until they end, the client goes away or the server stops."""
        sending = asyncio.ensure_future(_send_chunks(send, answer, head=head))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        telemetry = self.service.telemetry
        telemetry.streams_open += answer.endless
        if answer.endless:
            self._endless.add(sending)
            sending.add_done_callback(self._endless.discard)
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telemetry.streams_open -= answer.endless
            leaving.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        if sending.cancelled():
            await send({"type": "http.response.body", "body": b""})
        else:
            sending.result()

    async def _answer(
        self, scope: Scope, receive: Receive, exchange: Exchange | None, request_log: "_RequestLog"
    ) -> Answer:
        telemetry, limits = self.service.telemetry, self.service.config.limits
        raw_path: bytes = scope["raw_path"]
        if telemetry.under_way > limits.requests and raw_path not in PROBES:
            telemetry.refused_overload += 1
            raise Refusal("OVERLOADED", "Too many requests are under way; try again in a moment.")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(headers) != len(scope["headers"]):
            _refuse_repeated_headers(scope["headers"])
        given_id = headers.get(b"x-request-id")
        if given_id is not None:
            request_log.take(given_id)
        host = headers.get(b"host")
        if host not in self._hosts.accepted:
            self._hosts.check(host, scope["http_version"])
        match = self._find(scope["method"], raw_path, headers)
        route = request_log.route = match.route
        request_log.access = await self._authorise(route, headers, scope)
        if route.is_page:
            _require_own_project(request_log.access, match.params)
        call = Call(self.service, route, match.params, headers, request_log.access, receive, raw_path)
        arguments: list[Any] = []
        if route.request is not None:
            arguments.append(await self._body(call, exchange, scope["query_string"]))
        elif route.form is not None:
            arguments.append(await self._form(call))
        elif route.reads_body:
            call.media_type = check_media_type(route, headers)
            check_length(headers, self._limits[id(route)])
            call.receive = with_timeout(receive, limits.idle_seconds)
        elif call.idempotency_key is not None:
            call.take_fingerprint(scope["query_string"])
        if route.query is not None:
            arguments.append(decode_query(scope["query_string"], route.query))
        try:
            return await route.handler(call, *arguments)
        except Refusal:
            first = None if route.reads_body else await call.first_answer()
            if first is None:
                raise
            return first

    def _find(self, method: str, raw_path: bytes, headers: dict[bytes, bytes]) -> Match:
        try:
            return self.table.find(method, raw_path)
        except Refusal:
            # Without a token nobody learns which addresses exist under /v1.
            if raw_path.startswith(b"/v1/") and b"authorization" not in headers:
                raise Refusal(
                    "UNAUTHORIZED", "Send a valid token as 'Authorization: Bearer <token>'."
                ) from None
            raise

    async def _authorise(self, route: Route, headers: dict[bytes, bytes], scope: Scope) -> Access | None:
        role = route.role
        if role is None:
            return None
        if route.is_page:
            access = await self._session(route, headers)
        else:
            authorization = headers.get(b"authorization")
            if route.takes_basic:
                authorization = bearer_of(authorization)
            known = self.service.authenticator.cached_access(authorization)
            if known is None:
                client = scope.get("client")
                known = await self.service.authenticator.access(authorization, client[0] if client else "")
            access = known
        if not access.allows(role):
            raise Refusal("FORBIDDEN", f"This needs the role '{role}'.", {"role": access.role})
        return access

    async def _session(self, route: Route, headers: dict[bytes, bytes]) -> Access:
        access = await self.service.sessions.access(headers.get(b"cookie", b""))
        if access is None:
            raise Refusal("UNAUTHORIZED", "Log in with a browser first.")
        if route.method not in ("GET", "HEAD") and not same_origin(headers):
            raise Refusal("FORBIDDEN", "A page of another site cannot do this.")
        return access

    async def _form(self, call: Call) -> Any:
        """The posted form: from a page of this server, and with the secret that this session's pages carry."""
        if not same_origin(call.headers):
            raise Refusal("FORBIDDEN", "A page of another site cannot do this.")
        given = call.headers.get(b"content-type", b"").decode("latin-1")
        if given.partition(";")[0].strip().lower() not in MEDIA_TYPES:
            raise Refusal("UNSUPPORTED_MEDIA_TYPE", "A form is expected.", {"allowed": list(MEDIA_TYPES)})
        receive = with_timeout(call.receive, self.service.config.limits.idle_seconds)
        body = await read_body(receive, call.headers, self._limits[id(call.route)], self.service.budget)
        fields = await asyncio.to_thread(read_fields, body, given)
        secret = fields.get(SECRET, [""])[0]
        cookies = call.headers.get(b"cookie", b"")
        if not isinstance(secret, str) or not self.service.sessions.form_is_ours(cookies, secret):
            raise Refusal("FORBIDDEN", "This form is too old. Go back, reload the page and try again.")
        return typed_form(fields, call.route.form)

    async def _body(self, call: Call, exchange: Exchange | None, query_string: bytes) -> Any:
        route, headers, limit = call.route, call.headers, self._limits[id(call.route)]
        call.media_type = check_media_type(route, headers)
        check_length(headers, limit)
        packed = b"content-encoding" in headers
        body = exchange.take_body() if exchange is not None and not packed else None
        if body is None:
            receive = with_timeout(call.receive, self.service.config.limits.idle_seconds)
            body = await read_body(receive, headers, limit, self.service.budget)
        elif len(body) > limit:
            raise too_large(limit)
        call.take_fingerprint(query_string + b"\n" + body)
        decoder = self._decoders[id(route)]
        if len(body) > OFF_LOOP_BYTES:
            return await asyncio.to_thread(_decode, route, body, decoder)
        return _decode(route, body, decoder)


def _decode(route: Route, body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    try:
        return decode_body(body, decoder)
    except InputError as error:
        if route.explain_malformed is not None:
            raise route.explain_malformed(body, error) from None
        raise


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,200}")


class _RequestLog:
    """What the log line of a request says about it."""

    __slots__ = ("_request_id", "access", "given", "route")

    def __init__(self) -> None:
        self.route: Route | None = None
        self.access: Access | None = None
        self._request_id = ""
        self.given = b""

    def take(self, given: bytes) -> None:
        """Take the client's own id of the request, if it looks like one; it goes back with the answer."""
        if _REQUEST_ID.fullmatch(given):
            self.given = given
            self._request_id = given.decode("ascii")

    def request_id(self) -> str:
        self._request_id = self._request_id or new_id()
        return self._request_id


def _log_request(
    level: int, method: str, path: str, status: int, seconds: float, request_log: _RequestLog
) -> None:
    fields = {
        "method": method,
        "path": path,
        "status": status,
        "milliseconds": round(seconds * 1000, 2),
        "token": request_log.access.token_id if request_log.access is not None else None,
        "request_id": request_log.request_id(),
    }
    log.log(level, "request", extra={"fields": fields})


def _refuse_repeated_headers(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse headers that a proxy in front may have read differently than we do."""
    names = [name for name, _ in headers]
    for name in (b"host", b"authorization", b"content-type"):
        if names.count(name) > 1:
            raise Refusal("INVALID_REQUEST", f"The header '{name.decode()}' is given twice.")


def _security_headers(answer: Answer) -> Headers:
    """The headers of every answer, without those that this answer sets itself (a file that may be kept)."""
    if not answer.headers:
        return SECURITY_HEADERS
    own = {name for name, _ in answer.headers}
    return [header for header in SECURITY_HEADERS if header[0] not in own]


def _send_whole(exchange: Exchange, answer: Answer) -> bool:
    head = _head(answer.status, answer.content_type) + b"content-length: %d\r\n\r\n" % len(answer.body)
    return exchange.send(head, answer.body)


@lru_cache(maxsize=256)
def _head(status: int, content_type: bytes) -> bytes:
    """Status line and headers of an answer, up to its length."""
    headers = [(b"content-type", content_type), *SECURITY_HEADERS]
    lines = (name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode()) + b"".join(lines)


async def _send(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        *_security_headers(answer),
    ]
    if answer.headers:
        headers += answer.headers
    if answer.status == 408:
        # The rest of the body may still come; nobody would know where the next request starts.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _send_chunks(send: Send, answer: StreamingAnswer, *, head: bool) -> None:
    headers = [(b"content-type", answer.content_type), *_security_headers(answer), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    try:
        if not head:
            async for chunk in answer.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                # Neither the chunks nor `send` need ever wait, and then no other task would run.
                await asyncio.sleep(0)
    finally:
        await answer.chunks.aclose()
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def make_application(
    config: ServerConfig, database: Database, routes: Sequence[Route] | None = None
) -> Application:
    """The application over an open database, with every endpoint unless `routes` says which."""
    service, routes = Service(config, database), all_routes() if routes is None else routes
    documented = [route for route in routes if route.operation]
    service.documents = {
        "openapi": cache(lambda: document(documented)),
        "reference": cache(lambda: reference_page(documented)),
    }
    return Application(service, RouteTable(routes))


def _require_own_project(access: Access | None, params: dict[str, str]) -> None:
    """A page's project is in its path: somebody who sees one project meets no other, whatever the handler does."""
    project_id = params.get("project_id")
    if access is not None and access.scope is not None and project_id not in (None, access.scope):
        raise not_found("project", project_id or "")
