"""Plain functions on threads that may be given up.

A thread cannot be stopped from outside. One that takes too long is abandoned: nobody waits for it any more, it does not
keep the program from ending, and its place is taken by a new one. How many such threads there may be is limited.
"""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from evenhand.core.errors import EvenhandError, Exit


class TooManyAbandoned(EvenhandError):
    """Too many calls that nobody waits for any more are still going on."""

    exit_status = Exit.UNAVAILABLE


class _Worker:
    """One thread, which takes one call after the other until it is abandoned or released."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # A thread of the standard pool would be waited for when the program ends.
        threading.Thread(target=self._run, name="evenhand-task", daemon=True).start()

    def _run(self) -> None:
        while (call := self.calls.get()) is not None:
            call()


class Threads:
    """Runs functions for one event loop."""

    def __init__(self, *, most_abandoned: int) -> None:
        self._most_abandoned = most_abandoned
        self._idle: list[_Worker] = []
        self.abandoned = 0
        """Calls that were given up and are still going on."""

    async def run(self, function: Callable[[], Any], seconds: float | None) -> Any:
        """What the function returns; `TimeoutError` when it does not in time, and its thread is abandoned."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        worker = self._idle.pop() if self._idle else _Worker()
        context = contextvars.copy_context()

        def call() -> None:
            try:
                value, error = context.run(function), None
            except (
                BaseException
            ) as raised:  # SystemExit in a task is the task's failure, not the program's end
                value, error = None, raised
            try:
                loop.call_soon_threadsafe(self._finish, worker, done, value, error)
            except RuntimeError:
                worker.calls.put(None)  # the loop is gone, and with it whoever waited

        worker.calls.put(call)
        try:
            if seconds is None:
                return await done
            return await asyncio.wait_for(done, seconds)
        except (TimeoutError, asyncio.CancelledError):
            if done.cancelled():
                self.abandoned += 1
            raise

    def check(self) -> None:
        """Raise when too many calls were given up."""
        if self.abandoned > self._most_abandoned:
            raise TooManyAbandoned(
                f"{self.abandoned:,} calls of the task did not end in their time limit and still occupy a thread each; "
                "give the task a time limit of its own, or raise the run's"
            )

    def close(self) -> None:
        """Let the idle threads end."""
        for worker in self._idle:
            worker.calls.put(None)
        self._idle.clear()

    def _finish(
        self, worker: _Worker, done: "asyncio.Future[Any]", value: Any, error: BaseException | None
    ) -> None:
        if done.cancelled():
            # Abandoned, and it did end after all.
            self.abandoned -= 1
            worker.calls.put(None)
            return
        self._idle.append(worker)
        if error is None:
            done.set_result(value)
        elif isinstance(error, StopIteration | KeyboardInterrupt | SystemExit | asyncio.CancelledError):
            # A future cannot carry these; what they said is kept.
            done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        else:
            done.set_exception(error)
