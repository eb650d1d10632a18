"""The time that the server takes for each page, beside very much stored data.

`EVENHAND_BENCH_PERCENT` says how much of the full size is stored: 1 unless told (50,000 spans, 10,000 scored runs); 100 is
5 million spans in 500,000 traces and 1 million scored runs. `EVENHAND_BENCH_DATABASE` names a database that is filled
already (by this bench, or by `bench.large_store` and then `python -m bench.bench_pages URL`), so that the hours of
filling it are spent once.

Each page is asked over HTTP, in turns; the figure is the time until its last byte, and the processor time of the server.
"""

import http.client
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from bench import large_store
from bench.harness import Report
from bench.service_process import TOKEN, Server, cpu_seconds, on_postgres, serving
from evenhand.core.objects.reviews import DEFAULT_FORM
from evenhand.core.spans import SpanRecord, microseconds
from evenhand.core.timestamps import as_of, now
from evenhand.store.arrivals import prepare
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import create_experiment, list_experiments
from evenhand.store.projects import Owner
from evenhand.store.review_queues import NewItem, NewQueue, create_queue, runs_of_experiment
from evenhand.store.review_queues import add_items as add_review_items
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.scores import Measurement

PROJECT = large_store.PROJECT
SPANS, RUNS = 5_000_000, 1_000_000
ITEMS, REPEATS = 1_000, 5
PER_EXPERIMENT = ITEMS * REPEATS
ROUNDS = 20
HUGE = 32_843
"""Spans of the one huge trace."""


def fill(database: Database, percent: float) -> None:
    """Spans, one huge trace, and scored runs."""
    source, end = random.Random(0), now()
    large_store.fill(database, source, int(SPANS * percent / 100), end - timedelta(days=28), end)
    fill_rest(database, percent)


