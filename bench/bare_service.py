"""The yardstick: the same stack with nothing switched on. It validates scores or spans, inserts rows, and commits for
many requests at once; no tokens, no targets, no aggregates, no traces, no checks of parents, no idempotency, no limits.

`python -m bench.bare_service DATABASE` prints its port.
"""

import asyncio
import socket
import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import datetime
from typing import Any, Literal

import msgspec
import uvicorn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

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


class BareSpan(msgspec.Struct):
    id: str
    trace_id: str
    name: str
    start_time: datetime
    end_time: datetime | None = None
    parent_span_id: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    output: msgspec.Raw = msgspec.Raw(b"null")
    tokens_input: int | None = None
    tokens_output: int | None = None
    model: str | None = None
    metadata: dict[str, str | float | bool | None] = {}


class BareSpans(msgspec.Struct):
    spans: list[BareSpan]


SPAN_SCHEMA = """CREATE TABLE IF NOT EXISTS spans (trace_id TEXT, id TEXT, parent_span_id TEXT, name TEXT,
    start_time TEXT, end_time TEXT, input TEXT, output TEXT, tokens_input INTEGER, tokens_output INTEGER, model TEXT,
    metadata TEXT, PRIMARY KEY (trace_id, id))"""
INSERT_SPAN = "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
Row = tuple[Any, ...]


def span_rows(body: bytes) -> list[Row]:
    """The rows of a native batch."""
    return [
        (span.trace_id, span.id, span.parent_span_id, span.name, span.start_time.isoformat(),
         span.end_time and span.end_time.isoformat(), bytes(span.input).decode(), bytes(span.output).decode(),
         span.tokens_input, span.tokens_output, span.model, msgspec.json.encode(span.metadata).decode())
        for span in SPANS.decode(body).spans
    ]  # fmt: skip


def otlp_rows(body: bytes) -> list[Row]:
    """The rows of an OTLP batch, decoded by the official protobuf classes."""
    request = ExportTraceServiceRequest.FromString(body)
    rows: list[Row] = []
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                known = {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
                rows.append(
                    (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex() or None, span.name,
                     str(span.start_time_unix_nano), str(span.end_time_unix_nano), known.pop("input.value", None),
                     known.pop("output.value", None), known.pop("gen_ai.usage.input_tokens", None),
                     known.pop("gen_ai.usage.output_tokens", None), known.pop("gen_ai.request.model", None),
                     msgspec.json.encode(known).decode())
                )  # fmt: skip
    return rows


SPANS = msgspec.json.Decoder(BareSpans)


def by_table(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """A score has seven columns, a span twelve."""
    split = [(INSERT, [r for r in rows if len(r) == 7]), (INSERT_SPAN, [r for r in rows if len(r) == 12])]
    return [(insert, some) for insert, some in split if some]


class SqliteSink:
    """The embedded database: WAL, synchronous=FULL."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute(SCHEMA)
        self.connection.execute(SPAN_SCHEMA)
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_target ON scores (target_id, id)")

    def store(self, rows: list[Row]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        for insert, some in by_table(rows):
            self.connection.executemany(insert, some)
        self.connection.execute("COMMIT")


class PostgresSink:
    """PostgreSQL through psycopg."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(SCHEMA.replace("REAL", "DOUBLE PRECISION"))
        self.connection.execute(SPAN_SCHEMA)
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_target ON scores (target_id, id)")

    def store(self, rows: list[Row]) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            for insert, some in by_table(rows):
                cursor.executemany(insert.replace("?", "%s"), some)


class BareService:
    """One writer thread, one shared commit."""

    def __init__(self, database: str) -> None:
        self.sink = PostgresSink(database) if database.startswith("postgresql") else SqliteSink(database)
        self.waiting: deque[tuple[list[Row], asyncio.Future[None]]] = deque()
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
            self.sink.store([row for rows, _ in group for row in rows])
            futures = [future for _, future in group]
            futures[0].get_loop().call_soon_threadsafe(lambda f=futures: [x.set_result(None) for x in f])  # type: ignore[misc]

    @staticmethod
    def made(score: BareScore) -> BareAnswer:
        return BareAnswer(
            new_id(),
            score.target_id,
            score.target_type,
            score.scorer_name,
            score.value,
            score.rationale,
            format_instant(now()),
        )

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
        if scope["path"] == "/v1/scores":
            made = self.made(self.decoder.decode(body))
            rows, answer = [msgspec.structs.astuple(made)], self.encoder.encode(made)
        else:
            rows = otlp_rows(body) if scope["path"] == "/v1/traces" else span_rows(body)
            answer = b"{}"
        future = asyncio.get_running_loop().create_future()
        with self.wake:
            self.waiting.append((rows, future))
            self.wake.notify()
        await future
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
        proxy_headers=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
