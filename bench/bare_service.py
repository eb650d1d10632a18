"""The yardstick: the same stack with nothing switched on. It validates a score, inserts a row, and commits for many
requests at once; no tokens, no targets, no aggregates, no idempotency, no limits.

`python -m bench.bare_service DATABASE` prints its port.
"""

import asyncio
import socket
import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

import msgspec
import uvicorn

from evenhand.core.ids import new_id
from evenhand.core.timestamps import format_instant, now


class BareScore(msgspec.Struct):
    target_id: str
    target_type: Literal["run", "span"]
    scorer_name: str
    value: float | str
    rationale: str | None = None


class BareAnswer(msgspec.Struct):
    id: str
    target_id: str
    target_type: str
    scorer_name: str
    value: float | str
    rationale: str | None
    created_at: str


SCHEMA = """CREATE TABLE IF NOT EXISTS scores (id TEXT PRIMARY KEY, target_id TEXT, target_type TEXT,
    scorer_name TEXT, value REAL, rationale TEXT, created_at TEXT)"""
INSERT = "INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteSink:
    """The embedded database: WAL, synchronous=FULL."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute(SCHEMA)
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_target ON scores (target_id, id)")

    def store(self, rows: list[tuple[Any, ...]]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(INSERT, rows)
        self.connection.execute("COMMIT")


class PostgresSink:
    """PostgreSQL through psycopg."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(SCHEMA.replace("REAL", "DOUBLE PRECISION"))
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_target ON scores (target_id, id)")

    def store(self, rows: list[tuple[Any, ...]]) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(INSERT.replace("?", "%s"), rows)


class BareService:
    """One writer thread, one shared commit."""

    def __init__(self, database: str) -> None:
        self.sink = PostgresSink(database) if database.startswith("postgresql") else SqliteSink(database)
        self.waiting: deque[tuple[tuple[Any, ...], asyncio.Future[None]]] = deque()
        self.wake = threading.Condition()
        self.decoder = msgspec.json.Decoder(BareScore)
        self.encoder = msgspec.json.Encoder()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        while True:
            with self.wake:
                while not self.waiting:
                    self.wake.wait()
                group = [self.waiting.popleft() for _ in range(len(self.waiting))]
            self.sink.store([row for row, _ in group])
            futures = [future for _, future in group]
            futures[0].get_loop().call_soon_threadsafe(lambda f=futures: [x.set_result(None) for x in f])  # type: ignore[misc]

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        message = await receive()
        body: bytes = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        score = self.decoder.decode(body)
        made = BareAnswer(
            new_id(),
            score.target_id,
            score.target_type,
            score.scorer_name,
            score.value,
            score.rationale,
            format_instant(now()),
        )
        future = asyncio.get_running_loop().create_future()
        row = (
            made.id,
            made.target_id,
            made.target_type,
            made.scorer_name,
            made.value,
            made.rationale,
            made.created_at,
        )
        with self.wake:
            self.waiting.append((row, future))
            self.wake.notify()
        await future
        answer = self.encoder.encode(made)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        BareService(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
