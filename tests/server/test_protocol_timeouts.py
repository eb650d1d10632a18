"""Time limits of the HTTP protocol and of bodies, on an event loop whose clock is set by the test.

No test waits for real time, so the load of the machine changes nothing.
"""

import asyncio
import json
import selectors
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.server import ServerState

from evenhand.core.errors import Refusal
from evenhand.server.http.bodies import with_timeout
from evenhand.server.http.protocol import LimitedProtocol

IDLE_SECONDS = 30
STOP_SECONDS = 10
HEAD = b"POST /%b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class Clock(selectors.DefaultSelector):
    """Sets the time forward instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """An event loop with that clock."""

    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class Wire(asyncio.Transport):
    """A connection in memory. What the server does not read yet, the client keeps."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self._kept: list[bytes] = []
        self._reading = True
        self.written = b""
        self.unsent = 0
        self.ended = self.closed = self.aborted = False
        self.slow = False
        """Whether closing waits for a client that does not read."""
        protocol.connection_made(self)

    def send(self, data: bytes) -> None:
        self._kept.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._kept and self._reading and not self.closed:
            self.protocol.data_received(self._kept.pop(0))

    @property
    def held_back(self) -> bool:
        return not self._reading

    @property
    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.written.split(b"HTTP/1.1 ")[1:]]

    # What the protocol asks for.

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        asyncio.get_running_loop().call_soon(self._deliver)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        if not self.closed:
            self.ended = self.closed = True
            if not self.slow:
                asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            if self.closed and self.slow:
                asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)
            self.slow = False
            self.close()


class Reader:
    """An application that reads the body when it is told to, and answers with its length."""

    def __init__(self) -> None:
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.bodies: list[int] = []
        self.gone = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        status, size, more = 200, 0, scope["raw_path"] != b"/unread"
        receive = with_timeout(receive, IDLE_SECONDS)
        headers = [(b"content-length", b"0")]
        try:
            while more:
                await self.may_read.wait()
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.gone += 1
                    return
                size, more = size + len(message["body"]), message["more_body"]
        except Refusal as refusal:
            status = {"REQUEST_TIMEOUT": 408}[refusal.code]
            headers.append((b"connection", b"close"))
        self.bodies.append(size)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


Scene = Callable[[Wire, Reader], Awaitable[None]]


def play(scene: Scene) -> None:
    """The scene on a new connection. Nothing is under way when it has ended."""
    state = ServerState()

    async def whole() -> None:
        reader = Reader()
        config = uvicorn.Config(
            reader,
            lifespan="off",
            log_config=None,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        config.load()
        wire = Wire(LimitedProtocol(config, state, {}, asyncio.get_running_loop(), max_connections=9))
        await scene(wire, reader)
        wire.close()
        await asyncio.sleep(1)
        assert not state.tasks
        assert not state.connections
        assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(whole())


def test_a_body_that_stops_coming_is_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 10) + b"abc")
        await asyncio.sleep(IDLE_SECONDS - 1)
        assert wire.statuses == []
        await asyncio.sleep(2)
        assert (wire.statuses, reader.bodies) == ([408], [3])
        assert b"connection: close\r\n" in wire.written
        assert wire.closed

    play(scene)


def test_a_body_that_never_starts_is_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send((HEAD % (b"", 10)).replace(b"Host", b"Expect: 100-continue\r\nHost"))
        await asyncio.sleep(IDLE_SECONDS + 1)
        assert wire.statuses == [100, 408]
        assert wire.ended

    play(scene)


def test_every_piece_has_its_own_time() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 100))
        for _ in range(100):
            await asyncio.sleep(IDLE_SECONDS - 1)
            wire.send(b"x")
        await asyncio.sleep(1)
        assert (wire.statuses, reader.bodies) == ([200], [100])
        assert not wire.ended

    play(scene)


def test_an_endless_head_has_no_more_time_than_a_quiet_one() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(b"GET / HTTP/1.1\r\n")
        for _ in range(IDLE_SECONDS - 1):
            await asyncio.sleep(1)
            wire.send(b"X: 1\r\n")
        assert wire.statuses == []
        await asyncio.sleep(2)
        assert wire.statuses == [408]
        assert json.loads(wire.written.partition(b"\r\n\r\n")[2])["error"]["code"] == "REQUEST_TIMEOUT"

    play(scene)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_client_that_waits_for_the_application_is_not_slow(size: int) -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        reader.may_read.clear()
        wire.send(HEAD % (b"", size))
        for _ in range(size // 10):
            wire.send(b"x" * 10)
        await asyncio.sleep(10 * IDLE_SECONDS)
        assert wire.held_back == (size > HIGH_WATER_LIMIT)
        assert wire.statuses == []
        reader.may_read.set()
        await asyncio.sleep(1)
        assert (wire.statuses, reader.bodies) == ([200], [size])
        assert not wire.ended

    play(scene)


def test_a_client_has_its_whole_time_after_the_application_took_its_own() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        reader.may_read.clear()
        wire.send(HEAD % (b"", 2) + b"x")
        await asyncio.sleep(10 * IDLE_SECONDS + 7)
        reader.may_read.set()
        await asyncio.sleep(IDLE_SECONDS - 1)
        assert wire.statuses == []
        wire.send(b"y")
        await asyncio.sleep(1)
        assert (wire.statuses, reader.bodies) == ([200], [2])

    play(scene)


def test_requests_before_a_slow_body_are_answered() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 1) + b"x" + HEAD % (b"", 2) + b"xy" + HEAD % (b"", 3) + b"xy")
        await asyncio.sleep(1)
        assert wire.statuses == [200, 200]
        await asyncio.sleep(IDLE_SECONDS)
        assert (wire.statuses, reader.bodies) == ([200, 200, 408], [1, 2, 2])
        assert wire.ended

    play(scene)


