"""Answers that are sent as streams: exports and server-sent events, over a real server."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, StreamingAnswer
from evenhand.server.http.openapi import document
from evenhand.server.http.routes import Route
from evenhand.server.streams import (
    EVENTS,
    NDJSON,
    Event,
    event_text,
    events_answer,
    ndjson_answer,
    read_pages,
)
from evenhand.server.table import all_routes
from evenhand.store.connection import Connection

LINES = 20_000
WAIT = 60


class Streams:
    """Endpoints that stream, and what became of their streams."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = threading.Event()

    async def _export(self, call: Call) -> AsyncGenerator[list[dict[str, int]], None]:
        try:
            async for rows in read_pages(call, _rows_after, lambda row: row["n"]):
                yield rows
                self.sent += len(rows)
        finally:
            self.closed.set()

    async def _events(self) -> AsyncGenerator[Event, None]:
        try:
            while True:
                yield Event(data={"sent": self.sent}, name="progress", id=str(self.sent))
                self.sent += 1
                await asyncio.sleep(0.001)
        finally:
            self.closed.set()

    async def _silence(self) -> AsyncGenerator[Event, None]:
        try:
            await asyncio.sleep(WAIT * 10)
            yield Event(data=None)
        finally:
            self.closed.set()

    async def _three(self) -> AsyncGenerator[Event, None]:
        for number in range(3):
            yield Event(data=number)

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
        return ndjson_answer(self._export(call), file_name='scores "of"\r\nMünchen.jsonl')

    async def events(self, call: Call) -> Answer:
        return events_answer(self._events())

    async def silence(self, call: Call) -> Answer:
        return events_answer(self._silence(), heartbeat_seconds=0.01)

    async def three(self, call: Call) -> Answer:
        return events_answer(self._three())

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
                stream_types=(kind,),
            )
            for path, handler, kind in (
                ("/v1/test/export", self.export, NDJSON),
                ("/v1/test/events", self.events, EVENTS),
                ("/v1/test/silence", self.silence, EVENTS),
                ("/v1/test/three", self.three, EVENTS),
                ("/v1/test/flood", self.flood, EVENTS),
                ("/v1/test/failing", self.failing, NDJSON),
            )
        )


def _rows_after(connection: Connection, after: int | None) -> list[dict[str, int]]:
    start = 0 if after is None else after + 1
    return [{"n": number} for number in range(start, min(start + 1_000, LINES))]


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
        assert answer.headers["content-disposition"] == 'attachment; filename="scores_of_M_nchen.jsonl"'
        assert [json.loads(line)["n"] for line in answer.read().splitlines()] == list(range(LINES))
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    metrics = service.get("/metrics").body.decode()
    assert 'evenhand_requests_total{method="GET",path="/v1/test/export",status="200"} 1' in metrics


def test_events_arrive_while_the_answer_is_being_made(service: ServiceUnderTest, streams: Streams) -> None:
    with closing(asked(service, "/v1/test/events")) as connection:
        answer = connection.getresponse()
        lines = [answer.readline() for _ in range(6)]
        assert lines == [b": open\n", b"\n", b"id: 0\n", b"event: progress\n", b'data: {"sent":0}\n', b"\n"]
        assert not streams.closed.is_set()


def test_an_event_stream_without_news_shows_that_it_is_alive(
    service: ServiceUnderTest, streams: Streams
) -> None:
    with closing(asked(service, "/v1/test/silence")) as connection:
        answer = connection.getresponse()
        assert [answer.readline() for _ in range(6)] == [b": open\n", b"\n", *[b": waiting\n", b"\n"] * 2]
        assert not streams.closed.is_set()
    assert streams.closed.wait(WAIT)


def test_an_event_stream_that_ends_is_complete(service: ServiceUnderTest) -> None:
    with closing(asked(service, "/v1/test/three")) as connection:
        assert connection.getresponse().read() == b": open\n\ndata: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_an_event_cannot_smuggle_in_another_one() -> None:
    assert event_text(Event(data="a\n\ndata: b")) == b'data: "a\\n\\ndata: b"\n\n'
    for hostile in (Event(data=1, name="a\ndata: 2"), Event(data=1, id="a\rdata: 2")):
        with pytest.raises(ValueError, match="one line"):
            event_text(hostile)


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
        assert answer.readline() == b": open\n"
    with closing(connection):
        assert answer.read().endswith(b"\n\n")  # no IncompleteRead
    assert streams.closed.is_set()


def test_the_content_type_of_a_stream_is_documented(streams: Streams) -> None:
    written = json.loads(document(streams.routes()))
    for path, kind in (("/v1/test/export", NDJSON), ("/v1/test/events", EVENTS)):
        assert list(written["paths"][path]["get"]["responses"]["200"]["content"]) == [kind]
