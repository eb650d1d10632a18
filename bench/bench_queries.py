"""Questions beside many stored spans: lists of traces by filters, single traces, and the project's summary.

`EVENHAND_BENCH_SPANS` says how many spans are stored in thousands (200 unless told; 5000 for the figures of old). Each
question is asked after a tenth of them and after all: a ratio near 1 says that it does not grow with the data.
"""

import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import Report, best_times
from bench.service_process import on_postgres
from evenhand.core.spans import SpanRecord
from evenhand.store.arrivals import prepare
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.ingest import Sender, store_spans
from evenhand.store.project_summary import summarise_project
from evenhand.store.traces import TraceFilter, get_trace, list_traces

BATCH, PER_TRACE = 1_000, 8
TEXT = json.dumps("Which city is the capital of the country that was named in the question? " * 4)
NOTHING: dict[str, dict[str, Any]] = {
    "no such name": {"name": "nobody"},
    "no such model": {"model": "nobody"},
    "no such metadata": {"metadata": (("user", "nobody"),)},
    "no such duration": {"min_duration_ms": 1e6},
    "a name and no such metadata": {"name": "chat", "metadata": (("user", "99"),)},
    "a common name": {"name": "chat"},
    "no filter": {},
}


def batch(source: random.Random) -> list[SpanRecord]:
    """Model calls in traces of eight."""
    spans: list[SpanRecord] = []
    for n in range(BATCH):
        if n % PER_TRACE == 0:
            trace, root = f"{source.getrandbits(128):032x}", f"{source.getrandbits(64):016x}"
        is_root = n % PER_TRACE == 0
        spans.append(
            SpanRecord(
                trace_id=trace,
                id=root if is_root else f"{source.getrandbits(64):016x}",
                parent_span_id=None if is_root else root,
                name="chat",
                start_us=n,
                end_us=n + 340_000,
                duration_ms=340.0,
                input=TEXT,
                output=TEXT,
                tokens_input=60,
                tokens_output=70,
                model="small-1",
                metadata=json.dumps({"user": n % 17, "stage": "answer", "cached": False}),
            )
        )
    return spans


def fill(database: Database, source: random.Random, batches: int) -> tuple[float, str]:
    """Store batches; the processor time of a span in microseconds, and the id of the last trace."""
    spent, last = 0.0, ""
    for _ in range(batches):
        prepared = prepare("default", batch(source))
        last = next(reversed(prepared.by_trace))
        started = time.process_time()
        database.write_now(
            lambda connection, ready=prepared: store_spans(
                connection, Sender(None, True), ready, resend=False
            )  # type: ignore[misc]
        )
        spent += time.process_time() - started
    return spent / (batches * BATCH) * 1e6, last


def asked(database: Database, trace_id: str) -> dict[str, float]:
    """The best time of each question in milliseconds."""

    def read(work: Callable[[Connection], object]) -> Callable[[], object]:
        return lambda: database.read_now(work)

    def listed(given: dict[str, Any]) -> Callable[[], object]:
        narrow = TraceFilter(**given)
        return read(
            lambda connection: list_traces(
                connection, project_id="default", narrow=narrow, before=None, limit=51
            )
        )

    questions = {what: listed(given) for what, given in NOTHING.items()}
    questions["one trace"] = read(lambda connection: get_trace(connection, trace_id, scope=None))
    questions["the project's summary"] = read(lambda connection: summarise_project(connection, "default"))
    return {what: seconds * 1000 for what, seconds in best_times(questions).items()}


def measure(report: Report, name: str, url: str) -> None:
    thousands = int(os.environ.get("EVENHAND_BENCH_SPANS", "200"))
    source = random.Random(0)
    database = open_database(url, time_limit=60)
    try:
        first_cost, trace_id = fill(database, source, thousands // 10)
        first = asked(database, trace_id)
        fill(database, source, thousands - 2 * (thousands // 10))
        last_cost, trace_id = fill(database, source, thousands // 10)
        last = asked(database, trace_id)
    finally:
        database.close()
    for what, milliseconds in last.items():
        ratio = milliseconds / first[what]
        report.add(
            f"{name}, {thousands:,},000 spans: {what}",
            f"{milliseconds:.2f} ms; {ratio:.1f}× that at a tenth of them",
            "< 50 ms",
        )
    report.add(
        f"{name}: this process's own time to store a span",
        f"{first_cost:.1f} µs for the first tenth, {last_cost:.1f} µs for the last; ratio of rates {first_cost / last_cost:.2f}",
    )


def run(report: Report) -> None:
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as folder:
        measure(report, "SQLite", f"sqlite:///{Path(folder) / 'ours.db'}")
    on_postgres(report, lambda ours, _: measure(report, "PostgreSQL", ours))
