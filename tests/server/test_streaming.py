"""Answers that are sent as streams: exports and server-sent events, over a real server."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, StreamingAnswer
from evenhand.server.http.openapi import document
from evenhand.server.http.routes import Route
from evenhand.server.table import all_routes
from evenhand.store.connection import Connection

NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
LINES = 20_000
WAIT = 60


class Streams:
    """Endpoints that stream, and what became of their streams."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = threading.Event()

    async def _export(self, call: Call) -> AsyncGenerator[bytes, None]:
        try:
            for start in range(0, LINES, 1_000):
                rows = await call.read(partial(_rows, start))
                yield b"".join(b"%b\n" % json.dumps(row).encode() for row in rows)
                self.sent += len(rows)
        finally:
            self.closed.set()

    async def _events(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"data: %d\n\n" % self.sent
                self.sent += 1
                await asyncio.sleep(0.001)
        finally:
            self.closed.set()

    async def _flood(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 65_536
                self.sent += 1
        finally:
            self.closed.set()

    async def _failing(self) -> AsyncGenerator[bytes, None]:
        yield b"first\n"
        raise RuntimeError("on purpose")

    async def export(self, call: Call) -> Answer:
        return StreamingAnswer(self._export(call), content_type=NDJSON.encode())

    async def events(self, call: Call) -> Answer:
        return StreamingAnswer(self._events(), content_type=EVENTS.encode(), endless=True)

    async def flood(self, call: Call) -> Answer:
        return StreamingAnswer(self._flood(), content_type=EVENTS.encode(), endless=True)

    async def failing(self, call: Call) -> Answer:
        return StreamingAnswer(self._failing(), content_type=NDJSON.encode())

    def routes(self) -> tuple[Route, ...]:
        return tuple(
            Route(
                method="GET",
                path=path,
                handler=handler,
                audience="token:read",
                summary="A stream",
                stream_type=kind,
            )
            for path, handler, kind in (
                ("/v1/test/export", self.export, NDJSON),
                ("/v1/test/events", self.events, EVENTS),
                ("/v1/test/flood", self.flood, EVENTS),
                ("/v1/test/failing", self.failing, NDJSON),
            )
        )


def _rows(start: int, connection: Connection) -> list[dict[str, int]]:
    return [{"n": number} for number in range(start, start + 1_000)]


@pytest.fixture
def streams() -> Streams:
    return Streams()


@pytest.fixture
def service(tmp_path: Path, streams: Streams) -> Iterator[ServiceUnderTest]:
    routes = (*all_routes(), *streams.routes())
    with running_service(f"sqlite:///{tmp_path / 'streams.db'}", routes=routes) as running:
        yield running


def asked(service: ServiceUnderTest, path: str, method: str = "GET") -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=WAIT)
    connection.request(method, path, headers={"Authorization": f"Bearer {ADMIN}"})
    return connection


def test_an_export_is_sent_in_chunks_and_the_connection_is_kept(
    service: ServiceUnderTest, streams: Streams
) -> None:
    with closing(asked(service, "/v1/test/export")) as connection:
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-type"]) == (200, NDJSON)
        assert (answer.headers["transfer-encoding"], answer.headers["content-length"]) == ("chunked", None)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert [json.loads(line)["n"] for line in answer.read().splitlines()] == list(range(LINES))
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    metrics = service.get("/metrics").body.decode()
    assert 'evenhand_requests_total{method="GET",path="/v1/test/export",status="200"} 1' in metrics


def test_events_arrive_while_the_answer_is_being_made(service: ServiceUnderTest, streams: Streams) -> None:
    with closing(asked(service, "/v1/test/events")) as connection:
        answer = connection.getresponse()
        assert answer.readline() == b"data: 0\n"
        assert not streams.closed.is_set()


@pytest.mark.parametrize("behind", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_a_stream_ends_when_its_client_leaves(
    service: ServiceUnderTest, streams: Streams, behind: bytes
) -> None:
    """Also when the client has sent another request ahead."""
    head = f"GET /v1/test/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=WAIT) as one:
        one.sendall(head.encode() + behind)
        assert one.recv(12) == b"HTTP/1.1 200"
    assert streams.closed.wait(WAIT)


def test_a_client_that_does_not_read_holds_the_stream_back(
    service: ServiceUnderTest, streams: Streams
) -> None:
    """The socket buffers take some megabytes; then the generator waits. Without that it would never stop growing."""
    with closing(asked(service, "/v1/test/flood")):
        sent = -1
        while sent != streams.sent or not sent:
            sent = streams.sent
            assert sent < 5_000  # 320 MB
            time.sleep(0.3)
        assert service.get("/healthz").status == 200
    assert streams.closed.wait(WAIT)


def test_a_stream_that_fails_is_cut_off(service: ServiceUnderTest) -> None:
    """The last chunk is missing, so no client takes it for a complete answer."""
    with closing(asked(service, "/v1/test/failing")) as connection:
        answer = connection.getresponse()
        assert answer.readline() == b"first\n"
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
    assert service.get("/healthz").status == 200


def test_the_head_of_a_stream_makes_no_stream(service: ServiceUnderTest, streams: Streams) -> None:
    with closing(asked(service, "/v1/test/events", "HEAD")) as connection:
        answer = connection.getresponse()
        assert (answer.status, answer.read(), answer.headers["content-type"]) == (200, b"", EVENTS)
    assert streams.sent == 0


def test_a_stopping_server_ends_endless_streams_properly(tmp_path: Path, streams: Streams) -> None:
    with running_service(
        f"sqlite:///{tmp_path / 'stop.db'}", routes=(*all_routes(), *streams.routes())
    ) as service:
        connection = asked(service, "/v1/test/events")
        answer = connection.getresponse()
        assert answer.readline() == b"data: 0\n"
    with closing(connection):
        assert answer.read().endswith(b"\n\n")  # no IncompleteRead
    assert streams.closed.is_set()


def test_the_content_type_of_a_stream_is_documented(streams: Streams) -> None:
    written = json.loads(document(streams.routes()))
    for path, kind in (("/v1/test/export", NDJSON), ("/v1/test/events", EVENTS)):
        assert list(written["paths"][path]["get"]["responses"]["200"]["content"]) == [kind]
