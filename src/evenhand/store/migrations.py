"""Numbered, forward-only changes of the schema, each in its own transaction and checked by its text's hash."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from msgspec import Struct

from evenhand.core.errors import SchemaMismatch
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection

_LEDGER = """CREATE TABLE IF NOT EXISTS schema_migrations (
    number INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)"""


class Migration(Struct, frozen=True, kw_only=True):
    """One file of `sql/migrations`."""

    number: int
    """The first four digits of the file's name."""
    name: str
    """The file's name."""
    sql: str
    """Its statements, for both dialects."""

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Every migration that this program ships, in order."""
    folder = files("evenhand.store") / "sql" / "migrations"
    found = [
        Migration(number=int(entry.name[:4]), name=entry.name, sql=entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def applied_numbers(connection: Connection, known: Sequence[Migration] | None = None) -> set[int]:
    """What was applied already; `SchemaMismatch` when a newer or another program did it."""
    by_number = {m.number: m for m in (known_migrations() if known is None else known)}
    applied = connection.all("SELECT number, name, checksum FROM schema_migrations ORDER BY number")
    for number, name, checksum in applied:
        ours = by_number.get(number)
        if ours is None:
            raise SchemaMismatch(
                f"the database has the migration {name}, which this version of Evenhand does not know; "
                "use the version that made it, or a newer one"
            )
        if ours.checksum != checksum:
            raise SchemaMismatch(f"the migration {name} was applied with another text than this version's")
    return {row[0] for row in applied}


def check_up_to_date(connection: Connection) -> None:
    """`SchemaMismatch` unless the schema is exactly this program's: a server of another version has the database."""
    missing = [m.name for m in known_migrations() if m.number not in applied_numbers(connection)]
    if missing:
        raise SchemaMismatch(
            f"the database lacks the migration {missing[0]}; stop its server and start a newer one"
        )


def migrate(connection: Connection, known: Sequence[Migration] | None = None) -> list[str]:
    """Apply what is missing; the names of what was applied. Safe when several servers start together."""
    migrations = known_migrations() if known is None else known
    _in_transaction(connection, None)
    return [m.name for m in migrations if _in_transaction(connection, m, migrations)]


def _in_transaction(
    connection: Connection, migration: Migration | None, known: Sequence[Migration] = ()
) -> bool:
    connection.begin()
    try:
        applied = _apply(connection, migration, known)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return applied


def _apply(connection: Connection, migration: Migration | None, known: Sequence[Migration]) -> bool:
    if migration is None:
        connection.script(_LEDGER)
        return False
    if migration.number in applied_numbers(connection, known):
        return False
    connection.script(migration.sql)
    connection.run(
        "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
        migration.number,
        migration.name,
        migration.checksum,
        format_instant(now()),
    )
    return True
