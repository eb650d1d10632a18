"""The application: one ASGI callable over the route table."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import Any

import msgspec

from evenhand.core.errors import InputError, Refusal
from evenhand.core.ids import new_id
from evenhand.server.answers import Answer, answer_for, error_answer
from evenhand.server.auth import Access
from evenhand.server.bodies import (
    LARGE,
    Disconnected,
    Receive,
    check_length,
    check_media_type,
    decode_body,
    limit_for,
    read_body,
)
from evenhand.server.call import Call
from evenhand.server.config import ServerConfig
from evenhand.server.hosts import Hosts
from evenhand.server.openapi import document
from evenhand.server.reference import reference_page
from evenhand.server.routes import Match, Route, RouteTable, decode_query
from evenhand.server.service import Service
from evenhand.server.table import all_routes
from evenhand.store.database import Database

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("evenhand.server")

SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
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
"""Answered under any load: who restarts a server for being busy makes things worse."""


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
        self._hosts = Hosts(service.config)

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
        seen = _Seen()
        telemetry.under_way += 1
        try:
            answer = await self._answer(scope, receive, seen)
        except Disconnected:
            return
        except Exception as error:
            known = answer_for(error)
            if known is None or known.status == 500:
                log.exception("unexpected error", extra={"fields": {"request_id": seen.request_id()}})
                known = error_answer(
                    "INTERNAL_ERROR",
                    "Something went wrong; the server's log says more.",
                    {"request_id": seen.request_id()},
                )
            answer = known
            if seen.route is not None and seen.route.refused is not None:
                answer = seen.route.refused(error, dict(scope["headers"]))
        finally:
            telemetry.under_way -= 1
        await _send(send, answer, head=scope["method"] == "HEAD")
        path = seen.route.path if seen.route is not None else "unknown"
        seconds = time.perf_counter() - started
        method = scope["method"] if seen.route is not None else "other"
        telemetry.note(method, path, answer.status, seconds)
        if log.isEnabledFor(logging.DEBUG) or answer.status >= 500:
            _log_request(method, path, answer.status, seconds, seen)

    async def _answer(self, scope: Scope, receive: Receive, seen: "_Seen") -> Answer:
        telemetry, limits = self.service.telemetry, self.service.config.limits
        raw_path: bytes = scope["raw_path"]
        if telemetry.under_way > limits.requests and raw_path not in PROBES:
            telemetry.refused_overload += 1
            raise Refusal("OVERLOADED", "Too many requests are under way; try again in a moment.")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(headers) != len(scope["headers"]):
            _check_repeated(scope["headers"])
        host = headers.get(b"host")
        if host not in self._hosts.seen:
            self._hosts.check(host, scope["http_version"])
        match = self._find(scope["method"], raw_path, headers)
        route = seen.route = match.route
        seen.access = await self._authorise(route, headers, scope)
        call = Call(self.service, route, match.params, headers, seen.access, receive, raw_path)
        arguments: list[Any] = []
        if route.request is not None:
            arguments.append(await self._body(call, scope["query_string"]))
        elif route.streams:
            call.media_type = check_media_type(route, headers)
            check_length(headers, self._limits[id(route)])
        elif call.idempotency_key is not None:
            call.take_fingerprint(scope["query_string"])
        if route.query is not None:
            arguments.append(decode_query(scope["query_string"], route.query))
        try:
            return await route.handler(call, *arguments)
        except Refusal:
            first = None if route.streams else await call.first_answer()
            if first is None:
                raise
            return first

    def _find(self, method: str, raw_path: bytes, headers: dict[bytes, bytes]) -> Match:
        try:
            return self.table.find(method, raw_path)
        except Refusal:
            # Deny by default: without a token nobody learns which addresses exist under /v1.
            if raw_path.startswith(b"/v1/") and b"authorization" not in headers:
                raise Refusal(
                    "UNAUTHORIZED", "Send a valid token as 'Authorization: Bearer <token>'."
                ) from None
            raise

    async def _authorise(self, route: Route, headers: dict[bytes, bytes], scope: Scope) -> Access | None:
        if route.role is None:
            return None
        authorization = headers.get(b"authorization")
        access = self.service.gate.known(authorization)
        if access is None:
            client = scope.get("client")
            access = await self.service.gate.access(authorization, client[0] if client else "")
        if not access.allows(route.role):
            raise Refusal(
                "FORBIDDEN", f"This needs a token with the role '{route.role}'.", {"role": access.role}
            )
        return access

    async def _body(self, call: Call, query_string: bytes) -> Any:
        route = call.route
        call.media_type = check_media_type(route, call.headers)
        body = await read_body(call.receive, call.headers, self._limits[id(route)], self.service.budget)
        call.take_fingerprint(query_string + b"\n" + body)
        decoder = self._decoders[id(route)]
        if len(body) > LARGE:
            return await asyncio.to_thread(_decoded, route, body, decoder)
        return _decoded(route, body, decoder)


def _decoded(route: Route, body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    try:
        return decode_body(body, decoder)
    except InputError as error:
        if route.malformed is not None:
            raise route.malformed(body, error) from None
        raise


class _Seen:
    """What is known of a request when it is logged."""

    __slots__ = ("_request_id", "access", "route")

    def __init__(self) -> None:
        self.route: Route | None = None
        self.access: Access | None = None
        self._request_id = ""

    def request_id(self) -> str:
        self._request_id = self._request_id or new_id()
        return self._request_id


def _log_request(method: str, path: str, status: int, seconds: float, seen: _Seen) -> None:
    fields = {
        "method": method,
        "path": path,
        "status": status,
        "milliseconds": round(seconds * 1000, 2),
        "token": seen.access.token_id if seen.access is not None else None,
        "request_id": seen.request_id(),
    }
    level = logging.WARNING if status >= 500 else logging.DEBUG
    log.log(level, "request", extra={"fields": fields})


def _check_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    """Of two hosts or two tokens, a proxy in between may have looked at the other one."""
    names = [name for name, _ in headers]
    for name in (b"host", b"authorization", b"content-type"):
        if names.count(name) > 1:
            raise Refusal("INVALID_REQUEST", f"The header '{name.decode()}' is given twice.")


async def _send(send: Send, answer: Answer, *, head: bool) -> None:
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        *SECURITY_HEADERS,
    ]
    if answer.headers:
        headers += answer.headers
    if answer.status == 413:
        # What is left of the body is not worth reading.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else answer.body})


def make_application(config: ServerConfig, database: Database) -> Application:
    """The application over an open database."""
    service, routes = Service(config, database), all_routes()
    documented = [route for route in routes if route.documented]
    service.documents = {
        "openapi": cache(lambda: document(documented)),
        "reference": cache(lambda: reference_page(documented)),
    }
    return Application(service, RouteTable(routes))
