"""The schema as it is, compared with what all migrations make of an empty database.

The reference is made in memory, so that a database can be checked without a second one beside it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import NamedTuple

from evenhand.store.connection import Connection
from evenhand.store.migrations import migrate
from evenhand.store.sqlite import SqliteConnection

_POSTGRES_TYPES = {"text": "TEXT", "integer": "INTEGER", "bigint": "BIGINT", "double precision": "REAL"}


class Column(NamedTuple):
    """One column, in the words of the migrations."""

    type: str
    required: bool
    key: int
    """Its place in the primary key; 0 outside."""


class Index(NamedTuple):
    """One index that is not the primary key's."""

    table: str
    columns: tuple[str, ...]
    unique: bool
    condition: str
    """Of a partial index; otherwise empty."""


class Schema(NamedTuple):
    """Tables with their columns, and indexes, by name."""

    tables: dict[str, dict[str, Column]]
    indexes: dict[str, Index]


def read_schema(connection: Connection) -> Schema:
    """What is there."""
    return _read_sqlite(connection) if connection.kind == "sqlite" else _read_postgres(connection)


@cache
def expected_schema() -> Schema:
    """What all migrations of this program make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        connection = SqliteConnection(raw)
        migrate(connection)
        return read_schema(connection)


def differences(found: Schema, expected: Schema) -> Iterator[str]:
    """One sentence for each difference."""
    for table in sorted({*expected.tables, *found.tables}):
        if table not in found.tables:
            yield f"the table {table} is missing"
        elif table not in expected.tables:
            yield f"the table {table} is none of ours"
        else:
            yield from _column_differences(table, found.tables[table], expected.tables[table])
    for name in sorted({*expected.indexes, *found.indexes}):
        if name not in found.indexes:
            yield f"the index {name} is missing"
        elif name not in expected.indexes:
            yield f"the index {name} is none of ours"
        elif found.indexes[name] != expected.indexes[name]:
            yield f"the index {name} is {found.indexes[name]}, not {expected.indexes[name]}"


def _column_differences(table: str, found: dict[str, Column], expected: dict[str, Column]) -> Iterator[str]:
    for name in sorted({*expected, *found}):
        if name not in found:
            yield f"the column {table}.{name} is missing"
        elif name not in expected:
            yield f"the column {table}.{name} is none of ours"
        elif found[name] != expected[name]:
            yield f"the column {table}.{name} is {found[name]}, not {expected[name]}"


def _read_sqlite(connection: Connection) -> Schema:
    tables: dict[str, dict[str, Column]] = {}
    indexes: dict[str, Index] = {}
    names = connection.all(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    for (table,) in names:
        rows = connection.all('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', table)
        tables[table] = {name: Column(kind, bool(required), key) for name, kind, required, key in rows}
        unique: dict[str, int] = dict(
            connection.all('SELECT name, "unique" FROM pragma_index_list(?)', table)
        )
        made = connection.all(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
            table,
        )
        for name, sql in made:
            rows = connection.all("SELECT name FROM pragma_index_info(?) ORDER BY seqno", name)
            condition = sql.partition(" WHERE ")[2]
            indexes[name] = Index(table, tuple(row[0] for row in rows), bool(unique[name]), _plain(condition))
    return Schema(tables, indexes)


def _read_postgres(connection: Connection) -> Schema:
    tables: dict[str, dict[str, Column]] = {}
    indexes: dict[str, Index] = {}
    keys: dict[tuple[str, str], int] = {}
    for name, table, unique, primary, condition, columns in connection.all(
        "SELECT own.relname, of_table.relname, x.indisunique, x.indisprimary, pg_get_expr(x.indpred, x.indrelid),"
        " array(SELECT a.attname FROM unnest(x.indkey) WITH ORDINALITY AS k (number, place)"
        " JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number ORDER BY k.place)"
        " FROM pg_index x JOIN pg_class own ON own.oid = x.indexrelid JOIN pg_class of_table ON of_table.oid = x.indrelid"
        " WHERE of_table.relnamespace = current_schema()::regnamespace AND x.indisvalid"
    ):
        if primary:
            keys.update({(table, column): place for place, column in enumerate(columns, 1)})
        else:
            indexes[name] = Index(table, tuple(columns), unique, _plain(condition or ""))
    for table, name, kind, nullable, collation in connection.all(
        "SELECT c.table_name, c.column_name, c.data_type, c.is_nullable, c.collation_name FROM information_schema.columns c"
        " JOIN information_schema.tables t USING (table_schema, table_name)"
        " WHERE table_schema = current_schema() AND t.table_type = 'BASE TABLE'"
    ):
        known = str(_POSTGRES_TYPES.get(kind, kind))
        if known == "TEXT" and collation != "C":
            known = f"TEXT in the order of {collation or 'the database'}"
        tables.setdefault(table, {})[name] = Column(known, nullable == "NO", keys.get((table, name), 0))
    return Schema(tables, indexes)


def _plain(condition: str) -> str:
    return " ".join(condition.replace("(", " ").replace(")", " ").replace("::text", "").split())
