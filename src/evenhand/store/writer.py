"""The one thread that changes the database, with group commit.

All writes that are waiting are done in one transaction and made durable with one fsync. Each has its own savepoint,
so one that is refused leaves no trace and affects no other. Writes of the same kind can be submitted as items, and are
then done for all items of the group at once.
"""

import asyncio
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from evenhand.core.errors import EvenhandError, StoreBusy, StoreFull, StoreUnavailable
from evenhand.store.connection import Connection, Dialect

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741  one letter for an item's type

Work = Callable[[Connection], T]
"""A function that reads and changes the database inside a transaction."""
BatchedWork = Callable[[Connection, Sequence[I]], Sequence[T | Exception]]
"""The same for many items at once: returns one result or error for each, in order. It checks before it changes
anything: an item that gets an error must have left no trace."""

ATTEMPTS = 5
RETRY_PAUSES = (0.0, 0.1, 0.5)
"""Seconds to wait before each retry of repeatable writes whose commit has an unknown outcome."""
COMMIT_SIBLINGS = 4
"""How many writes must have shared a commit for the next one to wait for as many."""
MAX_WAIT_SECONDS = 0.01
"""How long it waits for them at most."""
IDLE_CHECK_SECONDS = 1.0
"""How often an idle writer looks for writes whose event loop ended before it could wake the writer."""
log = logging.getLogger("evenhand.store")


class PendingWrite:
    """A write in the queue, and the future for its result."""

    __slots__ = ("batched", "error", "future", "item", "loop", "repeatable", "result", "work")

    def __init__(
        self,
        work: Work[Any] | None,
        batched: BatchedWork[Any, Any] | None,
        item: Any,
        *,
        repeatable: bool = False,
    ) -> None:
        self.repeatable = repeatable
        self.work = work
        self.batched = batched
        self.item = item
        self.result: Any = None
        self.error: Exception | None = None
        self.future: asyncio.Future[Any] | Future[Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def resolve(self) -> None:
        future = self.future
        assert future is not None
        if future.done():
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.result)


def _resolve_all(writes: list[PendingWrite]) -> None:
    for write in writes:
        write.resolve()


