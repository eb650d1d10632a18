"""Fills a database with very many spans and traces, through the store's own functions.

`python -m bench.large_store sqlite:///large.db --spans 5000000` makes the store that the figures for five million spans
rest on. Arrivals are spread over the last days: `--days` says how many.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from evenhand.core.spans import PICO, SpanRecord, microseconds
from evenhand.core.timestamps import as_of, now
from evenhand.store.arrivals import Batch, prepare
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.ingest import Sender, store_spans

PROJECT = "default"
BATCH = 1_000
"""Spans that are stored at once."""
PER_TRACE = 10
ROOTS = ("chat", "answer", "summarise", "classify", "plan", "translate", "review", "extract")
STEPS = ("retrieve", "rerank", "call-model", "call-tool", "parse", "check", "call-model", "format", "store")
MODELS = ("small-1", "small-2", "large-1", "large-2", "local")
SENTENCES = (
    "Which city is the capital of the country that was named in the question?",
    "The invoice of March was paid twice; please return one of the two amounts.",
    "退货政策是什么，多少天之内可以退货？",
    "ما هي سياسة الإرجاع في المتجر؟",
    "Summarise the meeting in three sentences and list who does what until when.",
    "The function returns None where the caller expects a list: add a test first.",
)


def batch(source: random.Random, moment: datetime, project_id: str = PROJECT) -> Batch:
    """Traces of ten spans each, all begun shortly before `moment`: model calls, steps between them, some failures."""
    return prepare(project_id, [span for _ in range(BATCH // PER_TRACE) for span in _trace(source, moment)])


def _trace(source: random.Random, moment: datetime) -> Iterator[SpanRecord]:
    trace_id, root_id = f"{source.getrandbits(128):032x}", f"{source.getrandbits(64):016x}"
    length = source.lognormvariate(7, 1)  # milliseconds; half of them take more than 1.1 s
    start = microseconds(moment) - int(length * 1000) - source.randrange(1_000_000)
    session = f"session-{source.randrange(20_000)}" if source.random() < 0.3 else None
    failed = source.random() < 0.03
    yield SpanRecord(
        trace_id=trace_id,
        id=root_id,
        name=source.choice(ROOTS),
        start_us=start,
        end_us=start + int(length * 1000),
        duration_ms=length,
        input=_text(source),
        output=None if failed else _text(source),
        metadata=json.dumps(
            {"user": source.randrange(500), "stage": "answer", "cached": source.random() < 0.1}
        ),
        error='{"message": "the model did not answer", "type": "Timeout"}' if failed else None,
        session_id=session,
        user_id=None if session is None else f"user-{source.randrange(2_000)}",
    )
    for n, name in enumerate(STEPS):
        begin, took = start + n * int(length * 90), length * 0.08
        is_call = name == "call-model"
        yield SpanRecord(
            trace_id=trace_id,
            id=f"{source.getrandbits(64):016x}",
            parent_span_id=root_id,
            name=name,
            start_us=begin,
            end_us=begin + int(took * 1000),
            duration_ms=took,
            input=_text(source),
            output=_text(source),
            tokens_input=source.randrange(50, 2_000) if is_call else None,
            tokens_output=source.randrange(10, 500) if is_call else None,
            model=source.choice(MODELS) if is_call else None,
            cost_pico=source.randrange(PICO // 100) if is_call and n < 5 else None,
            cost_source="reported" if is_call and n < 5 else None,
            metadata=json.dumps({"step": n}),
        )


def _text(source: random.Random) -> str:
    return json.dumps(f"{source.choice(SENTENCES)} ({source.randrange(10**9)}) " * 3, ensure_ascii=False)


def store(database: Database, prepared: Batch, moment: datetime) -> None:
    """Store a batch as if it had come at `moment`."""

    def work(connection: Connection) -> None:
        with as_of(moment):
            store_spans(connection, Sender(None, True), prepared, resend=False)

    database.write_now(work)


def fill(
    database: Database, source: random.Random, spans: int, first: datetime, last: datetime
) -> list[float]:
    """Store so many spans with arrivals from `first` to `last`; the processor time of each batch in seconds."""
    count = spans // BATCH
    spent = []
    for n in range(count):
        moment = first + (last - first) * (n / count)
        prepared = batch(source, moment)
        started = time.process_time()
        store(database, prepared, moment)
        spent.append(time.process_time() - started)
    return spent


def stored_spans(database: Database) -> int:
    """How many spans were put into a database so far."""
    rows = database.read_now(lambda c: c.all("SELECT COALESCE(SUM(span_count), 0) FROM span_blocks"))
    return int(rows[0][0])


def fill_up(url: str, spans: int, *, days: float = 30.0, seed: int = 0) -> None:
    """Bring a database to so many spans, a tenth after the other; what is there already stays."""
    source = random.Random(seed)
    database = open_database(url, time_limit=600)
    try:
        there = stored_spans(database)
        source.seed(seed + there)  # ids that were not given yet
        end = now()
        first = end - timedelta(days=days)
        tenth = spans // 10
        while there < spans:
            count = min(tenth, spans - there)
            moments = [first + (end - first) * min(1.0, n / spans) for n in (there, there + count)]
            began = time.perf_counter()
            spent = fill(database, source, count, *moments)
            seconds = time.perf_counter() - began
            there += max(count, BATCH)
            print(
                f"  {there:,} spans; the last {count:,} at {count / seconds:,.0f}/s, "
                f"{sum(spent) / count * 1e6:.1f} µs of processor time each to store",
                flush=True,
            )
    finally:
        database.close()


def chosen_size() -> int:
    """How many spans a bench stores first: `EVENHAND_BENCH_SPANS` thousand, 0 unless told."""
    return int(os.environ.get("EVENHAND_BENCH_SPANS", "0")) * 1_000


@contextmanager
def sqlite_store() -> Iterator[tuple[str, Path]]:
    """The address of the large SQLite store, and a folder for smaller ones. `EVENHAND_BENCH_STORE` names a file that
    is kept and used again."""
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as folder:
        kept = os.environ.get("EVENHAND_BENCH_STORE")
        yield f"sqlite:///{kept or Path(folder) / 'large.db'}", Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.large_store", description=__doc__)
    parser.add_argument("database", help="sqlite:///PATH or postgresql://…")
    parser.add_argument("--spans", type=int, default=5_000_000, help="spans to store, ten to a trace")
    parser.add_argument("--days", type=float, default=30.0, help="days over which they arrived, until now")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fill_up(options.database, options.spans, days=options.days, seed=options.seed)


if __name__ == "__main__":
    main()
