"""The one thread that changes the database, and the commit that many requests share.

Whatever is waiting when the thread comes round is done in one transaction and made durable with one fsync. Each
piece of work has its own savepoint, so one that is refused leaves no trace and disturbs no other. Work of the same
kind can be handed over as items, and is then done for all items of the group at once.
"""

import asyncio
import logging
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from evenhand.core.errors import EvenhandError, StoreBusy, StoreFull, StoreUnavailable
from evenhand.store.connection import Connection, Dialect

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741  one letter for an item's type

Work = Callable[[Connection], T]
"""A piece of work inside a transaction."""
BatchedWork = Callable[[Connection, Sequence[I]], Sequence[T | Exception]]
"""The same for many items at once: one result or error for each, in order. It checks before it changes anything:
an item that gets an error must have left no trace."""

ATTEMPTS = 5
SETTLING_PAUSES = (0.0, 0.1, 0.5)
"""Seconds to wait before each try to find out what became of work that may be done again."""
SIBLINGS = 4
"""How many requests must have shared a commit for the next one to wait for as many."""
LINGER_SECONDS = 0.01
"""How long it waits at most."""
STRAY_SECONDS = 1.0
"""How often an idle writer looks for work whose event loop ended before it could wake the writer."""
IMPATIENT_SECONDS = 0.001
"""How long another thread may keep the interpreter while a large batch is written; Python's own limit is 5 ms."""
log = logging.getLogger("evenhand.store")


class Job:
    """One piece of work that waits, and where its result goes."""

    __slots__ = ("batched", "error", "future", "item", "large", "loop", "repeatable", "result", "work")

    def __init__(
        self,
        work: Work[Any] | None,
        batched: BatchedWork[Any, Any] | None,
        item: Any,
        *,
        repeatable: bool = False,
        large: bool = False,
    ) -> None:
        self.repeatable = repeatable
        self.large = large
        self.work = work
        self.batched = batched
        self.item = item
        self.result: Any = None
        self.error: Exception | None = None
        self.future: asyncio.Future[Any] | Future[Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def settle(self) -> None:
        future = self.future
        assert future is not None
        if future.done():
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.result)


def _settle_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()


