"""A real PostgreSQL for tests: one server per session, a fresh database per test.

`PostgresServer` starts Debian's PostgreSQL on a free loopback port in a folder of its own. As root the server runs
as user `postgres`, because PostgreSQL refuses root.
"""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql

from tests.real_parts import need


def binaries() -> Path | None:
    """The folder with `postgres`, the newest release first; None when PostgreSQL is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = [folder for folder in folders if (folder / "postgres").exists()]
    return found[-1] if found else None


def free_port() -> int:
    """A port for a server that binds it later, and again after a crash.

    Not one that the system hands out: in between it could go to a connection of any other process. The workers of
    one test session take from ranges of their own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    while True:
        port = 20_000 + 3_000 * worker + secrets.randbelow(3_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class PostgresServer:
    """One PostgreSQL server of our own; use it as a context manager."""

    def __init__(self, *, durable: bool = False) -> None:
        """`durable` keeps fsync on: for benches and crash tests."""
        found = binaries()
        need(found is not None, "PostgreSQL (Debian package postgresql)")
        assert found is not None
        self._bin = found
        self._durable = durable
        self._folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
        self._count = 0
        self.port = free_port()

    def __enter__(self) -> Self:
        self._folder.chmod(0o755)
        data = self._folder / "data"
        data.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
            shutil.chown(data, "postgres", "postgres")
        self._run(
            "initdb",
            "-D",
            str(data),
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        )
        self._control("start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def restart_immediately(self) -> None:
        """Kill every backend without a checkpoint, as a crash would, and start again (recovery included)."""
        self._control("restart", "-m", "immediate")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Inside the block nobody answers."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")
        try:
            yield
        finally:
            self._control("start")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: sql.Composed, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)

    def query(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def create_database(self, template: str = "template0") -> str:
        """The name of a fresh database, a copy of `template`."""
        self._count += 1
        name = f"evenhand_{self._count}"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'")
        self.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop_database(self, name: str) -> None:
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The address of a fresh database that is gone afterwards."""
        name = self.create_database(template)
        try:
            yield self.url(name)
        finally:
            self.drop_database(name)

    def _control(self, action: str, *more: str) -> None:
        options = [f"-p {self.port}", "-c listen_addresses=127.0.0.1", f"-k {self._folder}"]
        options += ["-c max_connections=200", "-c shared_buffers=64MB"]
        if not self._durable:
            options += ["-c fsync=off", "-c full_page_writes=off"]
        log = str(self._folder / "log")
        data = str(self._folder / "data")
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-t", "240", "-o", " ".join(options), *more, action)

    def _run(self, program: str, *arguments: str) -> None:
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a server started by pg_ctl would keep a pipe open
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            timeout=280,
            **user,  # type: ignore[call-overload]  # the keywords depend on who we are
        )
        assert done.returncode == 0, f"{program} {arguments} ended with {done.returncode}"
