"""What is asked of a peer, and what the peers have in common."""

import json
import os
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

START_SECONDS = 120


class Peer(Protocol):
    """A running server over its SQLite store."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    otlp_headers: Mapping[str, str]

    def dataset(self, items: int) -> float:
        """Store a dataset; the seconds until it is there."""

    def score_requests(self, count: int) -> list[bytes]:
        """HTTP requests that store one score each."""

    def stored_spans(self) -> int:
        """How many spans are in the store."""

    def fill_scores(self, count: int) -> None:
        """Put scored runs into the store, past the API: the API takes them one by one."""

    def summary(self) -> float:
        """Ask for mean, least and greatest of these scores; their count, to see that it is right."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A server with its log in `folder`; counting its users over the network is off."""
    quiet = {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "PHOENIX_TELEMETRY_ENABLED": "false"}
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            list(command),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **quiet, **environment},
        )


def wait_for(process: subprocess.Popen[bytes], port: int, path: str) -> None:
    """Until the server answers."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"it did not answer within {START_SECONDS} s")


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    """One JSON call; what a refusal says is in the error."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {path}: {error.code} {error.read()[:300]!r}") from error


def copy_row(
    database: sqlite3.Connection, table: str, changed: Mapping[str, str], count: int, *, left_out: str = ""
) -> None:
    """`count` copies of the newest row; `changed` gives SQL for columns, with `n` for the number of the copy."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] != left_out]
    values = ", ".join(changed.get(name, f"t.{name}") for name in columns)
    database.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM numbers, "
        f"(SELECT * FROM {table} ORDER BY rowid DESC LIMIT 1) t",
        (count,),
    )
