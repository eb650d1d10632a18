"""PostgreSQL through psycopg 3, in the same synchronous style as the embedded database.

A writing transaction first takes one advisory lock: over all server processes there is one writer at a time, as
with the embedded database. That leaves no races and no deadlocks to reason about, and a shared commit carries the
load of many requests, so little is lost by it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, LiteralString

import msgspec

from evenhand.core.errors import MissingExtra, StoreFull, StoreTimeout, StoreUnavailable
from evenhand.store.connection import LIST, Bound, Connection, Kind, Row, Value

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as missing:
    raise MissingExtra("psycopg", "postgres", "a PostgreSQL database") from missing

WRITER_LOCK = 0x4576_656E
"""The key of the advisory lock that makes writers take turns."""
# Not whatever the database's default is: what is read after the wait for the lock must be what the last holder left.
_BEGIN_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({WRITER_LOCK})"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
CONNECT_SECONDS = 5
FEW_ROWS = 2
"""Up to so many rows are inserted by a statement each."""
MANY_ROWS = 1_000
"""Up to so many by one statement."""
_ENCODE = msgspec.json.Encoder().encode
_INSERT_ROW = re.compile(r"INSERT INTO (\w+) \(([\w,\s]+)\)\s+VALUES \([?,\s]+\)(.*)", re.DOTALL)
_COLUMN_IN_LIST = re.compile(r"([\w.]+) IN \[\?\]")


@lru_cache(maxsize=1024)
def translated(sql: str) -> LiteralString:
    """The statement with the driver's placeholders. Statements are constants of this package, never built of input."""
    return sql.replace("%", "%%").replace(LIST, "= ANY(%s)").replace("?", "%s")


@lru_cache(maxsize=1024)
def one_by_one(columns: str, source: str) -> tuple[str, int | None]:
    """The statement that looks the values of the list in `source` up one by one, and which value is the list.

    Without statistics (a new table) or with misleading ones (a new experiment) the planner takes `= ANY` for a
    filter and reads everything else that matches: work that grows with the data. This leaves it no choice.
    """
    found = _COLUMN_IN_LIST.search(source)
    if found is None:
        return f"SELECT {columns} {source}", None
    inner = (
        f"SELECT {columns} {source[: found.start()]}{found[1]} = wanted.value{source[found.end() :]} OFFSET 0"
    )
    outer = f"SELECT found.* FROM unnest(?::text[]) AS wanted(value) CROSS JOIN LATERAL ({inner}) AS found"  # noqa: S608  constants of this package
    return outer, source[: found.start()].count("?")


@lru_cache(maxsize=1024)
def as_recordset(sql: str) -> tuple[LiteralString | None, tuple[str, ...]]:
    """An `INSERT … VALUES (?, …)` that takes all its rows as one JSON text, and the names of their columns.

    One statement for many rows costs both sides far less than a statement for each.
    """
    found = _INSERT_ROW.fullmatch(sql)
    if found is None:
        return None, ()
    table, columns, rest = found.groups()
    statement: LiteralString = (
        f"INSERT INTO {table} ({columns}) SELECT {columns}"  # noqa: S608  constants of this package
        f" FROM json_populate_recordset(NULL::{table}, %s::json) {rest}"
    )
    return statement, tuple(name.strip() for name in columns.split(","))


