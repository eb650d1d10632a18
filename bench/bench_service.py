"""The scoring service: durable writes against a bare prototype on the same stack, and summaries that stay flat."""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.harness import Report
from bench.http_load import LoadResult, http_request, load
from bench.service_process import TOKEN, Server, bare, cpu_seconds, filled, on_postgres, serving

CLIENTS = 32
SECONDS = 3.0
ROUNDS = 3


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
    with serving(ours_url) as server, bare(bare_url) as (bare_port, bare_pid):
        _, experiment, runs = filled(server, 20_000, "single")
        requests = score_requests(runs)
        ours: list[LoadResult] = []
        theirs: list[LoadResult] = []
        cpu: list[float] = []
        bare_cpu: list[float] = []
        for _ in range(ROUNDS):
            busy = cpu_seconds(server.process.pid)
            ours.append(load(server.port, requests, seconds=SECONDS, clients=CLIENTS))
            cpu.append((cpu_seconds(server.process.pid) - busy) / (ours[-1].per_second * SECONDS) * 1000)
            busy = cpu_seconds(bare_pid)
            theirs.append(load(bare_port, requests, seconds=SECONDS, clients=CLIENTS))
            bare_cpu.append((cpu_seconds(bare_pid) - busy) / (theirs[-1].per_second * SECONDS) * 1000)
        best, bare_best = max(r.per_second for r in ours), max(r.per_second for r in theirs)
        assert not any(r.failed for r in ours)
        quickest = min(ours, key=lambda r: r.p50_ms)
        report.add(
            f"{name}: durable single scores, {CLIENTS} clients",
            f"{best:,.0f}/s, p50 {quickest.p50_ms:.1f} ms; bare prototype {bare_best:,.0f}/s; "
            f"ratio {best / bare_best:.2f}; CPU {min(cpu):.2f} ms against {min(bare_cpu):.2f} ms each",
            "ratio ≥ 0.55",
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
    """Summaries by the number of scored runs, and pages of runs by their depth. All sizes are in the database before
    the first is measured, and they take turns: what else the machine does then meets all of them alike."""
    with serving(url) as server:
        start = time.perf_counter()
        experiments = [filled(server, size, f"flat {size}", "s")[1] for size in sizes]
        rate = sum(sizes) / (time.perf_counter() - start)
        report.add(f"{name}: datasets, runs and scores through the API", f"{rate:,.0f} scored runs/s")
        times = _medians(server, [f"/v1/experiments/{one}/summary" for one in experiments])
        for size, taken in zip(sizes, times, strict=True):
            report.add(
                f"{name}: summary at {size:,} scored runs",
                f"{taken:.2f} ms ({taken / times[0]:.1f}× the smallest)",
                "flat",
            )
        first, deep = f"/v1/experiments/{experiments[-1]}/runs?limit=50", sizes[-1] * 2 // 3 // 200 * 200
        cursor = _cursor_at(server, experiments[-1], deep)
        near, far = _medians(server, [first, f"{first}&cursor={cursor}"])
        report.add(
            f"{name}: page of 50 runs at row {deep:,} of {sizes[-1]:,}",
            f"{far:.2f} ms; page 1 {near:.2f} ms; ratio {far / near:.2f}",
            "flat",
        )


def _cursor_at(server: Server, experiment: str, row: int) -> str:
    """The cursor of the page that starts after `row` runs."""
    cursor = ""
    for _ in range(row // 200):
        page = server.call("GET", f"/v1/experiments/{experiment}/runs?limit=200{cursor}")
        cursor = f"&cursor={page['next_cursor']}"
    return cursor.removeprefix("&cursor=")


def _medians(server: Server, paths: list[str]) -> list[float]:
    """The median in milliseconds of each path; the paths take turns."""
    times: list[list[float]] = [[] for _ in paths]
    for _ in range(40):
        for path, taken in zip(paths, times, strict=True):
            start = time.perf_counter()
            server.call("GET", path)
            taken.append((time.perf_counter() - start) * 1000)
    return [statistics.median(taken) for taken in times]


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
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as text:
        folder = Path(text)
        start_up(report, folder)
        single_scores(report, "SQLite", f"sqlite:///{folder / 'ours.db'}", str(folder / "bare.db"))
        summaries(report, "SQLite", f"sqlite:///{folder / 'flat.db'}", large)
    on_postgres(report, lambda ours, plain: single_scores(report, "PostgreSQL", ours, plain))
    on_postgres(report, lambda flat, _: summaries(report, "PostgreSQL", flat, large))
