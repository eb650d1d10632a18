"""Threads for scorers.

Not those of `ThreadPoolExecutor`: a process waits for these when it ends, so one scorer that hangs would keep a server
from stopping.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class ScoringThreads:
    """At most `size` threads, started when they are needed; nobody waits for them at the end."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._started = 0
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, computed on a thread: the event loop answers others meanwhile."""
        future: Future[T] = Future()
        self._waiting.put((future, work))
        with self._lock:
            if self._started < self._size:
                self._started += 1
                name = f"{self._name}-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            future, work = self._waiting.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del future, work  # what they hold is freed now, not with the next one
