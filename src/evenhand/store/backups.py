"""Copies of a database that is in use."""

import os
import shutil
import subprocess
from pathlib import Path

from evenhand.core.errors import MissingFile, OptionError, StoreError, Unavailable
from evenhand.store.database import pick_dialect
from evenhand.store.sqlite import SqliteConnection, SqliteDialect


def back_up(url: str, target: Path) -> None:
    """Write a consistent copy to `target`: a SQLite file, or PostgreSQL's own archive (for `pg_restore`)."""
    if target.exists():
        raise OptionError(f"{target} exists already")
    dialect = pick_dialect(url)
    if isinstance(dialect, SqliteDialect) and not dialect.path.exists():
        raise MissingFile("no such database", path=dialect.path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        partial.touch(mode=0o600)
        if isinstance(dialect, SqliteDialect):
            connection = dialect.open_reader()
            assert isinstance(connection, SqliteConnection)
            try:
                connection.backup(partial)
            finally:
                connection.close()
        else:
            _dump(url, partial)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(target)
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def _dump(url: str, target: Path) -> None:
    from psycopg.conninfo import conninfo_to_dict  # psycopg is an extra

    program = shutil.which("pg_dump")
    if program is None:
        raise Unavailable("pg_dump is missing; install it with: apt-get install postgresql-client")
    parts = conninfo_to_dict(url)
    # Through the environment, where other users of the machine cannot read the password.
    names = {
        "host": "PGHOST",
        "port": "PGPORT",
        "user": "PGUSER",
        "password": "PGPASSWORD",
        "dbname": "PGDATABASE",
    }
    secrets = {names[key]: str(value) for key, value in parts.items() if key in names and value is not None}
    done = subprocess.run(  # noqa: S603  our own program and arguments
        [program, "--format=custom", f"--file={target}"],
        env={"PATH": os.defpath, **secrets},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StoreError(f"pg_dump failed: {done.stderr.strip().splitlines()[-1:]}")
