"""A process of its own for work that could take for ever: it can be stopped, and may crash, alone.

Requests and replies are lines of JSON. One request may have several replies.
"""

import atexit
import math
import os
import resource
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from evenhand.core.errors import ScorerTimeout, ScoringError

MEMORY_LIMIT = 2 * 1024**3
"""Bytes of address space that a worker may use."""
START_LIMIT = 60.0
"""Seconds that starting may take; not part of the time that a request may take."""
PATIENCE = 30.0
"""How many times a request's limit may pass on the clock before its processor time has reached it."""

Reply = dict[str, Any]


class Worker:
    """A worker process, started when first needed and again after it was stopped. One request at a time.

    A request's limit is processor time: how busy the machine is with other things does not decide an outcome.
    """

    def __init__(self, module: str, *, time_limit: float) -> None:
        self._module = module
        self._time_limit = time_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._unread = bytearray()
        self._lock = threading.Lock()
        atexit.register(self.close)

    @contextmanager
    def ask(self, request: Any) -> Iterator[Callable[[], Reply]]:
        """Send a request; the function given waits for the next reply, and raises `ScorerTimeout` past the limit."""
        data = msgspec.json.encode(request) + b"\n"
        with self._lock:
            process = self._running()
            used = _processor_seconds(process.pid)
            deadline = time.monotonic() + self._time_limit * PATIENCE
            assert process.stdin is not None
            try:
                process.stdin.write(data)
                process.stdin.flush()
            except BrokenPipeError:
                raise self._crashed() from None
            yield lambda: self._reply(process, deadline, used + self._time_limit)

    def close(self) -> None:
        """Stop the process, if there is one."""
        process, self._process, self._unread = self._process, None, bytearray()
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():
            self._process, self._unread = None, bytearray()  # forked: the worker belongs to the parent
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-P", "-m", self._module]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            # Its traces would only litter the terminal: that it crashed is told by the outcome.
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)  # noqa: S603  a fixed command
            self._owner = os.getpid()
            self._reply(self._process, time.monotonic() + START_LIMIT, math.inf)
        return self._process

    def _reply(self, process: "subprocess.Popen[bytes]", deadline: float, most: float) -> Reply:
        """The next reply before the moment `deadline` and before the process has used `most` seconds."""
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        # Two replies may come in one piece: what is left of it is looked at before the pipe is.
        while b"\n" not in self._unread:
            left = min(deadline - time.monotonic(), most - _processor_seconds(process.pid))
            if select.select([pipe], [], [], max(0.0, left))[0]:
                data = os.read(pipe, 1 << 16)
                if not data:
                    raise self._crashed()
                self._unread += data
            elif left <= 0:
                self.close()
                raise ScorerTimeout(f"scoring was stopped after {self._time_limit:g} s: scorer timed out")
        line, _, self._unread = self._unread.partition(b"\n")
        reply: Reply = msgspec.json.decode(line)
        return reply

    def _crashed(self) -> ScoringError:
        self.close()
        return ScoringError("the process that scores such samples crashed", kind="scorer_crash")


def _processor_seconds(pid: int) -> float:
    """What a process has used so far; where the system does not tell, the clock stands in."""
    try:
        # Linux's clock of another process: the number with its bits turned, and the kind of clock.
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return time.monotonic()


def serve(answer: Callable[[bytes], Iterable[Reply]]) -> None:
    """What a worker's module runs: answer requests until stdin ends."""
    # macOS has the limit by name and refuses to set it: there only the time is limited.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    out = sys.stdout.buffer

    def send(reply: Reply) -> None:
        out.write(msgspec.json.encode(reply) + b"\n")
        out.flush()

    send({"ready": True})
    for line in sys.stdin.buffer:
        for reply in answer(line):
            send(reply)