def test_a_slow_body_whose_client_leaves_is_only_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 10) + b"abc")
        await asyncio.sleep(IDLE_SECONDS - 1)
        wire.close()
        await asyncio.sleep(IDLE_SECONDS)
        assert (wire.statuses, reader.gone) == ([], 1)

    play(scene)


def test_the_rest_of_a_body_that_nobody_wants_has_one_time_in_all() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"unread", 1_000))
        for _ in range(IDLE_SECONDS - 1):
            await asyncio.sleep(1)
            wire.send(b"x")
        assert (wire.statuses, wire.closed) == ([200], False)
        await asyncio.sleep(2)
        assert wire.closed

    play(scene)


def test_a_client_that_reads_a_little_of_an_answer_is_not_cut_off() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 0))
        wire.unsent = 100
        wire.protocol.pause_writing()
        for unsent in range(99, 90, -1):
            wire.unsent = unsent
            await asyncio.sleep(IDLE_SECONDS)
            assert not wire.aborted
        await asyncio.sleep(IDLE_SECONDS)
        assert wire.aborted

    play(scene)


def test_a_client_that_reads_everything_is_no_longer_watched() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        reader.may_read.clear()
        wire.send(HEAD % (b"", 0))
        wire.unsent = 100
        wire.protocol.pause_writing()
        wire.unsent = 10
        wire.protocol.resume_writing()
        await asyncio.sleep(10 * IDLE_SECONDS)
        assert not wire.closed
        reader.may_read.set()

    play(scene)


def test_the_last_answer_of_a_connection_must_be_read_as_well() -> None:
    """Less than the transport's own limit is left, and the connection only waits for it to be sent."""

    async def scene(wire: Wire, reader: Reader) -> None:
        wire.unsent, wire.slow = 10, True
        wire.send((HEAD % (b"", 0)).replace(b"Host", b"Connection: close\r\nHost"))
        await asyncio.sleep(IDLE_SECONDS - 1)
        assert (wire.statuses, wire.closed, wire.aborted) == ([200], True, False)
        await asyncio.sleep(2)
        assert wire.aborted

    play(scene)


def test_an_idle_connection_is_closed_from_the_start_and_between_requests() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        await asyncio.sleep(IDLE_SECONDS - 1)
        wire.send(HEAD % (b"", 0))
        await asyncio.sleep(IDLE_SECONDS - 1)
        assert (wire.statuses, wire.closed) == ([200], False)
        await asyncio.sleep(2)
        assert (wire.statuses, wire.closed) == ([200], True)

    async def silent(wire: Wire, reader: Reader) -> None:
        await asyncio.sleep(IDLE_SECONDS + 1)
        assert (wire.statuses, wire.closed) == ([], True)

    play(scene)
    play(silent)


def test_empty_lines_between_requests_do_not_keep_a_connection_open() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 0))
        for _ in range(IDLE_SECONDS + 1):
            await asyncio.sleep(1)
            wire.send(b"\r\n")
        await asyncio.sleep(1)
        assert (wire.statuses, wire.closed) == ([200], True)

    play(scene)


@pytest.mark.parametrize(
    "malformed",
    [b"\x00\r\n\r\n", HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") % b"" + b"zz\r\n"],
)
def test_a_refused_client_that_never_closes_is_cut_off(malformed: bytes) -> None:
    """One that sends on gains no time by it."""

    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(malformed)
        for _ in range(IDLE_SECONDS - 1):
            await asyncio.sleep(1)
            wire.send(b"more")
        assert (wire.statuses, wire.ended, wire.closed) == ([400], True, False)
        await asyncio.sleep(2)
        assert (wire.statuses, wire.aborted) == ([400], True)

    play(scene)


def test_a_stopping_server_waits_for_an_answer_but_not_for_ever() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        reader.may_read.clear()
        wire.send(HEAD % (b"", 0))
        await asyncio.sleep(1)
        wire.protocol.shutdown()
        await asyncio.sleep(STOP_SECONDS * 0.8)
        assert not wire.closed
        await asyncio.sleep(STOP_SECONDS * 0.2)
        assert wire.aborted
        reader.may_read.set()

    play(scene)
