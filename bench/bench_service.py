"""The scoring service: durable writes against a bare prototype on the same stack, and summaries that stay flat."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.harness import Report
from bench.http_load import LoadResult, http_request, load

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "bench"
CLIENTS = 32
SECONDS = 3.0
ROUNDS = 3


class Server:
    """`evenhand serve` in a process of its own."""

    def __init__(self, database: str) -> None:
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evenhand", "serve", "--port", "0", "--database", database],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "EVENHAND_ADMIN_TOKEN": TOKEN},
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])
        while True:
            try:
                self.call("GET", "/readyz")
                break
            except OSError:
                time.sleep(0.005)
        self.start_seconds = time.perf_counter() - started

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, data=data, headers=headers
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


@contextmanager
def serving(database: str) -> Iterator[Server]:
    server = Server(database)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def bare(database: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare_service", database], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(timeout=30)


def filled(server: Server, items: int, name: str) -> tuple[str, str, list[str]]:
    """A dataset, an experiment and its runs."""
    dataset = server.call("POST", "/v1/datasets", {"project_id": "bench", "name": name})["id"]
    lines = b"".join(b'{"input": %d, "expected_output": "x"}\n' % n for n in range(items))
    server.call("POST", f"/v1/datasets/{dataset}/items/import", lines, "application/x-ndjson")
    ids: list[str] = []
    cursor = ""
    while True:
        page = server.call("GET", f"/v1/datasets/{dataset}/items?limit=200{cursor}")
        ids += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    body = {"project_id": "bench", "name": name, "dataset_id": dataset}
    experiment = server.call("POST", "/v1/experiments", body)["id"]
    runs: list[str] = []
    for start in range(0, items, 5_000):
        batch = [{"dataset_item_id": item, "output": "x"} for item in ids[start : start + 5_000]]
        runs += server.call("POST", f"/v1/experiments/{experiment}/runs", {"runs": batch})["run_ids"]
    return dataset, experiment, runs


def score_requests(runs: list[str]) -> list[bytes]:
    return [
        http_request("POST", "/v1/scores", TOKEN, json.dumps(body).encode())
        for n, run in enumerate(runs)
        for body in [
            {
                "target_id": run,
                "target_type": "run",
                "scorer_name": "accuracy",
                "value": n % 101 / 100,
                "rationale": "as expected",
            }
        ]
    ]


def single_scores(report: Report, name: str, ours_url: str, bare_url: str) -> None:
    with serving(ours_url) as server, bare(bare_url) as bare_port:
        _, experiment, runs = filled(server, 20_000, "single")
        requests = score_requests(runs)
        ours: list[LoadResult] = []
        theirs: list[LoadResult] = []
        for _ in range(ROUNDS):
            ours.append(load(server.port, requests, seconds=SECONDS, clients=CLIENTS))
            theirs.append(load(bare_port, requests, seconds=SECONDS, clients=CLIENTS))
        best, bare_best = max(r.per_second for r in ours), max(r.per_second for r in theirs)
        assert not any(r.failed for r in ours)
        quickest = min(ours, key=lambda r: r.p50_ms)
        report.add(
            f"{name}: durable single scores, {CLIENTS} clients",
            f"{best:,.0f}/s, p50 {quickest.p50_ms:.1f} ms; bare prototype {bare_best:,.0f}/s; "
            f"ratio {best / bare_best:.2f}",
            "ratio ≥ 0.60",
        )
        batch = [{"target_id": r, "target_type": "run", "scorer_name": "b", "value": 1} for r in runs[:1000]]
        times = []
        for _ in range(5):
            start = time.perf_counter()
            server.call("POST", "/v1/scores/batch", {"scores": batch})
            times.append(time.perf_counter() - start)
        report.add(f"{name}: batches of 1,000 scores", f"{1000 / min(times):,.0f} scores/s")
        report.add(f"{name}: resident memory after this", f"{server.memory_mib():.0f} MiB")
        server.call("GET", f"/v1/experiments/{experiment}/summary")


def summaries(report: Report, name: str, url: str, sizes: tuple[int, ...]) -> None:
    """The median of many summaries, and of pages deep in the runs, by the number of scored runs."""
    figures: dict[int, tuple[float, float, float]] = {}
    with serving(url) as server:
        for size in sizes:
            start = time.perf_counter()
            _, experiment, runs = filled(server, size, f"flat {size}")
            for at in range(0, size, 10_000):
                part = [
                    {"target_id": run, "target_type": "run", "scorer_name": "s", "value": n % 11 / 10}
                    for n, run in enumerate(runs[at : at + 10_000])
                ]
                server.call("POST", "/v1/scores/batch", {"scores": part})
            filled_in = time.perf_counter() - start
            deep = server.call("GET", f"/v1/experiments/{experiment}/runs?limit=200")["next_cursor"] or ""
            cursor = f"&cursor={deep}" if deep else ""
            figures[size] = (
                _median(server, f"/v1/experiments/{experiment}/summary"),
                _median(server, f"/v1/experiments/{experiment}/runs?limit=50{cursor}"),
                size / filled_in,
            )
    smallest = figures[sizes[0]]
    for size, (summary, page, rate) in figures.items():
        report.add(
            f"{name}: summary at {size:,} scored runs",
            f"{summary:.2f} ms ({summary / smallest[0]:.1f}× the smallest); page of 50 runs {page:.2f} ms "
            f"({page / smallest[1]:.1f}×); filled at {rate:,.0f} items/s",
            "flat",
        )


def _median(server: Server, path: str) -> float:
    times = []
    for _ in range(40):
        start = time.perf_counter()
        server.call("GET", path)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def start_up(report: Report, folder: Path) -> None:
    times, memory = [], []
    for n in range(3):
        with serving(f"sqlite:///{folder / f'start{n}.db'}") as server:
            times.append(server.start_seconds)
            memory.append(server.memory_mib())
    report.add("start-up to the first answer, new SQLite file", f"{min(times):.2f} s", "about 1 s")
    report.add("resident memory when idle", f"{min(memory):.0f} MiB")


def run(report: Report) -> None:
    large = (1_000, 100_000, 1_000_000) if os.environ.get("EVENHAND_BENCH_LARGE") else (1_000, 30_000)
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as text:
        folder = Path(text)
        start_up(report, folder)
        single_scores(report, "SQLite", f"sqlite:///{folder / 'ours.db'}", str(folder / "bare.db"))
        summaries(report, "SQLite", f"sqlite:///{folder / 'flat.db'}", large)
        from tests.postgres import PostgresServer, binaries  # the same server as the tests start

        if binaries() is None:
            report.add("PostgreSQL", "not installed here")
            return
        with (
            PostgresServer(durable=True) as postgres,
            postgres.database() as ours,
            postgres.database() as plain,
        ):
            single_scores(report, "PostgreSQL", ours, plain)