class Writer:
    """Owns the writing connection."""

    def __init__(self, dialect: Dialect, *, capacity: int = 10_000, group_limit: int = 1_000) -> None:
        self._dialect = dialect
        self._capacity = capacity
        self._group_limit = group_limit
        self._waiting: deque[PendingWrite] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._loops_to_wake: set[asyncio.AbstractEventLoop] = set()
        self._woken = False
        self._closing = False
        self._connection: Connection | None = None
        self.commit_count = 0
        self.commit_seconds = 0.0
        self.write_count = 0
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
        """The result of `work` once it is durable, or the error that it raised. It is `repeatable` when doing it again
        after a commit with an unknown outcome changes nothing more."""
        return await self._enqueue_async(PendingWrite(work, None, None, repeatable=repeatable))  # type: ignore[no-any-return]

    def submit_item(self, batched: BatchedWork[I, T], item: I) -> "asyncio.Future[T]":
        """The result of `batched` for `item`, once it is durable."""
        return self._enqueue_async(PendingWrite(None, batched, item))

    def submit_and_wait(self, work: Work[T]) -> T:
        """`submit` for threads without an event loop."""
        write = PendingWrite(work, None, None)
        future: Future[T] = Future()
        write.future = future
        self._enqueue(write)
        self._wake_up(None)
        return future.result()

    def _enqueue_async(self, write: PendingWrite) -> "asyncio.Future[Any]":
        loop = write.loop = asyncio.get_running_loop()
        future = write.future = loop.create_future()
        # The thread is woken at the end of the loop's iteration, so that requests that came together share a commit.
        if self._enqueue(write):
            loop.call_soon(self._wake_up, loop)
        return future

    def _enqueue(self, write: PendingWrite) -> bool:
        """True when the caller has to schedule waking the thread."""
        with self._lock:
            if self._closing:
                raise StoreUnavailable("the server is stopping")
            if len(self._waiting) >= self._capacity:
                self.refused_busy += 1
                raise StoreBusy("too many writes are waiting")
            self._waiting.append(write)
            if write.loop is None or write.loop in self._loops_to_wake:
                return False
            self._loops_to_wake.add(write.loop)
            return True

    def _wake_up(self, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._wake:
            if loop is not None:
                self._loops_to_wake.discard(loop)
            self._woken = True
            self._wake.notify()

    def close(self) -> None:
        """Finish the waiting writes, then stop."""
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
                while not (self._woken and self._waiting) and not self._closing:
                    if not self._wake.wait(IDLE_CHECK_SECONDS) and self._waiting:
                        self._loops_to_wake = {loop for loop in self._loops_to_wake if not loop.is_closed()}
                        break
                if not self._waiting:
                    return
                count = min(len(self._waiting), self._group_limit)
                group = [self._waiting.popleft() for _ in range(count)]
                self._woken = bool(self._waiting)
            started = time.monotonic()
            self._finish(group)
            self._deliver(group)
            if count >= COMMIT_SIBLINGS:
                self._wait_for_more(count, time.monotonic() - started)

    def _wait_for_more(self, count: int, seconds: float) -> None:
        """Wait a moment for the clients that were just answered, because many of them have more to write.

        Without this, clients fall into two halves that take turns, and the event loop's thread and this one contend
        for the interpreter's lock all the time (docs/decisions/0106-writers-wait-for-each-other.md).
        """
        with self._wake:
            wanted = min(len(self._waiting) + count, self._group_limit)
            self._wake.wait_for(
                lambda: self._closing or len(self._waiting) >= wanted, min(MAX_WAIT_SECONDS, seconds)
            )

    def _finish(self, group: list[PendingWrite]) -> None:
        self.commit_count += 1
        self.write_count += len(group)
        started = time.perf_counter()
        try:
            self._attempt(group)
        except StoreUnavailable as error:
            # The commit may have succeeded. Repeatable writes are tried again; the others fail.
            for write in group:
                write.error = error
            self._retry_unknown([write for write in group if write.repeatable])
        except Exception as error:
            # A single write may have caused it, or be too big for the disk; the others can still succeed.
            for write in group:
                write.error = error
                if len(group) > 1:
                    self._attempt_alone(write)
        finally:
            self.commit_seconds += time.perf_counter() - started

    def _attempt_alone(self, write: PendingWrite) -> None:
        try:
            self._attempt([write])
        except Exception as error:
            write.error = error

    def _retry_unknown(self, writes: list[PendingWrite]) -> None:
        """Retry repeatable writes: they find out themselves whether they were done."""
        for pause in RETRY_PAUSES:
            if not writes:
                return
            time.sleep(pause)
            try:
                self._attempt(writes)
                return
            except StoreUnavailable as error:
                for write in writes:
                    write.error = error
            except Exception:
                for write in writes:
                    self._attempt_alone(write)
                return

    def _attempt(self, group: list[PendingWrite]) -> None:
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

    def _transact(self, group: list[PendingWrite]) -> None:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._dialect.reopen_writer()
            self.reopened += 1
            log.info("the writer opened the database again")
        connection.begin()
        alone = len(group) == 1
        done: set[int] = set()
        for position, write in enumerate(group):
            if position in done:
                continue
            if write.batched is None:
                self._run_work(connection, write, alone=alone)
                continue
            same = [n for n in range(position, len(group)) if group[n].batched is write.batched]
            done.update(same)
            self._run_items(connection, [group[n] for n in same], alone=len(same) == len(group))
        connection.commit()

    def _run_work(self, connection: Connection, write: PendingWrite, *, alone: bool) -> None:
        write.result, write.error = None, None
        assert write.work is not None
        if not alone:
            connection.run("SAVEPOINT work")
        try:
            write.result = write.work(connection)
        except Exception as error:
            if self._affects_the_group(error) or alone:
                raise
            connection.run("ROLLBACK TO SAVEPOINT work")
            connection.run("RELEASE SAVEPOINT work")
            write.error = self._dialect.translate_error(error)
            return
        if not alone:
            connection.run("RELEASE SAVEPOINT work")

    def _run_items(self, connection: Connection, writes: list[PendingWrite], *, alone: bool) -> None:
        batched = writes[0].batched
        assert batched is not None
        if alone:
            # Nothing else is in the transaction, so an error rolls it back as a whole.
            self._record(writes, batched(connection, [write.item for write in writes]))
            return
        connection.run("SAVEPOINT items")
        try:
            results = batched(connection, [write.item for write in writes])
        except Exception as error:
            if self._affects_the_group(error):
                raise
            connection.run("ROLLBACK TO SAVEPOINT items")
            connection.run("RELEASE SAVEPOINT items")
            if len(writes) == 1:
                writes[0].error = self._dialect.translate_error(error)
            else:
                for write in writes:
                    self._run_items(connection, [write], alone=False)
            return
        connection.run("RELEASE SAVEPOINT items")
        self._record(writes, results)

    @staticmethod
    def _record(writes: list[PendingWrite], results: Sequence[Any]) -> None:
        for write, result in zip(writes, results, strict=True):
            write.error = result if isinstance(result, Exception) else None
            write.result = None if write.error else result

    def _affects_the_group(self, error: Exception) -> bool:
        """True for an error that is not the write's own: the disk, the connection, a deadlock."""
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
    def _deliver(group: list[PendingWrite]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop | None, list[PendingWrite]] = {}
        for write in group:
            by_loop.setdefault(write.loop, []).append(write)
        for loop, writes in by_loop.items():
            if loop is None:
                _resolve_all(writes)
                continue
            # The loop may have been closed meanwhile; then nobody waits for the result.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve_all, writes)
