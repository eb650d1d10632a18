"""HTTP/1.1 under attack: a small application behind the real protocol, over raw sockets and both event loops."""

import asyncio
import gc
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn

from evenhand.server.backlog import Backlog
from evenhand.server.exchange import Exchange
from evenhand.server.protocol import ServerProtocol

Loop = Literal["asyncio", "uvloop"]
LARGE = 8_000_000


class Echo:
    """Answers with what it saw. The path says what else it does."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.go_on = threading.Event()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        path: bytes = scope["raw_path"]
        self.begun.append(path)
        if path == b"/raise":
            raise RuntimeError("on purpose")
        body, more = b"", path != b"/unread"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        if path == b"/wait":
            await asyncio.to_thread(self.go_on.wait, 60)
        seen = {
            "path": path.decode("latin-1"),
            "query": scope["query_string"].decode("latin-1"),
            "headers": [name.decode() for name, _ in scope["headers"]],
            "body": len(body),
            "client": scope["client"],
        }
        answer = b"x" * LARGE if path == b"/large" else json.dumps(seen).encode()
        headers = [(b"content-length", b"%d" % len(answer))]
        if path == b"/split":
            headers.append((b"x", b"a\r\nb: c"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


class Running:
    """The server and how to reach it."""

    def __init__(self, server: uvicorn.Server, echo: Echo, connect: Callable[[], socket.socket]) -> None:
        self.server = server
        self.echo = echo
        self._connect = connect

    def open(self) -> socket.socket:
        connection = self._connect()
        connection.settimeout(60)
        return connection

    def ask(self, data: bytes, *, half_close: bool = False) -> bytes:
        """All that comes back until the server closes."""
        with self.open() as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1_000_000):
        parts.append(part)
    return b"".join(parts)


def until_the_end(connection: socket.socket) -> bytes:
    """The same where the end may be a reset."""
    try:
        return read_all(connection)
    except ConnectionResetError:
        return b""


@contextmanager
def serving(
    loop: Loop = "uvloop",
    *,
    patience: int = 30,
    unread_bytes: int = 1_000_000_000,
    most_connections: int = 1_000,
    listener: socket.socket | None = None,
) -> Iterator[Running]:
    echo = Echo()
    protocol = partial(ServerProtocol, backlog=Backlog(unread_bytes), most_connections=most_connections)
    config = uvicorn.Config(
        echo,
        loop=loop,
        http=protocol,  # type: ignore[arg-type]  # it is only called
        lifespan="off",
        ws="none",
        log_config=None,
        timeout_keep_alive=patience,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    if listener is None:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
    family, address = listener.family, listener.getsockname()

    def connect() -> socket.socket:
        connection = socket.socket(family)
        connection.connect(address)
        return connection

    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield Running(server, echo, connect)
    finally:
        echo.go_on.set()
        server.should_exit = True
        thread.join(timeout=60)
        listener.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    with serving(request.param) as server:
        yield server


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def get(path: bytes, extra: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: x\r\n%b\r\n" % (path, extra)


LAST = get(b"/last", b"Connection: close\r\n")
CHUNKED = b"POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: +4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Length: 4, 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Length: 0x4\r\n\r\nabcd",
        b"GET / HTTP/1.1\r\n X: folded\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"GET /a\x00b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/3.7\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        CHUNKED + b"fffffffffffffffff\r\nx",
        CHUNKED + b"-1\r\nx",
        CHUNKED + b"1 \r\nx\r\n0\r\n\r\n",
        CHUNKED + b"1\nx\n0\n\n",
        CHUNKED + b"1\r\nxy\r\n0\r\n\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(running: Running, head: bytes) -> None:
    answer = running.ask(head + get(b"/smuggled"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"/smuggled" not in running.echo.begun


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"http://elsewhere/a?b", "/a", "b"),
        (b"*", "*", ""),
        (b"//a//b", "//a//b", ""),
        (b"/a?b?c", "/a", "b?c"),
        (b"/a#b?c", "/a", ""),
        (b"/%00%2f..?%23", "/%00%2f..", "%23"),
    ],
)
def test_targets(running: Running, target: bytes, path: str, query: str) -> None:
    seen = json.loads(running.ask(get(target, b"Connection: close\r\n")).partition(b"\r\n\r\n")[2])
    assert (seen["path"], seen["query"]) == (path, query)


@pytest.mark.parametrize("method", [b"CONNECT x:1", b"GET /upgrade"])
def test_nothing_is_read_after_an_upgrade(running: Running, method: bytes) -> None:
    head = method + b" HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    with running.open() as connection:
        connection.sendall(head + get(b"/tunnelled"))
        connection.sendall(get(b"/tunnelled"))
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close\r\n" in answer
    assert b"/tunnelled" not in running.echo.begun


def test_trailers_are_no_headers(running: Running) -> None:
    trailers = b"Authorization: x\r\nConnection: keep-alive\r\n\r\n"
    answers = running.ask(CHUNKED + b"1;ext=1\r\nx\r\n0\r\n" + trailers + LAST)
    first, last = (
        json.loads(part.partition(b"\r\n\r\n")[2]) for part in answers.split(b"HTTP/1.1 200 OK")[1:]
    )
    assert (first["headers"], first["body"]) == (["host", "transfer-encoding"], 1)
    assert last["headers"] == ["host", "connection"]


def is_pair(found: object) -> bool:
    """A header as it is kept. Other things are not even compared: arrays have no single answer."""
    return type(found) is tuple and [type(part) for part in found] == [bytes, bytes] and found == (b"a", b"")


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nHost: x\r\n", CHUNKED + b"1\r\nx\r\n0\r\n"], ids=["head", "trailers"]
)
def test_too_many_headers_are_refused_before_they_take_memory(running: Running, head: bytes) -> None:
    few, many = b"a:\r\n" * 200, b"a:\r\n" * 16_000
    assert running.ask(head + few + b"\r\n" + LAST).count(b"HTTP/1.1 200 OK") == 2
    with running.open() as connection:
        connection.sendall(head + many)  # and never the end
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")
        # Who is refused but does not go leaves nothing of it behind meanwhile.
        assert [
            found for found in gc.get_objects() if type(found) is list and any(map(is_pair, found[:9]))
        ] == []


@pytest.mark.parametrize("endless", [b"0\r\nX: " + b"x" * 200_000, b"1;" + b"x" * 200_000])
def test_endless_trailers_and_chunk_extensions_are_refused(running: Running, endless: bytes) -> None:
    assert running.ask(CHUNKED + endless).startswith(b"HTTP/1.1 400 ")


def test_many_tiny_chunks_are_no_attack(running: Running) -> None:
    answer = running.ask(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n" + LAST)
    assert b'"body": 50000,' in answer


def test_a_flood_of_requests_is_answered_in_order_and_taken_apart_bit_by_bit(running: Running) -> None:
    flood = b"".join(get(b"/%d" % number) for number in range(10_000))
    with running.open() as connection:
        sender = threading.Thread(target=connection.sendall, args=(flood + LAST,))
        sender.start()
        answers = connection.recv(1)
        most = sum(isinstance(found, Exchange) for found in gc.get_objects())
        answers += read_all(connection)
        sender.join()
    paths = [line.partition(b'"')[0] for line in answers.split(b'"path": "')[1:]]
    assert paths == [b"/%d" % number for number in range(10_000)] + [b"/last"]
    assert most < 2_000


@pytest.mark.parametrize(
    "half", [get(b"/a") + get(b"/b"), b"GET /a HTTP/1.0\r\n\r\n", CHUNKED + b"0\r\n\r\n"]
)
def test_a_client_that_sends_no_more_gets_its_answers(running: Running, half: bytes) -> None:
    answer = running.ask(half, half_close=True)
    assert answer.count(b"HTTP/1.1 200 OK") == half.count(b"HTTP/1.")


@pytest.mark.parametrize("body", [0, 20_000])
def test_a_flood_with_an_end_behind_it_is_answered_to_the_last(running: Running, body: int) -> None:
    """Much of it is not even parsed when the end comes."""
    head = b"POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    flood = b"".join(head % (number, body) + b"x" * body for number in range(500))
    with running.open() as connection:

        def send() -> None:
            connection.sendall(flood)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        answers = read_all(connection)
        sender.join()
    assert answers.count(b'"body": %d,' % body) == 500


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_end_of_a_client_may_come_long_before_its_answer(loop: Loop) -> None:
    with serving(loop) as running, running.open() as connection:
        connection.sendall(get(b"/wait"))
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: b"/wait" in running.echo.begun)
        for _ in range(5):  # the server goes round meanwhile and sees the end
            assert running.ask(LAST)
        running.echo.go_on.set()
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 1


def test_a_client_that_ends_in_the_middle_gets_nothing(running: Running) -> None:
    for half in (b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", CHUNKED + b"5\r\nabc"):
        assert running.ask(half, half_close=True) == b""


@pytest.mark.parametrize("path", [b"/raise", b"/split"])
def test_a_failing_application_is_answered_for(
    running: Running, path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL, "evenhand.server"):
        answer = running.ask(get(path) + get(b"/behind"))
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "INTERNAL_ERROR"


def test_go_on_is_not_said_to_http_1_0(running: Running) -> None:
    head = b" HTTP/1.%d\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"
    for minor, expected in ((1, b"HTTP/1.1 100 Continue\r\n"), (0, b"HTTP/1.1 200 OK\r\n")):
        with running.open() as connection:
            before = len(running.echo.begun)
            connection.sendall(b"POST /go" + head % minor)
            wait_until(lambda before=before: len(running.echo.begun) > before)  # type: ignore[misc]
            if minor:
                assert connection.recv(12) == expected[:12]
            connection.sendall(b"x")
            assert b"HTTP/1.1 200 OK\r\n" in (answer := read_all(connection))
            assert minor or answer.startswith(expected)


def test_an_answered_request_gets_no_second_answer(running: Running) -> None:
    head = CHUNKED.replace(b"/chunked", b"/unread")
    with running.open() as connection:
        connection.sendall(head)
        answer = connection.recv(100_000)
        connection.sendall(b"this is no chunk\r\n")
        answer += read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_answer_survives_what_the_client_still_sends(running: Running) -> None:
    with running.open() as connection:
        connection.sendall(b"POST /unread HTTP/1.1\r\nConnection: close\r\nContent-Length: 20000000\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"x" * 1_000_000)
        assert read_all(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_nothing_is_begun_after_a_connection_was_to_close(running: Running) -> None:
    with running.open() as connection:
        connection.sendall(get(b"/large", b"Connection: close\r\n") + get(b"/after-close"))
        assert len(read_all(connection)) > LARGE
    assert b"/after-close" not in running.echo.begun


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_never_reads_is_let_go(loop: Loop) -> None:
    with serving(loop, patience=1) as running, running.open() as connection:
        connection.sendall(get(b"/large") * 3)
        wait_until(lambda: b"/large" in running.echo.begun)
        wait_until(lambda: not running.server.server_state.connections)
        assert running.echo.begun.count(b"/large") < 3


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_when_too_much_waits_to_be_read_the_slowest_reader_goes_first(loop: Loop) -> None:
    with serving(loop, patience=600, unread_bytes=100_000) as running, ExitStack() as stack:
        readers = [stack.enter_context(running.open()) for _ in range(5)]
        for number, reader in enumerate(readers, 1):
            reader.sendall(get(b"/large", b"Connection: close\r\n"))
            wait_until(lambda number=number: running.echo.begun.count(b"/large") == number)  # type: ignore[misc]
        wait_until(lambda: len(running.server.server_state.connections) == 1)
        # The last one has its whole answer, larger than all that may wait.
        assert len(read_all(readers[-1])) > LARGE
        for reader in readers[:-1]:
            assert len(until_the_end(reader)) < LARGE


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_when_all_places_are_taken_the_longest_idle_makes_room(loop: Loop) -> None:
    with serving(loop, patience=600, most_connections=3) as running, ExitStack() as stack:

        def opened(first: bytes) -> socket.socket:
            """Connected, and heard of by the server."""
            connection = stack.enter_context(running.open())
            connection.sendall(first)
            return connection

        busy = opened(get(b"/wait"))
        wait_until(lambda: b"/wait" in running.echo.begun)
        first = opened(get(b"/first"))
        assert first.recv(100).startswith(b"HTTP/1.1 200 OK")
        time.sleep(0.1)  # the loop counts in milliseconds: in the same one, either would be the longer idle
        second = opened(b"GET /half HT")
        wait_until(lambda: len(running.server.server_state.connections) == 3)
        # Each new one takes the place of the one that has been quiet for longest, never of one that waits.
        assert running.ask(LAST).startswith(b"HTTP/1.1 200 OK")
        until_the_end(first)
        others = [opened(get(b"/wait")) for _ in range(2)]
        wait_until(lambda: running.echo.begun.count(b"/wait") == 3)
        assert until_the_end(second) == b""
        with suppress(ConnectionError), running.open() as refused:  # nobody is idle
            refused.sendall(LAST)
            assert read_all(refused) == b""
        running.echo.go_on.set()
        for connection in (busy, *others):
            assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_a_stop_ends_in_time_whatever_the_clients_do() -> None:
    with serving() as running:
        idle, half, body, busy, unread = (running.open() for _ in range(5))
        half.sendall(b"GET / HT")
        body.sendall(b"POST /half HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc")
        busy.sendall(get(b"/wait"))
        unread.sendall(get(b"/large") * 2)
        wait_until(lambda: {b"/half", b"/wait", b"/large"} <= set(running.echo.begun))
    for connection in (idle, half, body, busy, unread):
        connection.close()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_gone_connections_leave_nothing_behind(loop: Loop) -> None:
    def alive() -> int:
        return sum(isinstance(found, ServerProtocol | Exchange) for found in gc.get_objects())

    with serving(loop) as running:
        before = alive()
        gc.disable()  # nothing may need the collector
        try:
            for number in range(200):
                with running.open() as connection:
                    connection.sendall(
                        get(b"/a") + (b"GET / HT", CHUNKED + b"5\r\nab", get(b"/b"))[number % 3]
                    )
            wait_until(lambda: not running.server.server_state.connections)
            wait_until(lambda: alive() - before < 10)
        finally:
            gc.enable()


def test_other_families(tmp_path: Path) -> None:
    listeners = [socket.socket(socket.AF_UNIX)]
    listeners[0].bind(str(tmp_path / "socket"))
    if socket.has_ipv6:
        six = socket.socket(socket.AF_INET6)
        try:
            six.bind(("::1", 0))
            listeners.append(six)
        except OSError:
            six.close()
    for listener, expected in zip(listeners, (None, "::1"), strict=False):
        listener.listen(5)
        with serving(listener=listener) as running:
            seen = json.loads(running.ask(LAST).partition(b"\r\n\r\n")[2])
        assert seen["client"] is None if expected is None else seen["client"][0] == expected
