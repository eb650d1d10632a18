"""The limits of the HTTP protocol: a small application behind it, over raw sockets and both event loops."""

import asyncio
import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Literal

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from evenhand.server.http.protocol import MAX_HEAD_BYTES, MAX_HEADERS, MAX_PIPELINED, LimitedProtocol

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
    idle_seconds: int = 30,
    max_connections: int = 1_000,
) -> Iterator[Running]:
    echo = Echo()
    protocol = partial(LimitedProtocol, max_connections=max_connections)
    config = uvicorn.Config(
        echo,
        loop=loop,
        http=protocol,  # type: ignore[arg-type]  # it is only called
        lifespan="off",
        ws="none",
        log_config=None,
        timeout_keep_alive=idle_seconds,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
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
        # One segment: what arrives after the server has closed would reset the connection before its answer is read.
        connection.sendall(head + get(b"/tunnelled") * 2)
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close\r\n" in answer
    assert b"/tunnelled" not in running.echo.begun


def test_an_upgrade_in_the_middle_of_a_connection_is_answered_last(running: Running) -> None:
    upgrade = get(b"/a", b"Connection: upgrade\r\nUpgrade: h2c\r\n")
    answer = running.ask(get(b"/before") + upgrade + get(b"/tunnelled"))
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"/tunnelled" not in running.echo.begun


def test_trailers_are_no_headers(running: Running) -> None:
    trailers = b"Authorization: x\r\nConnection: keep-alive\r\n\r\n"
    answers = running.ask(CHUNKED + b"1;ext=1\r\nx\r\n0\r\n" + trailers + LAST)
    first, last = (
        json.loads(part.partition(b"\r\n\r\n")[2]) for part in answers.split(b"HTTP/1.1 200 OK")[1:]
    )
    assert (first["headers"], first["body"]) == (["host", "transfer-encoding"], 1)
    assert last["headers"] == ["host", "connection"]


TRAILED = CHUNKED + b"1\r\nx\r\n0\r\n"


@pytest.mark.parametrize(("start", "own"), [(b"GET / HTTP/1.1\r\nHost: x\r\n", 1), (TRAILED, 0)])
def test_the_number_of_headers_and_of_trailers_is_limited(running: Running, start: bytes, own: int) -> None:
    most = MAX_HEADERS - own
    assert running.ask(start + b"a:\r\n" * most + b"\r\n" + LAST).count(b"HTTP/1.1 200 OK") == 2
    for many in (most + 1, 4_000, 16_000):
        answer = running.ask(start + b"a:\r\n" * many + b"\r\n" + LAST)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1
        # The same when the end never comes; the parser reports a header when the next one begins.
        assert running.ask(start + b"a:\r\n" * (many + 1)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(("start", "own"), [(b"GET /big HTTP/1.1\r\n", len(b"/big")), (TRAILED, 0)])
def test_the_size_of_a_head_and_of_trailers_is_limited(running: Running, start: bytes, own: int) -> None:
    """The limit counts the URL and, of each header, name, value, colon, space and line end."""
    room = MAX_HEAD_BYTES - own - len(b"X: \r\n")
    for size, status in ((room, b"200"), (room + 1, b"400")):
        answer = running.ask(start + b"X: " + b"x" * size + b"\r\n\r\n" + LAST)
        assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_long_address_is_refused(running: Running) -> None:
    assert running.ask(get(b"/" + b"x" * MAX_HEAD_BYTES)).startswith(b"HTTP/1.1 400 ")
    assert running.ask(b"GET /" + b"x" * 500_000).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("endless", [b"0\r\nX: " + b"x" * 200_000, b"1;" + b"x" * 200_000])
def test_endless_trailers_and_chunk_extensions_are_refused(running: Running, endless: bytes) -> None:
    assert running.ask(CHUNKED + endless).startswith(b"HTTP/1.1 400 ")


def test_many_tiny_chunks_are_no_attack(running: Running) -> None:
    answer = running.ask(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n" + LAST)
    assert b'"body": 50000,' in answer


def test_requests_sent_ahead_are_answered_up_to_a_limit(running: Running) -> None:
    """The connection closes behind the last answer, so the client knows which requests to send again."""
    # At once: the server reads them together, and one is answered while the others wait.
    answers = running.ask(b"".join(get(b"/%d" % number) for number in range(MAX_PIPELINED + 50)))
    paths = [line.partition(b'"')[0] for line in answers.split(b'"path": "')[1:]]
    assert paths == [b"/%d" % number for number in range(len(paths))]
    assert MAX_PIPELINED <= len(paths) < MAX_PIPELINED + 50
    assert answers.count(b"connection: close") == 1


def test_a_flood_of_requests_sent_ahead_takes_little_memory(running: Running) -> None:
    flood = b"".join(get(b"/%d" % number) for number in range(10_000))
    with running.open() as connection:

        def send() -> None:
            with suppress(ConnectionError):
                connection.sendall(flood)

        sender = threading.Thread(target=send)
        sender.start()
        connection.recv(1)
        assert sum(isinstance(found, RequestResponseCycle) for found in gc.get_objects()) < 1_000
        until_the_end(connection)
        sender.join()


def test_a_malformed_request_behind_a_good_one_closes_after_the_answer(running: Running) -> None:
    answer = running.ask(get(b"/good") + b"\x00garbage\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_broken_body_behind_another_request_is_never_taken_for_its_answer(running: Running) -> None:
    answer = running.ask(get(b"/good") + CHUNKED + b"zz\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_client_that_ends_in_the_middle_gets_nothing(running: Running) -> None:
    for half in (b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", CHUNKED + b"5\r\nabc"):
        assert running.ask(half, half_close=True) == b""


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
    with serving(loop, idle_seconds=1) as running, running.open() as connection:
        connection.sendall(get(b"/large") * 3)
        wait_until(lambda: b"/large" in running.echo.begun)
        wait_until(lambda: not running.server.server_state.connections)
        assert running.echo.begun.count(b"/large") < 3


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_an_idle_connection_makes_room_for_a_new_one(loop: Loop) -> None:
    with serving(loop, idle_seconds=600, max_connections=3) as running, ExitStack() as stack:

        def waiting(number: int) -> socket.socket:
            """A connection with a request that is being answered."""
            connection = stack.enter_context(running.open())
            connection.sendall(get(b"/wait"))
            wait_until(lambda: running.echo.begun.count(b"/wait") == number)
            return connection

        busy = [waiting(1)]
        answered = stack.enter_context(running.open())
        answered.sendall(get(b"/first"))
        assert answered.recv(100).startswith(b"HTTP/1.1 200 OK")
        half = stack.enter_context(running.open())
        half.sendall(b"GET /half HT")
        wait_until(lambda: len(running.server.server_state.connections) == 3)
        # Two new ones take the places of the two idle ones, never that of the one that waits for its answer.
        busy += [waiting(2), waiting(3)]
        assert until_the_end(answered).count(b"HTTP/1.1 ") == 0
        assert until_the_end(half) == b""
        with suppress(ConnectionError), running.open() as refused:  # nobody is idle
            refused.sendall(LAST)
            assert read_all(refused) == b""
        running.echo.go_on.set()
        for connection in busy:
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
