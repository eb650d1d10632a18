"""`python -m bench.peers --phoenix BIN --mlflow BIN [--write]`: each peer and ours by turns.

Each peer is installed into an environment of its own: in one, they break each other. Loopback only, every server with a SQLite file of its own, at most a few minutes. What a peer cannot do is said.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.__main__ import write
from bench.bench_service import score_requests
from bench.bench_spans import OTLP, PROTOBUF, otlp_body
from bench.harness import Report
from bench.http_load import load
from bench.peers.mlflow_peer import Mlflow
from bench.peers.peer import Peer
from bench.peers.phoenix_peer import Phoenix
from bench.service_process import Server, filled, memory_mib, send_all, serving

CLIENTS, SECONDS, ROUNDS = 32, 3.0, 3
ITEMS, SCORED, BATCHES = 10_000, 100_000, 4
STORED_WITHIN = 30
Figures = dict[str, float]
PEERS: dict[str, type[Phoenix] | type[Mlflow]] = {"phoenix": Phoenix, "mlflow": Mlflow}
"""By the name of the program that serves it."""


class Ours:
    """The same of our service, everything through its API."""

    def __init__(self, server: Server) -> None:
        self.server = server
        _, _, runs = filled(server, 5_000, "single")
        self.requests = score_requests(runs)

    def dataset(self, name: str) -> float:
        lines = b"".join(b'{"input": %d, "expected_output": "x"}\n' % n for n in range(ITEMS))
        started = time.perf_counter()
        made = self.server.call("POST", "/v1/datasets", {"project_id": "bench", "name": name})["id"]
        self.server.call("POST", f"/v1/datasets/{made}/items/import", lines, "application/x-ndjson")
        return time.perf_counter() - started

    def spans(self, bodies: list[bytes]) -> float:
        pid = self.server.process.pid
        sent = send_all(self.server.port, pid, "/v1/traces", bodies, content_type=PROTOBUF, clients=BATCHES)
        return OTLP * len(bodies) / sent.seconds

    def scores(self) -> float:
        result = load(self.server.port, self.requests, seconds=SECONDS, clients=CLIENTS)
        assert not result.failed
        return result.per_second

    def summary(self) -> float:
        _, experiment, _ = filled(self.server, SCORED, "summary", "s")
        return _median(lambda: self.server.call("GET", f"/v1/experiments/{experiment}/summary"))


def measured(peer: Peer, ours: Ours, report: Report) -> tuple[Figures, Figures]:
    """What the peer can do of it, and ours right beside it; why not, for the rest."""
    theirs: Figures = {}
    own: Figures = {}
    steps: dict[str, tuple[Callable[[list[bytes]], float], Callable[[list[bytes]], float], int]] = {
        "dataset": (lambda _: peer.dataset(ITEMS), lambda _: ours.dataset(peer.name), 1),
        "spans": (lambda bodies: _spans(peer, bodies), ours.spans, ROUNDS),
        "scores": (lambda _: _scores(peer), lambda _: ours.scores(), ROUNDS),
        "memory": (lambda _: memory_mib(peer.process.pid), lambda _: ours.server.memory_mib(), 1),
        "summary": (lambda _: _summary(peer), lambda _: ours.summary(), 1),
    }
    for name, (ask_peer, ask_ours, rounds) in steps.items():
        try:
            for turn in range(rounds):
                source = random.Random(f"{peer.name} {turn}")
                bodies = [otlp_body(source) for _ in range(BATCHES)] if name == "spans" else []
                # Only rates have rounds, and of rates the best is the greatest.
                own[name] = max(own.get(name, 0.0), ask_ours(bodies))
                theirs[name] = max(theirs.get(name, 0.0), ask_peer(bodies))
        except Exception as error:
            report.add(f"{peer.name}: {name}", f"not measured: {type(error).__name__}: {str(error)[:200]}")
    return theirs, own


def _spans(peer: Peer, bodies: list[bytes]) -> float:
    """Stored spans per second, up to the last one that came: a peer that answers before it stores is waited for, and
    one that loses some is not charged for the wait."""
    before = peer.stored_spans()
    started = time.perf_counter()
    send_all(
        peer.port,
        peer.process.pid,
        "/v1/traces",
        bodies,
        content_type=PROTOBUF,
        clients=BATCHES,
        more_headers=peer.otlp_headers,
    )
    stored, last = 0, time.perf_counter()
    until = last + STORED_WITHIN
    while stored < OTLP * len(bodies) and time.perf_counter() < until:
        found = peer.stored_spans() - before
        if found > stored:
            stored, last = found, time.perf_counter()
        else:
            time.sleep(0.02)
    return stored / (last - started)


def _scores(peer: Peer) -> float:
    result = load(peer.port, peer.score_requests(4_000), seconds=SECONDS, clients=CLIENTS)
    if result.failed:
        raise RuntimeError(f"{result.failed} requests failed")
    return result.per_second


def _summary(peer: Peer) -> float:
    peer.fill_scores(SCORED)
    counted = peer.summary()
    if counted != SCORED:
        raise RuntimeError(f"it counts {counted:,.0f} of {SCORED:,} scores")
    return _median(peer.summary)


def _median(ask: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        started = time.perf_counter()
        ask()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def told(report: Report, name: str, peer: Figures, own: Figures) -> None:
    """One row for each figure that both have."""
    rows = (
        ("scores", f"single scores, {CLIENTS} clients", "{:,.0f}/s", "≥ 30×", True),
        ("spans", "spans stored, OTLP batches of 512", "{:,.0f}/s", "≥ 30×", True),
        ("dataset", "dataset of 10,000 items", "{:.2f} s", "≥ 10×", False),
        ("summary", "summary at 100,000 scored runs", "{:.1f} ms", "≥ 50×", False),
        ("memory", "resident memory after the writes", "{:.0f} MiB", "≥ 4×", False),
    )
    for key, what, form, target, more_is_better in rows:
        if key in peer and key in own:
            ratio = own[key] / peer[key] if more_is_better else peer[key] / own[key]
            figures = f"{form.format(own[key])} against {form.format(peer[key])}: {ratio:.1f}×"
            report.add(f"{name}: {what}", figures, target)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    for name in PEERS:
        parser.add_argument(f"--{name}", type=Path, help=f"the folder with the program {name}")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/performance.md")
    options = parser.parse_args()
    report = Report("peers", command="make bench-peers")
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="evenhand-peers-") as text:
        folder = Path(text)
        for program, kind in PEERS.items():
            given: Path | None = getattr(options, program)
            if given is None or not (given / program).exists():
                report.add(kind.name, "not measured: its package could not be installed")
                continue
            (folder / program).mkdir()
            # A server of ours for each: both start with nothing.
            with serving(f"sqlite:///{folder / program / 'ours.db'}") as server:
                peer = kind(given.resolve(), folder / program)
                try:
                    peer.wait()
                    told(report, peer.name, *measured(peer, Ours(server), report))
                except RuntimeError as error:
                    report.add(peer.name, f"not measured: {error}")
                finally:
                    peer.process.terminate()
                    peer.process.wait(timeout=30)
    if options.write:
        write(report)


if __name__ == "__main__":
    main()