class Writer:
    """Owns the writing connection."""

    def __init__(self, dialect: Dialect, *, capacity: int = 10_000, group_limit: int = 1_000) -> None:
        self._dialect = dialect
        self._capacity = capacity
        self._group_limit = group_limit
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._waking: set[asyncio.AbstractEventLoop] = set()
        self._called = False
        self._closing = False
        self._usual_patience = sys.getswitchinterval()
        self._connection: Connection | None = None
        self.groups = 0
        self.jobs = 0
        self.refused_busy = 0
        self.reopened = 0
        self._thread = threading.Thread(target=self._loop, name="evenhand-writer", daemon=True)

    def start(self, connection: Connection) -> None:
        """Take over the connection that the migrations were made with."""
        self._connection = connection
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def submit(self, work: Work[T], *, repeatable: bool = False) -> T:
        """The result of `work` once it is durable, or the error that it raised. Work is `repeatable` when doing it
        again after a commit whose outcome is unknown changes nothing more."""
        return await self._enqueue_async(Job(work, None, None, repeatable=repeatable))  # type: ignore[no-any-return]

    def submit_item(self, batched: BatchedWork[I, T], item: I, *, large: bool = False) -> "asyncio.Future[T]":
        """The same for one item of work that is done for many at once; `large` when it takes milliseconds."""
        return self._enqueue_async(Job(None, batched, item, large=large))

    def submit_and_wait(self, work: Work[T]) -> T:
        """`submit` for threads without an event loop."""
        job = Job(work, None, None)
        future: Future[T] = Future()
        job.future = future
        self._enqueue(job)
        self._wake_up(None)
        return future.result()

    def _enqueue_async(self, job: Job) -> "asyncio.Future[Any]":
        loop = job.loop = asyncio.get_running_loop()
        future = job.future = loop.create_future()
        # The thread is woken once the loop has gone round: requests that came together share a commit.
        if self._enqueue(job):
            loop.call_soon(self._wake_up, loop)
        return future

    def _enqueue(self, job: Job) -> bool:
        """True when nobody has promised yet to wake the thread once the loop of this job has gone round."""
        with self._lock:
            if self._closing:
                raise StoreUnavailable("the server is stopping")
            if len(self._waiting) >= self._capacity:
                self.refused_busy += 1
                raise StoreBusy("too many writes are waiting")
            self._waiting.append(job)
            if job.loop is None or job.loop in self._waking:
                return False
            self._waking.add(job.loop)
            return True

    def _wake_up(self, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._wake:
            if loop is not None:
                self._waking.discard(loop)
            self._called = True
            self._wake.notify()

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not (self._called and self._waiting) and not self._closing:
                    if not self._wake.wait(STRAY_SECONDS) and self._waiting:
                        self._waking = {loop for loop in self._waking if not loop.is_closed()}
                        break
                if not self._waiting:
                    return
                count = min(len(self._waiting), self._group_limit)
                group = [self._waiting.popleft() for _ in range(count)]
                self._called = bool(self._waiting)
            started = time.monotonic()
            if any(job.large for job in group):
                with self._impatience():
                    self._finish(group)
            else:
                self._finish(group)
            self._deliver(group)
            if count >= SIBLINGS:
                self._linger(count, time.monotonic() - started)

    @contextmanager
    def _impatience(self) -> Iterator[None]:
        """Every statement gives up the interpreter's lock and asks for it again. Requests that are read meanwhile keep
        it for as long as they may: a few statements with a batch each would mostly wait."""
        sys.setswitchinterval(min(IMPATIENT_SECONDS, self._usual_patience))
        try:
            yield
        finally:
            sys.setswitchinterval(self._usual_patience)

    def _linger(self, count: int, seconds: float) -> None:
        """Wait a moment for those who were just answered: many of them have more to write.

        Without this, callers fall into two halves that take turns, and the thread of the event loop and this one
        contend for the interpreter's lock all the time (docs/decisions/0106-writers-wait-for-each-other.md).
        """
        with self._wake:
            wanted = min(len(self._waiting) + count, self._group_limit)
            self._wake.wait_for(
                lambda: self._closing or len(self._waiting) >= wanted, min(LINGER_SECONDS, seconds)
            )

    def _finish(self, group: list[Job]) -> None:
        self.groups += 1
        self.jobs += len(group)
        try:
            self._attempt(group)
        except StoreUnavailable as error:
            # The commit may have been made or not. Whoever can ask again does; the others are told that it failed.
            for job in group:
                job.error = error
            self._settle_unknown([job for job in group if job.repeatable])
        except Exception as error:
            # One piece of work may be at fault (or too big for the disk) where the others are not.
            for job in group:
                job.error = error
                if len(group) > 1:
                    self._attempt_alone(job)

    def _attempt_alone(self, job: Job) -> None:
        try:
            self._attempt([job])
        except Exception as error:
            job.error = error

    def _settle_unknown(self, jobs: list[Job]) -> None:
        """Do again what finds out by itself whether it was done already."""
        for pause in SETTLING_PAUSES:
            if not jobs:
                return
            time.sleep(pause)
            try:
                self._attempt(jobs)
                return
            except StoreUnavailable as error:
                for job in jobs:
                    job.error = error
            except Exception:
                for job in jobs:
                    self._attempt_alone(job)
                return

    def _attempt(self, group: list[Job]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._transact(group)
                return
            except Exception as error:
                self._undo(error)
                last = attempt == ATTEMPTS - 1
                if last or not self._dialect.worth_retrying(error):
                    ours = self._dialect.translate_error(error)
                    if not isinstance(ours, EvenhandError):
                        log.exception("a write failed", extra={"fields": {"kind": type(error).__name__}})
                    raise ours from error
                time.sleep(random.uniform(0, 0.02 * 2**attempt))

    def _transact(self, group: list[Job]) -> None:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._dialect.reopen_writer()
            self.reopened += 1
            log.warning("the writer opened the database again")
        connection.begin()
        alone = len(group) == 1
        done: set[int] = set()
        for position, job in enumerate(group):
            if position in done:
                continue
            if job.batched is None:
                self._run_work(connection, job, alone=alone)
                continue
            same = [n for n in range(position, len(group)) if group[n].batched is job.batched]
            done.update(same)
            self._run_items(connection, [group[n] for n in same], alone=len(same) == len(group))
        connection.commit()

    def _run_work(self, connection: Connection, job: Job, *, alone: bool) -> None:
        job.result, job.error = None, None
        assert job.work is not None
        if not alone:
            connection.run("SAVEPOINT work")
        try:
            job.result = job.work(connection)
        except Exception as error:
            if self._concerns_all(error) or alone:
                raise
            connection.run("ROLLBACK TO SAVEPOINT work")
            connection.run("RELEASE SAVEPOINT work")
            job.error = self._dialect.translate_error(error)
            return
        if not alone:
            connection.run("RELEASE SAVEPOINT work")

    def _run_items(self, connection: Connection, jobs: list[Job], *, alone: bool) -> None:
        batched = jobs[0].batched
        assert batched is not None
        if alone:
            # Nothing else in the transaction: whatever goes wrong takes it back as a whole.
            self._note(jobs, batched(connection, [job.item for job in jobs]))
            return
        connection.run("SAVEPOINT items")
        try:
            results = batched(connection, [job.item for job in jobs])
        except Exception as error:
            if self._concerns_all(error):
                raise
            connection.run("ROLLBACK TO SAVEPOINT items")
            connection.run("RELEASE SAVEPOINT items")
            if len(jobs) == 1:
                jobs[0].error = self._dialect.translate_error(error)
            else:
                for job in jobs:
                    self._run_items(connection, [job], alone=False)
            return
        connection.run("RELEASE SAVEPOINT items")
        self._note(jobs, results)

    @staticmethod
    def _note(jobs: list[Job], results: Sequence[Any]) -> None:
        for job, result in zip(jobs, results, strict=True):
            job.error = result if isinstance(result, Exception) else None
            job.result = None if job.error else result

    def _concerns_all(self, error: Exception) -> bool:
        """True for what says nothing about the one piece of work: the disk, the connection, a deadlock."""
        ours = self._dialect.translate_error(error)
        return (
            self._dialect.lasting_failure(error)
            or self._dialect.worth_retrying(error)
            or isinstance(ours, StoreFull | StoreUnavailable)
        )

    def _undo(self, error: Exception) -> None:
        connection = self._connection
        if connection is None:
            return
        usable = not self._dialect.lasting_failure(error)
        if usable:
            try:
                connection.rollback()
            except Exception:
                usable = False
        if not usable:
            self._connection = None
            with suppress(Exception):
                connection.close()

    @staticmethod
    def _deliver(group: list[Job]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop | None, list[Job]] = {}
        for job in group:
            by_loop.setdefault(job.loop, []).append(job)
        for loop, jobs in by_loop.items():
            if loop is None:
                _settle_all(jobs)
                continue
            # A loop that was closed meanwhile has nobody left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle_all, jobs)
