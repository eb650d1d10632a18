"""uvicorn's HTTP protocol with the limits that it does not have.

uvicorn parses requests, queues pipelined ones, runs the application and writes the answers. `LimitedProtocol` adds
bounds on what a client may send and on how long it may take, and answers malformed HTTP with the JSON error envelope.
docs/decisions/0146-uvicorns-http-protocol.md lists what is bounded here and what is left to a reverse proxy.
"""

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from evenhand.server.http.answers import Answer, error_answer

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the URL and the headers of a request. Chunk extensions and trailers of a body have the same limit."""
MAX_HEADERS = 256
"""Headers of a request; trailers have the same limit."""
MAX_PIPELINED = 100
"""Requests that wait on one connection behind the one being answered."""
HEADER_OVERHEAD = 4
"""Colon, space and line end of a header."""
EXTENSION = "evenhand"
"""Where the application finds its `Exchange` among the extensions of the ASGI scope."""


HTTP2_PREFACE = b"PRI * HTTP/2.0"
"""How every connection of HTTP/2 begins, gRPC's too."""
HTTP2_LOG_SECONDS = 60.0
log = logging.getLogger("evenhand.server")
_logged_http2 = [float("-inf")]


def _log_http2() -> None:
    """Say that gRPC came to the wrong port, at most once a minute: an exporter tries again and again."""
    if time.monotonic() - _logged_http2[0] > HTTP2_LOG_SECONDS:
        _logged_http2[0] = time.monotonic()
        log.warning(
            "gRPC (HTTP/2) came to the HTTP port: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf in the application, "
            "or install the extra 'grpc' here and send to its port, 4317"
        )


class TooMuchSent(Exception):
    """Raised inside a parser callback to stop the parser."""


