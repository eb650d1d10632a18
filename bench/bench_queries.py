"""Questions beside many stored spans: lists of traces by filters, single traces and spans, and the project's summary.

`EVENHAND_BENCH_SPANS` says how many thousand spans are stored (200 unless told; 5000 for the figures of the docs). Each
question is asked of a small store (a tenth of them, 100,000 at most) and of the large one by turns: a ratio near 1 says
that it does not grow with the data. Kept and used again are `EVENHAND_BENCH_STORE` (a SQLite file) and `EVENHAND_BENCH_POSTGRES` (the address
of a database).
"""

import os
from collections.abc import Callable
from typing import Any

from bench.harness import Report, best_times
from bench.large_store import PROJECT, chosen_size, fill_up, sqlite_store
from bench.service_process import on_postgres
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.project_summary import summarise_project
from evenhand.store.searching import search_spans
from evenhand.store.span_blocks import spans_of_id
from evenhand.store.traces import TraceFilter, get_trace, list_traces

DEFAULT = 200_000
LISTS: dict[str, dict[str, Any]] = {
    "no such name": {"name": "nobody"},
    "no such model": {"model": "nobody"},
    "no such metadata": {"metadata": (("user", "nobody"),)},
    "no such duration": {"min_duration_ms": 1e9},
    "a name and no such metadata": {"name": "chat", "metadata": (("user", "501"),)},
    "a common name": {"name": "chat"},
    "failed": {"has_error": True},
    "not failed": {"has_error": False},
    "in the queue, which is empty": {"in_queue": True},
    "not in the queue": {"in_queue": False},
    "no filter": {},
}


def questions(database: Database) -> dict[str, Callable[[], object]]:
    """What is asked, by name."""

    def read(work: Callable[[Connection], object]) -> Callable[[], object]:
        return lambda: database.read_now(work)

    def listed(given: dict[str, Any]) -> Callable[[], object]:
        narrow = TraceFilter(**given)
        return read(lambda c: list_traces(c, project_id=PROJECT, narrow=narrow, before=None, limit=51))

    [(trace_id, span_id)] = database.read_now(
        lambda c: c.all("SELECT id, root_span_id FROM traces ORDER BY trace_key LIMIT 1")
    )
    found = {f"traces: {what}": listed(given) for what, given in LISTS.items()}
    found["one trace"] = read(lambda c: get_trace(c, trace_id, scope=None))
    found["one span by its id alone"] = read(lambda c: spans_of_id(c, span_id, PROJECT, limit=2))
    found["the project's summary"] = read(lambda c: summarise_project(c, PROJECT))
    return found


def search(database: Database) -> dict[str, Callable[[], object]]:
    """A word that nobody wrote: one call looks at a bounded number of spans."""
    return {
        "search": lambda: database.read_now(
            lambda c: search_spans(c, project_id=PROJECT, words=["nowhere"], before=None, limit=50)
        )
    }


def measure(report: Report, name: str, small_url: str, large_url: str) -> None:
    spans = chosen_size() or DEFAULT
    few = min(spans // 10, 100_000)
    fill_up(small_url, few)
    fill_up(large_url, spans)
    small, large = (open_database(url, time_limit=60) for url in (small_url, large_url))
    try:
        best = [
            best_times({**_named("small", make(small)), **_named("large", make(large))})
            for make in (questions, search)
        ]
    finally:
        small.close()
        large.close()
    for times, target in zip(best, ("< 50 ms", "bounded"), strict=True):
        for (size, what), seconds in times.items():
            if size == "large":
                report.add(
                    f"{name}, {spans:,} spans: {what}",
                    f"{seconds * 1000:.2f} ms; {seconds / times[('small', what)]:.1f}× that at {few:,}",
                    target,
                )


def _named(size: str, given: dict[str, Callable[[], object]]) -> dict[tuple[str, str], Callable[[], object]]:
    return {(size, what): ask for what, ask in given.items()}


def run(report: Report) -> None:
    if chosen_size():
        report.command = f"EVENHAND_BENCH_SPANS={chosen_size() // 1_000} make bench ONLY=queries"
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with sqlite_store() as (large, folder):
        measure(report, "SQLite", f"sqlite:///{folder / 'small.db'}", large)
    kept = os.environ.get("EVENHAND_BENCH_POSTGRES")
    on_postgres(report, lambda small, large: measure(report, "PostgreSQL", small, kept or large))