def fill_rest(database: Database, percent: float) -> None:
    """What `bench.large_store` does not store."""
    source, end = random.Random(1), now()
    large_store.store(database, prepare(PROJECT, list(_huge_trace(source, end))), end - timedelta(hours=1))
    items = _dataset(database)
    count = max(2, int(RUNS * percent / 100) // PER_EXPERIMENT)
    for n in range(count):
        _experiment(database, source, items, n, end - timedelta(days=28 * (1 - n / count)))
    database.write_now(_review_queue)


def _huge_trace(source: random.Random, end: datetime) -> Iterator[SpanRecord]:
    """An agent that calls tools, deep and wide."""
    start = microseconds(end) - 3_600_000_000
    for n in range(HUGE):
        yield SpanRecord(
            trace_id="huge",
            id=f"{n:016x}",
            parent_span_id=None if n == 0 else f"{source.randrange(max(0, n - 400), n):016x}",
            name=source.choice(large_store.STEPS),
            start_us=start + n * 1000,
            end_us=start + n * 1000 + source.randrange(1_000_000),
            duration_ms=1.0,
            input='"a question"',
            output='"an answer"',
            metadata="{}",
        )


def _dataset(database: Database) -> list[str]:
    def work(connection: Connection) -> list[str]:
        made = create_dataset(connection, project_id=PROJECT, name=f"large {now()}", description=None)
        texts = [
            ItemText(input=json.dumps(f"question {n}"), expected_output=json.dumps(f"answer {n}"))
            for n in range(ITEMS)
        ]
        add_items(connection, made.id, texts, scope=None)
        return [
            made.id,
            *(one.id for one in list_items(connection, made.id, scope=None, after=None, limit=ITEMS)),
        ]

    found: list[str] = database.write_now(work)
    return found


def _experiment(
    database: Database, source: random.Random, known: list[str], number: int, at: datetime
) -> None:
    dataset, *items = known
    chance = 0.6 + 0.2 * source.random()
    runs = [
        NewRun(
            dataset_item_id=item,
            repeat=repeat,
            output=json.dumps(f"answer {source.randrange(1_000)}"),
            trace_id=None,
            scores=[
                ("exact_match", _score("exact_match", float(source.random() < chance), "rule")),
                ("helpfulness", _score("helpfulness", round(source.random() * 4) / 4, "judge")),
            ],
        )
        for item in items
        for repeat in range(REPEATS)
    ]

    def work(connection: Connection) -> None:
        with as_of(at):
            made = create_experiment(
                connection,
                project_id=PROJECT,
                name=f"run {number}",
                dataset_id=dataset,
                metadata=None,
                auto_complete=True,
            )
            add_runs(connection, made.id, runs, scope=None)

    database.write_now(work)


def _score(name: str, value: float, source: str) -> Measurement:
    return Measurement(
        scorer_name=name,
        value=value,
        source=source,  # type: ignore[arg-type]  # one of its literals
        canonical_name=name,
        version="1",
        options="{}",
        rationale="Because it says so." if source == "judge" else None,
    )


def _review_queue(connection: Connection) -> None:
    queue = NewQueue(
        name=f"people {now()}",
        description=None,
        form=DEFAULT_FORM,
        reviewers_per_item=2,
        reserve_seconds=1_800,
        pick="oldest",
        judge_scorer="helpfulness",
    )
    made = create_queue(connection, owner=Owner(PROJECT, None, True), queue=queue)
    [newest] = list_experiments(connection, project_id=PROJECT, before=None, limit=1)
    runs = runs_of_experiment(connection, newest.id, project_id=PROJECT)[:500]
    items = [NewItem(target_type="run", target_id=run) for run in runs]
    add_review_items(connection, made.id, items, scope=PROJECT)


class Visitor:
    """Somebody who is logged in."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        self._connection.request("GET", "/login")
        [secret] = re.findall(
            r'name="_secret" value="([^"]+)"', self._connection.getresponse().read().decode()
        )[:1]
        form = urlencode({"token": TOKEN, "next": "/", "_secret": secret})
        origin = f"http://127.0.0.1:{server.port}"
        kind = "application/x-www-form-urlencoded"
        self._connection.request("POST", "/login", form, {"Content-Type": kind, "Origin": origin})
        answer = self._connection.getresponse()
        answer.read()
        self._headers = {
            "Cookie": (answer.headers["Set-Cookie"] or "").partition(";")[0],
            "Accept-Encoding": "gzip",
        }

    def get(self, path: str) -> tuple[float, bytes]:
        """The seconds until the last byte, and the body."""
        started = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:500])
        return time.perf_counter() - started, body


def pages(server: Server) -> dict[str, str]:
    """Every page by name, with its address within the project."""
    listed = server.call("GET", f"/v1/experiments?project_id={PROJECT}&limit=2")["items"]
    newest, older = (one["id"] for one in listed)
    dataset = listed[0]["dataset_id"]
    item = server.call("GET", f"/v1/datasets/{dataset}/items?limit=1")["items"][0]["id"]
    trace = server.call("GET", f"/v1/traces?project_id={PROJECT}&limit=3")["items"][-1]["id"]
    session = server.call("GET", f"/v1/sessions?project_id={PROJECT}&limit=1")["items"]
    queue = server.call("GET", f"/v1/queues?project_id={PROJECT}&limit=1")["items"][0]["id"]
    return {
        "dashboard": "dashboard",
        "traces": "traces",
        "traces of 24 hours": "traces?h=24",
        "traces with errors": "traces?errors=1",
        "traces by metadata": "traces?key=user&value=17",
        "trace": f"traces/{trace}",
        f"trace of {HUGE:,} spans": "traces/huge",
        "sessions": "sessions",
        **({"session": f"sessions/{session[0]['id']}"} if session else {}),
        "search, common word": "search?q=invoice",
        "search, nothing found": "search?q=nowhere-to-be-found",
        "experiments": "experiments",
        "experiment": f"experiments/{newest}",
        "experiment by score": f"experiments/{newest}?scorer=exact_match&sort=value",
        "comparison": f"compare/{older}/{newest}",
        "datasets": "datasets",
        "dataset": f"datasets/{dataset}",
        "item history": f"items/{item}",
        "review queue": "queue",
        "queue with a form": f"queues/{queue}",
        "agreement": "agreement",
        "scorers": "scorers",
        "scorer": "scorers/exact_match",
        "judge": "scorers/helpfulness",
        "jobs": "jobs",
        "rules": "rules",
        "settings": "settings",
    }


def measure(report: Report, name: str, url: str, size: str) -> None:
    with serving(url) as server:
        visitor = Visitor(server)
        found = {what: f"/projects/{PROJECT}/{path}" for what, path in pages(server).items()}
        times: dict[str, list[float]] = {what: [] for what in found}
        spent: dict[str, float] = dict.fromkeys(found, 0.0)
        sizes: dict[str, int] = {}
        for turn in range(ROUNDS + 1):
            for what, path in found.items():
                busy = cpu_seconds(server.process.pid)
                seconds, body = visitor.get(path)
                if turn:  # the first one warms up
                    times[what].append(seconds * 1000)
                    spent[what] += cpu_seconds(server.process.pid) - busy
                sizes[what] = len(body)
    for what, own in times.items():
        late = statistics.quantiles(own, n=20)[-1]
        report.add(
            f"{name}, {size}: {what}",
            f"median {statistics.median(own):.0f} ms, 95th percentile {late:.0f} ms; "
            f"{spent[what] / ROUNDS * 1000:.0f} ms of processor time; {sizes[what] / 1000:.0f} kB",
            "< 100 ms, < 250 ms",
        )


def run(report: Report) -> None:
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    percent = float(os.environ.get("EVENHAND_BENCH_PERCENT", "1"))
    size = f"{SPANS * percent / 100:,.0f} spans, {RUNS * percent / 100:,.0f} runs"
    ready = os.environ.get("EVENHAND_BENCH_DATABASE")
    if ready:
        measure(report, re.split("[:+]", ready)[0], ready, "as it was filled")
        return
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'pages.db'}"
        _filled(url, percent)
        measure(report, "SQLite", url, size)

    def postgres(url: str, _: str) -> None:
        _filled(url, percent)
        measure(report, "PostgreSQL", url, size)

    on_postgres(report, postgres)


def _filled(url: str, percent: float) -> None:
    database = open_database(url, time_limit=600)
    try:
        fill(database, percent)
    finally:
        database.close()


if __name__ == "__main__":  # add what `bench.large_store` does not store to a database that it filled
    opened = open_database(sys.argv[1], time_limit=600)
    fill_rest(opened, float(sys.argv[2]) if len(sys.argv) > 2 else 100.0)
    opened.close()