class PostgresConnection:
    """`Connection` over psycopg, in autocommit mode: transactions are ours."""

    kind: Kind = "postgresql"

    def __init__(self, raw: "psycopg.Connection[Any]", *, writes: bool) -> None:
        self._raw = raw
        self._pipelined = False
        self._begin: LiteralString = _BEGIN_WRITE if writes else _BEGIN_READ

    def all(self, sql: str, *values: Bound) -> list[Row]:
        return self._raw.execute(translated(sql), _bound(values)).fetchall()

    def ask(self, sql: str, *values: Bound) -> Callable[[], list[Row]]:
        return self._raw.execute(translated(sql), _bound(values)).fetchall

    def ask_texts(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        sql, place = one_by_one(columns, source)
        if place is not None:
            values = (values[place], *values[:place], *values[place + 1 :])
        return self.ask(sql, *values)

    def look_up(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        return self.ask_texts(columns, source, *values)

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        if self._pipelined:
            yield
            return
        self._pipelined = True
        try:
            with self._raw.pipeline():
                yield
        finally:
            self._pipelined = False

    def one(self, sql: str, *values: Bound) -> Row | None:
        row: Row | None = self._raw.execute(translated(sql), _bound(values)).fetchone()
        return row

    def run(self, sql: str, *values: Bound) -> int:
        return self._raw.execute(translated(sql), _bound(values)).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        statement, columns = as_recordset(sql) if len(rows) > FEW_ROWS else (None, ())
        if statement is not None:
            for start in range(0, len(rows), MANY_ROWS):
                block = [dict(zip(columns, row, strict=True)) for row in rows[start : start + MANY_ROWS]]
                self._raw.execute(statement, (_ENCODE(block).decode(),))
            return
        with self.pipelined(), self._raw.cursor() as cursor:
            cursor.executemany(translated(sql), rows)

    def insert_many(
        self, table: str, always: Mapping[str, Value], columns: Sequence[str], values: Sequence[Value]
    ) -> None:
        names = ", ".join((*always, *columns))
        statement: LiteralString = f"COPY {table} ({names}) FROM STDIN"
        shared, width = tuple(always.values()), len(columns)
        with self._raw.cursor() as cursor, cursor.copy(statement) as copy:
            for start in range(0, len(values), width):
                copy.write_row((*shared, *values[start : start + width]))

    def script(self, sql: str) -> None:
        # Byte order everywhere, so that both databases sort and page alike.
        text = sql.replace(" TEXT", ' TEXT COLLATE "C"').replace(" REAL", " DOUBLE PRECISION")
        # An index over many rows takes longer than any statement of a request may.
        self._raw.execute("SET LOCAL statement_timeout = 0")
        self._raw.execute(text)

    def begin(self) -> None:
        self._raw.execute(self._begin)

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()


def _bound(values: tuple[Bound, ...]) -> list[Any]:
    return [list(v) if isinstance(v, tuple) else v for v in values]


class PostgresDialect:
    """Opens connections to one PostgreSQL database."""

    kind: Kind = "postgresql"

    def __init__(self, url: str, *, time_limit: float = 5.0) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise StoreUnavailable(f"the database address cannot be read: {str(error).strip()}") from None
        host, port = parts.get("host", "localhost"), parts.get("port", 5432)
        self.place = f"postgresql://{host}:{port}/{parts.get('dbname', '')}"
        self._url = url
        self._time_limit = time_limit

    def open_writer(self) -> Connection:
        settings = {
            "synchronous_commit": "on",
            # A stopped process must not hold the writers' lock for ever.
            "idle_in_transaction_session_timeout": "30s",
            "statement_timeout": "60s",
        }
        return PostgresConnection(self._connect(settings), writes=True)

    def reopen_writer(self) -> Connection:
        # PostgreSQL itself stops and recovers when its disk fails.
        return self.open_writer()

    def open_reader(self) -> Connection:
        milliseconds = str(max(1, int(self._time_limit * 1000)))
        settings = {
            "default_transaction_read_only": "on",
            "statement_timeout": milliseconds,
            "idle_in_transaction_session_timeout": "30s",
            # Every question of ours has its index. With statistics that are old, or for a statement that is planned
            # once for all values, the planner would sometimes rather read a whole table.
            "enable_seqscan": "off",
            "jit": "off",  # compiling takes longer than any question of ours
        }
        return PostgresConnection(self._connect(settings), writes=False)

    def _connect(self, settings: dict[str, str]) -> "psycopg.Connection[Any]":
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        try:
            given = conninfo_to_dict(self._url)
            return psycopg.connect(
                make_conninfo(
                    self._url,
                    options=f"{given.get('options') or ''} {options}".strip(),
                    connect_timeout=CONNECT_SECONDS,
                    application_name="evenhand",
                    client_encoding="utf8",
                ),
                autocommit=True,
                prepare_threshold=2,
            )
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()
            raise StoreUnavailable(
                f"{self.place} cannot be reached: {reason[0] if reason else error}"
            ) from error

    def translate_error(self, error: Exception) -> Exception:
        if not isinstance(error, psycopg.Error):
            return error
        state = error.sqlstate or ""
        if state in ("53100", "58030") or "No space left" in str(error):
            return StoreFull("no space is left on the database's device")
        if state in ("57014", "55P03"):
            return StoreTimeout("the query took too long and was stopped")
        if self.lasting_failure(error) or self.worth_retrying(error) or state.startswith("53"):
            return StoreUnavailable("the database cannot be used just now")
        return error

    def lasting_failure(self, error: Exception) -> bool:
        if not isinstance(error, psycopg.Error):
            return False
        state = error.sqlstate or ""
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state:
            return True
        return state.startswith(("08", "57P")) or state in ("25P03", "25P04")

    def worth_retrying(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) and error.sqlstate in ("40001", "40P01")

    def close(self) -> None:
        """Nothing is held between connections."""
