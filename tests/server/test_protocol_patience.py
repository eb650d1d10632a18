"""Who keeps the server waiting, and for how long: the protocol on a loop whose clock is told the time.

Hours pass here without waiting, and a busy machine changes nothing.
"""

import asyncio
import json
import selectors
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from evenhand.core.errors import Refusal
from evenhand.server.backlog import Backlog
from evenhand.server.protocol import MAX_BUFFERED, ServerProtocol

PATIENCE = 30
HEAD = b"POST /%b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class Clock(selectors.DefaultSelector):
    """Instead of waiting, the time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """A loop by that clock."""

    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class Wire(asyncio.Transport):
    """A connection in memory. What the server does not read yet, the client keeps."""

    def __init__(self, protocol: ServerProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._kept: list[bytes] = []
        self._reading = True
        self.written = b""
        self.unsent = 0
        self.ended = self.closed = False
        protocol.connection_made(self)

    def send(self, data: bytes) -> None:
        self._kept.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._kept and self._reading and not self.closed:
            self._protocol.data_received(self._kept.pop(0))

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
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
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
        self.bodies.append(size)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


Scene = Callable[[Wire, Reader], Awaitable[None]]


def play(scene: Scene) -> None:
    """The scene on a new connection. Nothing is under way when it has ended."""
    state, backlog = ServerState(), Backlog(1_000)

    async def whole() -> None:
        reader = Reader()
        config = uvicorn.Config(reader, lifespan="off", log_config=None, timeout_keep_alive=PATIENCE)
        config.load()
        wire = Wire(
            ServerProtocol(config, state, {}, asyncio.get_running_loop(), backlog=backlog, most_connections=9)
        )
        await scene(wire, reader)
        wire.close()
        await asyncio.sleep(1)
        assert not state.tasks
        assert not state.connections
        assert backlog.used == 0
        assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(whole())


def test_a_body_that_stops_coming_is_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 10) + b"abc")
        await asyncio.sleep(PATIENCE - 1)
        assert wire.statuses == []
        await asyncio.sleep(2)
        assert (wire.statuses, reader.bodies) == ([408], [3])
        assert b"connection: close\r\n" in wire.written
        assert wire.ended
        # What comes late is no request, and who never goes is let go.
        wire.send(b"defghij" + HEAD % (b"unread", 0))
        await asyncio.sleep(PATIENCE + 1)
        assert wire.statuses == [408]
        assert wire.closed

    play(scene)


def test_a_body_that_never_starts_is_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send((HEAD % (b"", 10)).replace(b"Host", b"Expect: 100-continue\r\nHost"))
        await asyncio.sleep(PATIENCE + 1)
        assert wire.statuses == [100, 408]
        assert wire.ended

    play(scene)


def test_every_piece_has_its_own_time() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 100))
        for _ in range(100):
            await asyncio.sleep(PATIENCE - 1)
            wire.send(b"x")
        await asyncio.sleep(1)
        assert (wire.statuses, reader.bodies) == ([200], [100])
        assert not wire.ended

    play(scene)


def test_an_endless_head_has_no_more_time_than_a_quiet_one() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(b"GET / HTTP/1.1\r\n")
        for _ in range(PATIENCE - 1):
            await asyncio.sleep(1)
            wire.send(b"X: 1\r\n")
        assert wire.statuses == []
        await asyncio.sleep(2)
        assert wire.statuses == [408]
        assert json.loads(wire.written.partition(b"\r\n\r\n")[2])["error"]["code"] == "REQUEST_TIMEOUT"

    play(scene)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_who_waits_for_the_application_is_not_slow(size: int) -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        reader.may_read.clear()
        wire.send(HEAD % (b"", size))
        for _ in range(size // 10):
            wire.send(b"x" * 10)
        await asyncio.sleep(10 * PATIENCE)
        assert wire.held_back == (size > MAX_BUFFERED)
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
        await asyncio.sleep(10 * PATIENCE + 7)
        reader.may_read.set()
        await asyncio.sleep(PATIENCE - 1)
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
        await asyncio.sleep(PATIENCE)
        assert (wire.statuses, reader.bodies) == ([200, 200, 408], [1, 2, 2])
        assert wire.ended

    play(scene)


def test_a_slow_body_whose_client_leaves_is_only_ended() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 10) + b"abc")
        await asyncio.sleep(PATIENCE - 1)
        wire.close()
        await asyncio.sleep(PATIENCE)
        assert (wire.statuses, reader.gone) == ([], 1)

    play(scene)


def test_the_rest_of_a_body_that_nobody_wants_has_one_time_in_all() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"unread", 1_000))
        for _ in range(PATIENCE - 1):
            await asyncio.sleep(1)
            wire.send(b"x")
        assert (wire.statuses, wire.closed) == ([200], False)
        await asyncio.sleep(2)
        assert wire.closed

    play(scene)


def test_who_reads_a_little_of_an_answer_is_not_let_go() -> None:
    async def scene(wire: Wire, reader: Reader) -> None:
        wire.send(HEAD % (b"", 0))
        for unsent in range(100, 90, -1):
            wire.unsent = unsent
            await asyncio.sleep(PATIENCE)
            assert not wire.closed
        await asyncio.sleep(PATIENCE)
        assert wire.closed

    play(scene)
