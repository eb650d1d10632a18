"""What the databases do for the questions of the store, taken down as the store asks them."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from evenhand.store.connection import LIST, Bound, Row
from evenhand.store.postgresql import PostgresConnection, PostgresDialect
from evenhand.store.sqlite import SqliteConnection, SqliteDialect

Asked = tuple[str, tuple[Bound, ...]]
_NAMES = count()


class WatchedPostgres(PostgresConnection):
    """A reader that takes down what it is asked."""

    def __init__(self, reader: PostgresConnection) -> None:
        super().__init__(reader._raw, writes=False)
        self._raw.prepare_threshold = None  # only our own statements are prepared
        self.asked: list[Asked] = []

    def all(self, sql: str, *values: Bound) -> list[Row]:
        self.asked.append((sql, values))
        return super().all(sql, *values)

    def one(self, sql: str, *values: Bound) -> Row | None:
        self.asked.append((sql, values))
        return super().one(sql, *values)

    def ask(self, sql: str, *values: Bound) -> Any:
        self.asked.append((sql, values))
        return super().ask(sql, *values)

    def plan(self, asked: Asked, *, generic: bool) -> dict[str, Any]:
        """The plan for these values, or for any, with what it took to carry it out."""
        sql, values = asked
        name = f"page_{next(_NAMES)}"
        parts = sql.replace(LIST, "= ANY(?::text[])").split("?")
        numbered = parts[0] + "".join(f"${n}{part}" for n, part in enumerate(parts[1:], 1))
        self._raw.execute(f"SET plan_cache_mode = force_{'generic' if generic else 'custom'}_plan")
        self._raw.execute(f"PREPARE {name} AS {numbered}".encode())
        given = f"({', '.join(map(_literal, values))})" if values else ""
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}{given}"
        ((found,),) = self._raw.execute(explain.encode()).fetchall()
        plan: dict[str, Any] = found[0]["Plan"]
        return plan


class WatchedSqlite(SqliteConnection):
    """The same for the embedded database."""

    def __init__(self, reader: SqliteConnection) -> None:
        super().__init__(reader._raw)
        self.plans: list[tuple[str, list[str]]] = []

    def all(self, sql: str, *values: Bound) -> list[Row]:
        self._explain(sql, values)
        return super().all(sql, *values)

    def one(self, sql: str, *values: Bound) -> Row | None:
        self._explain(sql, values)
        return super().one(sql, *values)

    def _explain(self, sql: str, values: tuple[Bound, ...]) -> None:
        self.plans.append((sql, [row[3] for row in super().all(f"EXPLAIN QUERY PLAN {sql}", *values)]))


@contextmanager
def watched_postgres(url: str) -> Iterator[WatchedPostgres]:
    """A connection as the service reads with it."""
    reader = PostgresDialect(url, time_limit=120.0).open_reader()
    assert isinstance(reader, PostgresConnection)
    try:
        yield WatchedPostgres(reader)
    finally:
        reader.close()


@contextmanager
def watched_sqlite(path: Path) -> Iterator[WatchedSqlite]:
    """A connection as the service reads with it."""
    reader = SqliteDialect(path).open_reader()
    assert isinstance(reader, SqliteConnection)
    try:
        yield WatchedSqlite(reader)
    finally:
        reader.close()


def rows_read(plan: dict[str, Any]) -> int:
    """How many rows of tables and entries of indexes the plan went over, those that it then left out included."""
    own = 0
    if "Relation Name" in plan or "Index Name" in plan:
        kinds = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        own = sum(int(plan.get(kind, 0)) for kind in kinds) * int(plan["Actual Loops"])
    return own + sum(rows_read(part) for part in plan.get("Plans", ()))


def _literal(value: Bound) -> str:
    if isinstance(value, list | tuple):
        return f"ARRAY[{', '.join(map(_literal, value))}]::text[]"
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else repr(value)
