"""One database of the service: a writer, readers, and the schema brought up to date when it is opened."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from evenhand.core.errors import MissingFile, OptionError, StoreUnavailable
from evenhand.store.connection import Connection, Dialect, Kind
from evenhand.store.migrations import check_up_to_date, migrate
from evenhand.store.sqlite import SqliteDialect
from evenhand.store.writer import BatchedWork, Work, Writer

log = logging.getLogger("evenhand.store")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741  one letter for an item's type

READERS = 4
SEARCHERS = 2
"""How many of them work on questions that may go over very many rows."""
SUFFIXES = (".db", ".sqlite", ".sqlite3")
"""What a plain path must end in to be taken for a SQLite database."""


def pick_dialect(url: str, *, time_limit: float = 5.0) -> Dialect:
    """`sqlite:///PATH` (four slashes for an absolute path), a path that ends in `.db`, or `postgresql://…`."""
    scheme = urlsplit(url).scheme
    if scheme in ("postgresql", "postgres"):
        from evenhand.store.postgresql import PostgresDialect  # psycopg is an extra

        return PostgresDialect(url, time_limit=time_limit)
    if scheme == "sqlite":
        rest = url.removeprefix("sqlite://")
        if not rest.startswith("/") or len(rest) < 2:
            raise OptionError("a SQLite database is named sqlite:///PATH")
        return SqliteDialect(Path(unquote(rest[1:])), time_limit=time_limit)
    if scheme:
        raise OptionError(f"unknown kind of database '{scheme}'; known: sqlite, postgresql")
    if Path(url).suffix not in SUFFIXES:
        # A slip such as `--database scores` must not silently make an empty database of that name.
        raise OptionError(
            f"'{url}' names no database: use sqlite:///PATH, postgresql://…, or a path that ends in "
            f"{', '.join(SUFFIXES)}"
        )
    return SqliteDialect(Path(url), time_limit=time_limit)


class Database:
    """Reads on a few threads with connections that cannot write; every change through the one writer."""

    def __init__(
        self, dialect: Dialect, *, capacity: int = 10_000, readers: int = READERS, migrated: bool = True
    ) -> None:
        self.dialect = dialect
        self.writer = Writer(dialect, capacity=capacity)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="evenhand-reader")
        self._searches = asyncio.Semaphore(SEARCHERS)
        self._own = threading.local()
        self._opened: list[Connection] = []
        self._opened_lock = threading.Lock()
        self._away_since: float | None = None
        connection = dialect.open_writer()
        try:
            self.migrated = migrate(connection) if migrated else []
        except BaseException:
            connection.close()
            dialect.close()
            raise
        self.writer.start(connection)

    @property
    def kind(self) -> Kind:
        return self.dialect.kind

    @property
    def is_away(self) -> bool:
        """Whether the last read found no database."""
        return self._away_since is not None

    async def write(self, work: Work[T], *, repeatable: bool = False) -> T:
        """Do `work` in a transaction of its own (as far as it can see) and answer when it is on disk."""
        return await self.writer.submit(work, repeatable=repeatable)

    def write_item(self, batched: BatchedWork[I, T], item: I) -> "asyncio.Future[T]":
        """Do `batched` for `item`, together with the same work for items of other requests."""
        return self.writer.submit_item(batched, item)

    async def read(self, work: Work[T]) -> T:
        """Do `work` on one consistent snapshot, away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, work)

    async def search(self, work: Work[T]) -> T:
        """`read` for work that may go over very many rows: the other readers are left to everyone else."""
        async with self._searches:
            return await self.read(work)

    def write_now(self, work: Work[T]) -> T:
        """`write` for threads without an event loop."""
        return self.writer.submit_and_wait(work)

    def read_now(self, work: Work[T]) -> T:
        """`read` on the calling thread. A connection that was lost is opened again, once."""
        try:
            result = self._read_again(work)
        except StoreUnavailable as error:
            self._note_outage(error)
            raise
        if self._away_since is not None:
            self._note_return()
        return result

    def _read_again(self, work: Work[T]) -> T:
        try:
            return self._read_once(work)
        except Exception as error:
            if not self.dialect.lasting_failure(error):
                raise self.dialect.translate_error(error) from error
        try:
            return self._read_once(work)
        except Exception as error:
            raise self.dialect.translate_error(error) from error

    def _note_outage(self, error: StoreUnavailable) -> None:
        """One warning for an outage, however many requests and background tasks meet it."""
        with self._opened_lock:
            begins, self._away_since = self._away_since is None, self._away_since or time.monotonic()
        if begins:
            fields = {"database": self.dialect.place, "error": type(error).__name__}
            log.warning("the database does not answer", extra={"fields": fields})

    def _note_return(self) -> None:
        with self._opened_lock:
            since, self._away_since = self._away_since, None
        if since is not None:
            fields = {"database": self.dialect.place, "seconds": round(time.monotonic() - since, 1)}
            log.info("the database answers again", extra={"fields": fields})

    def _read_once(self, work: Callable[[Connection], T]) -> T:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self.dialect.open_reader()
            with self._opened_lock:
                self._opened.append(connection)
        try:
            connection.begin()
            result = work(connection)
            connection.commit()
        except BaseException as error:
            if isinstance(error, Exception) and self.dialect.lasting_failure(error):
                self._drop(connection)
            else:
                try:
                    connection.rollback()
                except Exception:
                    self._drop(connection)
            raise
        return result

    def _drop(self, connection: Connection) -> None:
        self._own.connection = None
        with self._opened_lock:
            self._opened.remove(connection)
        with suppress(Exception):
            connection.close()

    def close(self) -> None:
        """Finish what waits and release everything."""
        self._readers.shutdown()
        with self._opened_lock:
            for connection in self._opened:
                with suppress(Exception):
                    connection.close()
            self._opened.clear()
        # Last, because only the last connection of an embedded database moves its log into the file.
        self.writer.close()
        self.dialect.close()


@contextmanager
def reading(url: str, *, time_limit: float = 86_400.0) -> Iterator[Connection]:
    """One consistent snapshot of a database that may be in use; nothing is migrated and nothing can be changed."""
    dialect = pick_dialect(url, time_limit=time_limit)
    if isinstance(dialect, SqliteDialect) and not dialect.path.exists():
        raise MissingFile("no such database", path=dialect.path)
    try:
        connection = dialect.open_reader()
        try:
            connection.begin()
            yield connection
        except Exception as error:
            raise dialect.translate_error(error) from error
        finally:
            connection.close()
    finally:
        dialect.close()


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    """One transaction on a database that a server may be using; without a server, the schema is brought up to date."""
    dialect = pick_dialect(url)
    try:
        connection = dialect.open_guest() if isinstance(dialect, SqliteDialect) else None
        if connection is None:
            connection = dialect.open_writer()
            migrate(connection)
        try:
            check_up_to_date(connection)
            connection.begin()
            yield connection
            connection.commit()
        except Exception as error:
            with suppress(Exception):
                connection.rollback()
            raise dialect.translate_error(error) from error
        finally:
            connection.close()
    finally:
        dialect.close()


def open_database(url: str, *, capacity: int = 10_000, time_limit: float = 5.0) -> Database:
    """Open, or make, the database at `url` and bring its schema up to date."""
    return Database(pick_dialect(url, time_limit=time_limit), capacity=capacity)