class Exchange:
    """A request that has arrived whole, and an answer sent whole, without the waiting that ASGI messages need.

    The application finds it as `scope["extensions"]["evenhand"]` and uses ASGI's `receive` and `send` where a method here
    says that it cannot help, or where the server is another one. It takes the extension out of the scope, because the
    two refer to each other.
    """

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def take_body(self) -> bytes | None:
        """The whole body if it has arrived: nothing to wait for, so no time limit either. Otherwise None."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected:
            return None
        body = bytes(cycle.body)
        cycle.body = bytearray()
        cycle.message_event.clear()
        cycle.flow.resume_reading()
        return body

    def send(self, head: bytes, body: bytes) -> bool:
        """Send an answer in one write, which is one system call and one packet; uvicorn writes head and body apart.

        False, and nothing is sent, where more is to be decided than that: the client reads slowly or has gone, the
        connection ends with this answer, or the answer has no body.
        """
        cycle = self._cycle
        if (
            cycle.response_started
            or cycle.disconnected
            or cycle.flow.write_paused
            or not cycle.keep_alive
            or cycle.scope["method"] == "HEAD"
        ):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(head + body)
        cycle.message_event.set()
        cycle.on_response()
        return True


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        max_connections: int,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._max_connections = max_connections
        self._idle_timeout = float(config.timeout_keep_alive)
        self._running: RequestResponseCycle | None = None
        self._in_message = False
        self._in_head = False
        self._head_bytes = 0
        self._header_count = 0
        self._progressed = False
        self._bytes_without_progress = 0
        self._parsing = True
        self._draining = False
        self._error: Answer | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self._all_answered and not self.transport.is_closing()

    @property
    def _all_answered(self) -> bool:
        newest = cast("RequestResponseCycle | None", self.cycle)  # uvicorn declares it as never None
        return newest is None or newest.response_complete

    # The connection.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._start_head_timer()
        if len(self.connections) > self._max_connections:
            others = cast(set[LimitedProtocol], self.connections)
            idle = next((one for one in others if one is not self and one.is_idle), self)
            idle.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._stop_head_timer()
        self._stop_reader_timer()
        # uvicorn tells only the newest request; one before it may be sending a stream.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def shutdown(self) -> None:
        """Answer what was asked, then close; abort shortly before uvicorn stops waiting."""
        super().shutdown()
        stop_seconds = self.config.timeout_graceful_shutdown
        if stop_seconds is not None:
            self._stop_head_timer()
            self._head_timer = self.loop.call_later(stop_seconds * 0.9, self.transport.abort)

    # What the client sends.

    def data_received(self, data: bytes) -> None:
        if not self._parsing:
            return
        self._progressed = False
        if data.startswith(HTTP2_PREFACE) and not self._in_message:
            _log_http2()
            self._refuse(_HTTP2)
            return
        super().data_received(data)
        if not self._progressed:
            # A part of a head, of trailers or of a chunk extension. The parser keeps an unfinished header: bound it.
            self._bytes_without_progress += len(data)
            if self._bytes_without_progress > MAX_HEAD_BYTES and self._parsing:
                self._refuse(_HEAD_TOO_LARGE)
        if self._head_timer is None and self._all_answered:
            self._start_head_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_message = self._in_head = True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._count(len(name) + len(value) + HEADER_OVERHEAD)
        if self._in_head:  # uvicorn would add trailers to the headers
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._reset_counts()
        self._stop_head_timer()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise TooMuchSent
        if self.expect_100_continue and self.parser.get_http_version() != "1.1":
            self.expect_100_continue = False
        super().on_headers_complete()  # raises for an address that it cannot read
        self._in_head = False
        if not self.cycle.keep_alive:
            self.cycle.transport = cast(asyncio.Transport, _ClosingTransport(self))
        self.cycle.scope["extensions"] = {EXTENSION: Exchange(self.cycle)}  # type: ignore[dict-item]  # ASGI wants a dict

    def on_body(self, body: bytes) -> None:
        self._reset_counts()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = False
        self._reset_counts()
        super().on_message_complete()

    def _reset_counts(self) -> None:
        self._progressed = True
        self._bytes_without_progress = self._head_bytes = self._header_count = 0

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES or self._header_count > MAX_HEADERS:
            self._error = _HEAD_TOO_LARGE
            raise TooMuchSent

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer the request as if it asked for no upgrade, then close: the parser cannot read what follows."""
        self._parsing = False
        self.cycle.keep_alive = False

    # Refusals.

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._error or _MALFORMED)

    def _refuse(self, answer: Answer) -> None:
        """Stop parsing; send `answer` unless the client would take it for the answer to another request."""
        self._parsing = False
        cycle, in_body = self.cycle, self._in_message and not self._in_head
        if self._all_answered:
            if not in_body:
                self._write(answer)
            self._close_after_drain()
        elif in_body and cycle is self._running:
            cycle.disconnected = True
            cycle.message_event.set()
            if not cycle.response_started:
                self._write(answer)
            self._close_after_drain()
        else:
            # Requests before the malformed one are answered first; nothing is sent for itself.
            if in_body:
                self.pipeline.popleft()
                self.cycle = (
                    self.pipeline[0][0] if self.pipeline else cast(RequestResponseCycle, self._running)
                )
            self.cycle.keep_alive = False

    def _write(self, answer: Answer) -> None:
        status = HTTPStatus(answer.status)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
            f"x-content-type-options: nosniff\r\ncontent-length: {len(answer.body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + answer.body)

    def close_after_answer(self) -> None:
        """The last answer of the connection was written."""
        if self._in_message:
            self._close_after_drain()
        else:
            self.transport.close()

    def _close_after_drain(self) -> None:
        """Close once the client has closed or `idle_timeout` has passed, and drop what it sends until then.

        Closing a socket with unread input makes the kernel send a reset, which can destroy the answer on its way.
        """
        self._parsing, self._draining = False, True
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()
            self._stop_head_timer()
            self._start_head_timer()

    # Time.

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._idle_timeout, self._head_timed_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        """No complete head has come since the connection opened, or since the client began to send."""
        self._head_timer = None
        if self._draining or (self.is_idle and not self._in_head):
            self.transport.abort()
        elif self.is_idle:
            self._refuse(error_answer("REQUEST_TIMEOUT", "The head of the request took too long to arrive."))

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reader()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_reader_timer()

    def _watch_reader(self) -> None:
        """Abort when the client reads nothing of what is left to send for `idle_timeout`."""
        if self._reader_timer is None:
            self._unsent = self.transport.get_write_buffer_size()
            if self._unsent:
                self._reader_timer = self.loop.call_later(self._idle_timeout, self._check_reader)

    def _check_reader(self) -> None:
        self._reader_timer = None
        if self.transport.get_write_buffer_size() < self._unsent:
            self._watch_reader()
        else:
            self.transport.abort()

    def _stop_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None


class _ClosingTransport:
    """The transport as the last request of a connection sees it: closing lets the rest of its body come."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._protocol = protocol

    def write(self, data: bytes) -> None:
        self._protocol.transport.write(data)

    def is_closing(self) -> bool:
        return self._protocol.transport.is_closing()

    def close(self) -> None:
        self._protocol.close_after_answer()


_HTTP2 = error_answer(
    "INVALID_REQUEST",
    "This port speaks HTTP/1.1; OTLP over gRPC has a port of its own, 4317 with the extra 'grpc'.",
)
_MALFORMED = error_answer("INVALID_REQUEST", "This is not a valid HTTP request.")
_HEAD_TOO_LARGE = error_answer("INVALID_REQUEST", "The head of the request is too large.")
