"""HTTP/1.1 for one connection, between uvicorn's server (sockets, signals, stopping) and the application.

It does what uvicorn's own protocol does for an application that answers in one piece, at much less work per
request (docs/decisions/0105-a-lean-http-protocol.md): no objects that nobody looks at, no timer for
each request, one write for head and body. The parser is the same llhttp. Beyond that, a head must be complete within
a time and a size, a body must go on coming, and what is no HTTP gets the error envelope.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from evenhand.server.answers import Answer, error_answer
from evenhand.server.backlog import Backlog
from evenhand.server.exchange import Exchange, Message

AsgiApplication = Callable[[Message, Callable[..., Awaitable[Message]], Callable[..., Awaitable[None]]], Any]

MAX_HEAD = 64 * 1024
"""Bytes that the head of a request may have; and as much may come in a body that is not body (chunks, trailers)."""
PIECE = 16 * 1024
"""Bytes that are parsed at once: of requests sent ahead, no more are taken apart than these bytes hold."""
MAX_HEADERS = 256
"""Headers that a request may have: each takes many times the four bytes that it can be sent as."""
MAX_BUFFERED = 256 * 1024
"""Bytes of a body that wait for the application before the client is held back."""
PART_BYTES = 64
"""What a part of a body takes beside its bytes: chunks can be tiny."""
_STATUS_LINE = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_NOTHING = memoryview(b"")
log = logging.getLogger("evenhand.server")


_NUMBERS = itertools.count()


class ServerProtocol(asyncio.Protocol):
    """The protocol of one connection. Requests that come before an answer has left wait for their turn."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        backlog: Backlog,
        most_connections: int,
    ) -> None:
        self._application: AsgiApplication = config.loaded_app
        self._patience = float(config.timeout_keep_alive)
        self._stop_seconds = config.timeout_graceful_shutdown
        self._loop = _loop or asyncio.get_running_loop()
        self._state = server_state
        self._backlog = backlog
        self._most_connections = most_connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._client: tuple[str, int] | None = None
        self._waiting: deque[Exchange] = deque()
        self._parsed: Exchange | None = None
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._in_head = True
        self._unread = _NOTHING
        self._full = False
        self._paused = False
        self._congested = False
        self._unsent = 0
        self._broken: Answer | None = None
        self._deaf = False
        self._closing = False
        self._quiet_since = 0.0
        self._number = next(_NUMBERS)
        self._timer: asyncio.TimerHandle | None = None

    # The connection.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        peer = transport.get_extra_info("peername")
        self._client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self._state.connections.add(self)  # type: ignore[arg-type]  # it calls no more than `shutdown`
        self._quiet_since = self._loop.time()
        self._timer = self._loop.call_later(self._patience, self._look)
        if len(self._state.connections) > self._most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._closing = True
        self._backlog.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        for exchange in self._waiting:
            exchange.lost = True
            exchange.tell()
        # Without these circles nothing has to wait for the collector.
        self._parsed = None
        del self._parser

    def eof_received(self) -> bool:
        """The client sends no more; it may still wait for its answers."""
        self._closing = True
        if self._parsed is not None:
            self._parsed.lost = True
            self._parsed.tell()
        return bool(self._waiting)

    def shutdown(self) -> None:
        """The server stops: answer what has been asked, then close."""
        self._closing = True
        if self._timer is not None and self._stop_seconds is not None:
            # Who has not read or sent by then is let go, so that nothing is open when the loop ends.
            self._timer.cancel()
            self._timer = self._loop.call_later(self._stop_seconds * 0.9, self._transport.abort)
        if not self._waiting:
            self._transport.close()

    def pause_writing(self) -> None:
        self._congested = True
        self._backlog.add(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._congested = False
        self._backlog.remove(self)
        if self._waiting and self._waiting[0].task is None:
            self._begin(self._waiting[0])

    def let_go(self) -> None:
        self._transport.abort()

    def _make_room(self) -> None:
        """Let go of whoever has been idle for longest; of this one, if nobody is."""
        connections = cast(set[ServerProtocol], self._state.connections)
        staying = [one for one in connections if not one._transport.is_closing()]
        if len(staying) > self._most_connections:
            idle = [one for one in staying if not one._waiting and one is not self]
            # uvloop's clock counts whole milliseconds: within one of them, the older connection goes.
            min(idle, key=lambda one: (one._quiet_since, one._number), default=self).let_go()

    def _look(self) -> None:
        """End what the client has kept waiting for too long: a request, the rest of one, or an answer to be read."""
        now, wait = self._loop.time(), self._patience
        left = self._quiet_since + wait - now
        unsent = self._transport.get_write_buffer_size()
        if unsent:
            if unsent == self._unsent:
                self.let_go()
                return
            self._unsent, self._quiet_since = unsent, now
        elif left > 0:
            wait = left
        elif not self._waiting:
            if self._head_bytes and self._in_head and not self._deaf:
                self._refuse(
                    error_answer("REQUEST_TIMEOUT", "The head of the request took too long to arrive.")
                )
            else:
                self._transport.close()
        else:
            self._waiting[0].end_wait()
        self._timer = self._loop.call_later(wait, self._look)

    # What the client sends.

    def data_received(self, data: bytes) -> None:
        if len(data) > PIECE or self._unread:
            self._unread = memoryview(bytes(self._unread) + data if self._unread else data)
            self._go_on()
        else:
            self._parse(data)

    def _parse(self, data: bytes | memoryview) -> None:
        if self._deaf or (self._closing and not self._waiting):
            return
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing is upgraded to: the request is answered as it is, and what follows it cannot be read.
            self._deaf = True
            self._waiting[-1].keep_alive = False
        except httptools.HttpParserError:
            self._break(error_answer("INVALID_REQUEST", "This is not a valid HTTP request."))
        if (self._head_bytes > MAX_HEAD or len(self._headers) > MAX_HEADERS) and not self._deaf:
            self._break(error_answer("INVALID_REQUEST", "The head of the request is too large."))

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._quiet_since = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        path, _, query = self._url.partition(b"?")
        if self._url[:1] != b"/" or b"#" in self._url:
            parts = httptools.parse_url(self._url)
            path, query = parts.path or b"", parts.query or b""
        parser = self._parser
        version = parser.get_http_version()
        scope: Message = {
            "type": "http",
            "http_version": version,
            "method": parser.get_method().decode("latin-1"),
            "raw_path": path,
            "query_string": query,
            "headers": self._headers,
            "client": self._client,
        }
        keep_alive = parser.should_keep_alive() and version == "1.1"
        exchange = self._parsed = Exchange(self, scope, keep_alive=keep_alive)
        self._headers = []  # trailers are no headers
        self._in_head, self._head_bytes = False, 0
        self._waiting.append(exchange)
        if len(self._waiting) > 1:
            self._hold_back()
        elif not self._congested:
            self._begin(exchange)

    def on_body(self, body: bytes) -> None:
        exchange = self._parsed
        self._head_bytes = 0
        if exchange is None or exchange.answered:
            return
        exchange.parts.append(body)
        exchange.buffered += len(body) + PART_BYTES
        if exchange.buffered > MAX_BUFFERED:
            self._hold_back()
        exchange.tell()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        exchange, self._parsed = self._parsed, None
        if exchange is not None:
            exchange.complete = True
            exchange.tell()

    def wait_for_body(self, exchange: Exchange) -> "asyncio.Future[None]":
        """A future that is done when there is more of the body, or will be none."""
        if exchange.arrived is None:  # it is the first time
            headers = exchange.scope["headers"]
            expects = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
            if expects and exchange.scope["http_version"] == "1.1":
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._quiet_since = self._loop.time()
        self._let_come()
        return self._loop.create_future()

    def _hold_back(self) -> None:
        self._full = True
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _let_come(self) -> None:
        if self._full:
            self._full = False
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Parse what was read, and read on, as long as there is room."""
        if self._transport.is_closing():
            return
        while self._unread and not self._full:
            piece, self._unread = self._unread[:PIECE], self._unread[PIECE:]
            self._parse(piece)
        if self._paused and not self._full and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def _break(self, answer: Answer) -> None:
        """Nothing more can be read. What was asked before is answered first."""
        self._broken, self._deaf = answer, True
        parsed = self._parsed
        if parsed is not None:
            parsed.lost, parsed.keep_alive = True, False
            parsed.tell()
        if not self._waiting:
            if parsed is None:
                self._refuse(answer)
            else:  # it has its answer: another one would be taken for that of the next request
                self._part()

    # What goes back.

    def _begin(self, exchange: Exchange) -> None:
        exchange.task = self._loop.create_task(self._run(exchange))
        self._state.tasks.add(exchange.task)

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._application(exchange.scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("the application failed")
            if not exchange.answered:
                self._broken = error_answer(
                    "INTERNAL_ERROR", "Something went wrong; the server's log says more."
                )
                self._waiting = deque((exchange,))
        finally:
            assert exchange.task is not None
            self._state.tasks.discard(exchange.task)
            self._state.total_requests += 1
            self._finish(exchange)

    def _finish(self, exchange: Exchange) -> None:
        self._waiting.popleft()
        exchange.parts = []
        if self._transport.is_closing():
            return
        if not exchange.answered and not self._waiting and self._broken is not None:
            self._refuse(self._broken)
        elif not exchange.answered or not exchange.keep_alive:
            self._part()
        elif self._waiting:
            if not self._congested:
                self._begin(self._waiting[0])
        elif self._broken is not None:
            self._refuse(self._broken)
        elif self._closing:
            self._part()
        else:
            self._quiet_since = self._loop.time()
            self._let_come()

    def answer(
        self, exchange: Exchange, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        """Send an answer. It closes the connection if either side wants that."""
        if self._transport.is_closing():
            return
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if lines.count(b"\n") != len(headers):
            raise ValueError("a header holds more than one line")
        if b"connection: close\r\n" in lines:
            exchange.keep_alive = False
        elif not exchange.keep_alive or (self._closing and len(self._waiting) == 1):
            exchange.keep_alive = False
            lines += b"connection: close\r\n"
        self._unsent = 0
        if len(body) < PIECE:
            self._transport.write(b"%b%b\r\n%b" % (_STATUS_LINE[status], lines, body))
        else:  # too large to be copied
            self._transport.write(b"%b%b\r\n" % (_STATUS_LINE[status], lines))
            self._transport.write(body)

    def _refuse(self, answer: Answer) -> None:
        """Answer what is no request, and close."""
        self._broken = answer
        head = (
            b"content-type: application/json\r\nconnection: close\r\nx-content-type-options: nosniff\r\n"
            b"content-length: %d\r\n\r\n" % len(answer.body)
        )
        self._transport.write(_STATUS_LINE[answer.status] + head + answer.body)
        self._part()

    def _part(self) -> None:
        """Close. A client that may still be sending is listened to for a while: closing on it would make the kernel
        send a reset, which can take the answer away before it is read."""
        sending = self._parsed is not None or self._broken is not None or self._deaf or self._unread
        self._deaf, self._unread, self._full = True, _NOTHING, False
        self._headers = []
        self._waiting.clear()  # none of these is begun
        if self._closing or not sending:
            self._transport.close()
            return
        self._quiet_since = self._loop.time()
        self._transport.write_eof()
        self._go_on()
