"""The servers that the service's benches measure, each in a process of its own."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import Report

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "bench"
TICKS = os.sysconf("SC_CLK_TCK")


def process_tree(pid: int) -> list[int]:
    """A process and all that it started."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def memory_mib(pid: int) -> float:
    """Resident memory of a process and all that it started."""
    sizes = (re.search(r"VmRSS:\s+(\d+) kB", _proc(child, "status")) for child in process_tree(pid))
    return sum(int(size[1]) for size in sizes if size is not None) / 1024


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all that it started, so far."""
    total = 0
    for child in process_tree(pid):
        fields = _proc(child, "stat").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12]) if fields else 0
    return total / TICKS


def _proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # it ended meanwhile
        return ""


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
        return memory_mib(self.process.pid)

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


def on_postgres(report: Report, measure: Callable[[str, str], None]) -> None:
    """Measure with two new databases of a PostgreSQL that waits for the disk, where there is one."""
    from tests.postgres import PostgresServer, binaries  # the same server as the tests start

    if binaries() is None:
        report.add("PostgreSQL", "not installed here")
        return
    with PostgresServer(durable=True) as postgres, postgres.database() as one, postgres.database() as other:
        measure(one, other)


@contextmanager
def bare(database: str) -> Iterator[tuple[int, int]]:
    """The port and the process id of the bare prototype."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare_service", database], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


@dataclass(frozen=True)
class Sent:
    """What sending a list of bodies once took."""

    seconds: float
    cpu_seconds: float
    """Of the server."""


def send_all(
    port: int,
    pid: int,
    path: str,
    bodies: Sequence[bytes],
    *,
    content_type: str,
    clients: int,
    more_headers: Mapping[str, str] | None = None,
) -> Sent:
    """Send every body once, over kept connections, and see that each is accepted."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type, **(more_headers or {})}

    def client(own: Sequence[bytes]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for body in own:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status in (200, 201), (answer.status, text[:500])
        connection.close()

    busy, start = cpu_seconds(pid), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, [bodies[n::clients] for n in range(clients)]))
    return Sent(time.perf_counter() - start, cpu_seconds(pid) - busy)


def filled(server: Server, items: int, name: str, scorer: str | None = None) -> tuple[str, str, list[str]]:
    """A dataset, an experiment and its runs, each run with a score of `scorer` when there is one."""
    dataset = server.call("POST", "/v1/datasets", {"project_id": "bench", "name": name})["id"]
    for start in range(0, items, 100_000):
        lines = b"".join(
            b'{"input": %d, "expected_output": "x"}\n' % n for n in range(start, min(start + 100_000, items))
        )
        server.call("POST", f"/v1/datasets/{dataset}/items/import", lines, "application/x-ndjson")
    body = {"project_id": "bench", "name": name, "dataset_id": dataset}
    experiment = server.call("POST", "/v1/experiments", body)["id"]
    ids: list[str] = []
    cursor = ""
    while True:
        page = server.call("GET", f"/v1/datasets/{dataset}/items?limit=200{cursor}")
        ids += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    runs: list[str] = []
    for start in range(0, items, 5_000):
        batch = [
            {"dataset_item_id": item, "output": "x"}
            | ({"scores": [{"scorer_name": scorer, "value": n % 11 / 10}]} if scorer else {})
            for n, item in enumerate(ids[start : start + 5_000])
        ]
        runs += server.call("POST", f"/v1/experiments/{experiment}/runs", {"runs": batch})["run_ids"]
    return dataset, experiment, runs
