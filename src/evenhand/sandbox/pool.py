"""Warm sandboxes: started ahead, used for one program, thrown away."""

import asyncio
import collections
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from msgspec.structs import replace

from evenhand.core.errors import EvenhandError, SandboxUnavailable
from evenhand.sandbox.port import Execution, Grade, Program, ResourceLimits
from evenhand.sandbox.worker import SandboxBroken, Worker, await_ready, converse

_TRIES = 3


class Backend(Protocol):
    """Starts sandboxes of one kind."""

    @property
    def name(self) -> str:
        """`bubblewrap`, `docker`."""

    def start(self, limits: ResourceLimits) -> Worker:
        """A new sandbox, starting or started."""

    def close(self) -> None:
        """Remove what sandboxes may have left."""


class Pool:
    """The `Sandbox` port over a back end, with sandboxes started ahead.

    Sandboxes are started by threads that live as long as the pool: the kernel ends a sandbox when the thread that
    started it ends, which is how nothing is left behind when the process is killed.
    """

    def __init__(self, backend: Backend, *, parallel: int | None = None, warm: int | None = None) -> None:
        self.backend = backend
        self.parallel = parallel or os.cpu_count() or 1
        self.warm = self.parallel * 2 if warm is None else warm
        self.limits = ResourceLimits()
        self._idle: collections.deque[Worker] = collections.deque()
        self._starting = 0
        self._failure: EvenhandError | None = None
        self._closed = threading.Event()
        self._changed = threading.Condition()
        self._executor = ThreadPoolExecutor(self.parallel, thread_name_prefix="evenhand-sandbox")
        self._fillers: list[threading.Thread] = []

    @property
    def name(self) -> str:
        """Which back end this is."""
        return self.backend.name

    async def run(self, program: Program) -> Execution:
        """Run one program; at most `parallel` run at one time and the others wait their turn."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self.execute, program)

    def execute(self, program: Program) -> Execution:
        """`run` for callers without an event loop."""
        for attempt in range(_TRIES):
            worker = self._take(program.limits)
            try:
                execution = converse(worker, await_ready(worker), program)
                if execution.ending != "lost":
                    return execution
                if attempt == _TRIES - 1:
                    return self._blamed(execution, program)
            except SandboxBroken:
                # It may have died of old age while it waited; a fresh one tells.
                if attempt == _TRIES - 1:
                    raise
            finally:
                worker.kill()
        raise AssertionError("unreachable")

    def _blamed(self, lost: Execution, program: Program) -> Execution:
        """A grade for a program under which every sandbox went away, if a plain program passes in the next one."""
        control = Program(source="def f():\n    return 1", test="assert f() == 1", limits=program.limits)
        worker = self._take(program.limits)
        try:
            found = converse(worker, await_ready(worker), control).grade
        finally:
            worker.kill()
        if program.test is None or found is None or not found.passed:
            return lost
        message = (
            f"the sandbox ended under the program {_TRIES} times; a plain program passed in it right after"
        )
        return replace(lost, grade=Grade(passed=False, reason="ended_early", message=message))

    def prepare(self) -> None:
        """Start filling, and wait until the sandboxes that can be ready are started."""
        with self._changed:
            self._start_fillers()
            while len(self._idle) < self.warm and self._failure is None and not self._closed.is_set():
                self._changed.wait(1)

    def _take(self, limits: ResourceLimits) -> Worker:
        if not self.warm or _shape(limits) != _shape(self.limits):
            return self.backend.start(limits)
        with self._changed:
            self._start_fillers()
            while not self._idle:
                if self._closed.is_set():
                    raise SandboxUnavailable("the sandbox is closed")
                if self._failure is not None:
                    failure, self._failure = self._failure, None
                    self._changed.notify_all()
                    raise failure
                self._changed.wait()
            worker = self._idle.popleft()
            self._changed.notify_all()
            return worker

    def _start_fillers(self) -> None:
        while len(self._fillers) < min(2, self.parallel) and not self._closed.is_set():
            name = f"evenhand-sandbox-filler-{len(self._fillers)}"
            thread = threading.Thread(target=self._fill, name=name, daemon=True)
            self._fillers.append(thread)
            thread.start()

    def _fill(self) -> None:
        while True:
            with self._changed:
                # A failure waits for someone to take it: only then is it tried again.
                while not self._closed.is_set() and (
                    len(self._idle) + self._starting >= self.warm or self._failure is not None
                ):
                    self._changed.wait()
                if self._closed.is_set():
                    return
                self._starting += 1
            worker: Worker | None = None
            failure: EvenhandError | None = None
            try:
                worker = self.backend.start(self.limits)
            except EvenhandError as error:
                failure = error
            except Exception as error:
                failure = SandboxBroken(f"the sandbox cannot be started: {type(error).__name__}: {error}")
            with self._changed:
                self._starting -= 1
                self._failure = failure
                if worker is not None and not self._closed.is_set():
                    self._idle.append(worker)
                    worker = None
                self._changed.notify_all()
            if worker is not None:
                worker.kill()

    def close(self) -> None:
        """End every waiting sandbox, and wait for the programs that still run."""
        with self._changed:
            if self._closed.is_set():
                return
            self._closed.set()
            self._changed.notify_all()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for thread in self._fillers:
            thread.join()
        while self._idle:
            self._idle.popleft().kill()
        self.backend.close()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _shape(limits: ResourceLimits) -> tuple[int, int, int, float]:
    """The limits that are fixed when a sandbox is made; the others travel with the program."""
    return (limits.memory_bytes, limits.processes, limits.disk_bytes, limits.cores)
