"""The embedded database: one file, one writing connection, any number of readers."""

import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from evenhand.core.errors import NotADatabase, StoreError, StoreFull, StoreTimeout, StoreUnavailable
from evenhand.store.connection import LIST, Bound, Connection, Kind, Row, Value

MINIMUM = (3, 35, 0)
"""RETURNING and the JSON functions are relied upon."""
PAGE_SIZE = 4096
LOG_BYTES = 64 * 1024 * 1024
"""How long the write-ahead log grows before its pages go into the file."""
BUSY_SECONDS = 5.0
MAX_ROWS = 512
"""Rows that one statement inserts."""
VERIFY_SECONDS = 5.0
_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(list[tuple[Any, ...]]).decode
_STEPS_BETWEEN_CLOCK_LOOKS = 20_000
# OR FAIL: a statement that fails takes its transaction or savepoint along, so SQLite need not keep a copy of every page
# that it changes.
_INSERT_OR_FAIL = "INSERT OR FAIL INTO"
_INSERT_ROW = re.compile(r"(INSERT .*?)\bVALUES (\(\?(?:,\s*\?)*\))(.*)", re.DOTALL)


class SqliteConnection:
    """`Connection` over the standard library's driver, in autocommit mode: transactions are ours."""

    kind: Kind = "sqlite"

    def __init__(
        self, raw: sqlite3.Connection, *, turn: int | None = None, time_limit: float | None = None
    ) -> None:
        """`turn` is the open file that writers lock in turn; a connection without one only reads."""
        self._raw = raw
        self._turn = turn
        self._begin = "BEGIN" if turn is None else "BEGIN IMMEDIATE"
        self._time_limit = time_limit
        self._deadline = float("inf")
        if time_limit is not None:
            raw.set_progress_handler(self._late, _STEPS_BETWEEN_CLOCK_LOOKS)

    def _late(self) -> int:
        return 1 if time.monotonic() > self._deadline else 0

    def all(self, sql: str, *values: Bound) -> list[Row]:
        statement, bound = _prepared(sql, values)
        return self._raw.execute(statement, bound).fetchall()

    def ask(self, sql: str, *values: Bound) -> Callable[[], list[Row]]:
        rows = self.all(sql, *values)
        return lambda: rows

    def ask_texts(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        # As one row: for every row the driver gives up the interpreter's lock and waits for it again.
        ((packed,),) = self.all(f"SELECT json_group_array(json_array({columns})) {source}", *values)
        return lambda: _DECODE(packed)

    def look_up(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        return self.ask(f"SELECT {columns} {source}", *values)

    def pipelined(self) -> AbstractContextManager[object]:
        return nullcontext()

    def one(self, sql: str, *values: Bound) -> Row | None:
        statement, bound = _prepared(sql, values)
        cursor = self._raw.execute(statement, bound)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    def run(self, sql: str, *values: Bound) -> int:
        statement, bound = _prepared(sql, values)
        return self._raw.execute(statement, bound).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        found = _INSERT_ROW.fullmatch(sql) if len(rows) > 1 else None
        if found is None:
            for row in rows:
                self._raw.execute(sql, row)
            return
        head, row, tail = found.groups()
        head = head.replace("INSERT INTO", _INSERT_OR_FAIL, 1)
        values = list(chain.from_iterable(rows))
        for statement, bound in _inserts(head, (), row.count("?"), values, tail):
            self._raw.execute(statement, bound)

    def insert_many(
        self, table: str, always: Mapping[str, Value], columns: Sequence[str], values: Sequence[Value]
    ) -> None:
        head = f"{_INSERT_OR_FAIL} {table} ({', '.join((*always, *columns))})"
        for statement, bound in _inserts(head, tuple(always.values()), len(columns), values, ""):
            self._raw.execute(statement, bound)

    def script(self, sql: str) -> None:
        # `executescript` would commit first; a migration must stay in its transaction.
        for statement in statements(sql.replace("/* clustered */", "WITHOUT ROWID")):
            self._raw.execute(statement)

    def begin(self) -> None:
        if self._time_limit is not None:
            self._deadline = time.monotonic() + self._time_limit
        if self._turn is not None:
            _take_turn(self._turn)
        self._raw.execute(self._begin)

    def commit(self) -> None:
        self._raw.execute("COMMIT")
        if self._turn is not None:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def rollback(self) -> None:
        self._deadline = float("inf")
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")
        if self._turn is not None:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        self._raw.close()
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def backup(self, target: Path) -> None:
        """A consistent copy in a new file, while others go on reading and writing."""
        copy = sqlite3.connect(target)
        try:
            self._raw.backup(copy, pages=1000)
        finally:
            copy.close()


def _inserts(
    head: str, shared: Sequence[Value], width: int, values: Sequence[Value], tail: str
) -> Iterator[tuple[str, list[Value]]]:
    """Statements that insert `values`, `width` of them to a row after the `shared` ones, and what to bind.

    Not `executemany`: it gives up the interpreter's lock and waits for it again for every row. A statement takes a
    power of two of rows, filled up with nulls and cut by a `LIMIT`: few statements to run, and few to prepare.
    """
    for start in range(0, len(values), MAX_ROWS * width):
        block = values[start : start + MAX_ROWS * width]
        count = len(block) // width
        rows = 1 << (count - 1).bit_length()
        nothing = [None] * ((rows - count) * width)
        yield _insert(head, len(shared), width, rows, tail), [*shared, *block, *nothing, count]


@lru_cache(maxsize=1024)
def _insert(head: str, shared: int, width: int, rows: int, tail: str) -> str:
    row = f"({', '.join('?' * width)})"
    # WHERE true: without it SQLite takes the ON of `ON CONFLICT` for that of a join.
    source = f"(VALUES {', '.join([row] * rows)}) WHERE true LIMIT ?"
    return f"{head} SELECT {'?, ' * shared}* FROM {source} {tail}"  # noqa: S608  constants of this package


def _take_turn(turn: int) -> None:
    """Wait until no other process writes. SQLite has locks of its own, but releases before 3.51.3 can damage a
    write-ahead log when one connection writes at the very moment in which another one empties it."""
    limit = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() > limit:
                raise StoreUnavailable(
                    "another process has been writing to the database for too long"
                ) from None
        time.sleep(0.001)


def _prepared(sql: str, values: tuple[Bound, ...]) -> tuple[str, Sequence[Value]]:
    if LIST not in sql:
        return sql, values  # type: ignore[return-value]  # lists occur only with the marker
    bound = [_ENCODE(v).decode() if isinstance(v, list | tuple) else v for v in values]
    return sql.replace(LIST, "IN (SELECT value FROM json_each(?))"), bound  # type: ignore[return-value]  # as above


def statements(sql: str) -> list[str]:
    """The statements of a migration file: comments go, semicolons at line ends separate."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


def _verify(raw: sqlite3.Connection) -> None:
    """`StoreUnavailable` unless the whole log reaches the database file, and the file looks sound."""
    busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreUnavailable("the database cannot be verified while it is being read")
    finding = _quick_check(raw)
    if finding != "ok":
        raise StoreUnavailable(f"the database is damaged: {finding}")


def _quick_check(raw: sqlite3.Connection) -> str:
    """`ok`, or the first fault that is found within a few seconds."""
    limit = time.monotonic() + VERIFY_SECONDS
    raw.set_progress_handler(lambda: int(time.monotonic() > limit), _STEPS_BETWEEN_CLOCK_LOOKS)
    try:
        return str(raw.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return "ok"
    finally:
        raw.set_progress_handler(None, 0)


class SqliteDialect:
    """Opens one database file; holds its lock file so that a second server cannot write to it."""

    kind: Kind = "sqlite"

    def __init__(self, path: Path, *, time_limit: float = 5.0) -> None:
        if sqlite3.sqlite_version_info < MINIMUM:
            needed = ".".join(map(str, MINIMUM))
            raise StoreError(f"SQLite {needed} or newer is needed; this Python has {sqlite3.sqlite_version}")
        self.path = path
        self.place = str(path)
        self._time_limit = time_limit
        self._lock: int | None = None

    def open_writer(self) -> Connection:
        self._take_lock()
        connection = self._writer()
        try:
            # A server that stopped after a failed fsync may have left a log that is only in memory, as below. A
            # backup that reads just now may keep this from being done; then the log stays as it is.
            connection.one("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            connection.close()
            raise self._not_opened(error) from error
        return connection

    def open_guest(self) -> Connection | None:
        """A connection for one short change beside the server that has the file open; None when there is none."""
        try:
            self._take_lock()
        except StoreUnavailable:
            if not self.path.exists():
                raise
        else:
            return None
        return self._writer()

    def reopen_writer(self) -> Connection:
        """What the failed connection had in the write-ahead log is not trusted: it may be in memory only. All of it is
        written to the database file itself and synchronised there, and the log starts again from nothing."""
        return self._writer(verified=True)

    def _writer(self, *, verified: bool = False) -> SqliteConnection:
        with ExitStack() as opened:
            try:
                turn = os.open(f"{self.path}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                opened.callback(os.close, turn)
                self._make_file()
                raw = self._connect(f"file:{quote(str(self.path))}?mode=rw")
                opened.callback(raw.close)
                self._set_up_writer(raw)
                if verified:
                    _take_turn(turn)
                    _verify(raw)
                    fcntl.flock(turn, fcntl.LOCK_UN)
            except (OSError, sqlite3.Error) as error:
                raise self._not_opened(error) from error
            opened.pop_all()
        return SqliteConnection(raw, turn=turn)

    def _make_file(self) -> None:
        """What people and models said is for the owner's eyes only; the log takes over the mode of the file."""
        # Only a new one is opened: closing a file gives up the locks that SQLite has on it.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def _set_up_writer(self, raw: sqlite3.Connection) -> None:
        raw.execute(f"PRAGMA page_size={PAGE_SIZE}")
        for pragma, wanted in (("journal_mode=WAL", "wal"), ("synchronous=FULL", None)):
            answer = raw.execute(f"PRAGMA {pragma}").fetchone()
            if wanted and answer[0] != wanted:
                raise StoreError(f"{self.place}: PRAGMA {pragma} was refused ({answer[0]})")
        if raw.execute("PRAGMA synchronous").fetchone()[0] != 2:
            raise StoreError(f"{self.place}: SQLite refuses to wait for the disk")
        raw.execute("PRAGMA cache_size=-65536")
        # Ids of spans are random: every batch changes pages all over their index. What many commits change in turn goes
        # from the log into the file once, the more so the longer the log may grow.
        raw.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // PAGE_SIZE}")
        raw.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")

    def open_reader(self) -> Connection:
        try:
            raw = self._connect(f"file:{quote(str(self.path))}?mode=ro")
            raw.execute("PRAGMA query_only=ON")
            raw.execute("PRAGMA cache_size=-16384")
            raw.execute("PRAGMA mmap_size=268435456")
        except sqlite3.Error as error:
            raise self._not_opened(error) from error
        return SqliteConnection(raw, time_limit=self._time_limit)

    def _not_opened(self, error: Exception) -> StoreUnavailable:
        other = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB
        return (NotADatabase if other else StoreUnavailable)(f"{self.place} cannot be opened: {error}")

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _take_lock(self) -> None:
        if self._lock is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{self.place} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StoreUnavailable(
                f"{self.place} is in use by another server; stop it first, or use PostgreSQL to run several"
            ) from None
        self._lock = lock

    def translate_error(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if primary == sqlite3.SQLITE_FULL:
            return StoreFull("no space is left on the device")
        if primary == sqlite3.SQLITE_INTERRUPT:
            return StoreTimeout("the query took too long and was stopped")
        if primary in _UNAVAILABLE:
            return StoreUnavailable(f"the database cannot be used just now: {error}")
        return error

    def lasting_failure(self, error: Exception) -> bool:
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        return isinstance(error, sqlite3.Error) and primary in _LASTING

    def worth_retrying(self, error: Exception) -> bool:
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        return isinstance(error, sqlite3.Error) and primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def close(self) -> None:
        if self._lock is not None:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = None


# After a failed fsync the pages in memory are not to be trusted: the connection is dropped, never asked again.
_LASTING = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL}
_UNAVAILABLE = _LASTING | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
}
