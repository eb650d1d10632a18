"""Programs per second: the warm pool against a cold start for every program, and the overhead of one program."""

import contextlib
import functools
import gzip
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.docker_engine import IMAGE, missing, running_engine

from bench.harness import Report
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.docker import Docker, DockerOptions
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program
from evenhand.scoring.code_execution import build_program
from evenhand.scoring.types import ScorerInput

T = TypeVar("T")
ROUNDS = 2
CORES = os.cpu_count() or 1
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "HumanEval.jsonl.gz"
TRIVIAL = Program(source="print(1)")


def human_eval() -> tuple[list[Program], list[str]]:
    """The 164 canonical solutions as graded programs, and as plain scripts for a cold start."""
    programs, scripts = [], []
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            sample = ScorerInput(
                response=row["canonical_solution"],
                metadata={"_prompt": row["prompt"], "_test": row["test"], "entry_point": row["entry_point"]},
            )
            programs.append(build_program(sample, row["canonical_solution"]))
            call = f"check({row['entry_point']})"
            scripts.append(f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\n{call}\n")
    return programs, scripts


def cold_docker(socket: str, script: str) -> None:
    """What a harness without a pool does: one `docker run` per program."""
    limits = ["--network", "none", "--memory", "512m", "--cpus", "1", "--pids-limit", "68", "--read-only"]
    confined = ["--tmpfs", "/tmp", "--cap-drop", "ALL", "--user", "65534:65534"]
    confined += ["--security-opt", "no-new-privileges"]
    done = subprocess.run(
        ["docker", "-H", f"unix://{socket}", "run", "--rm", "-i", *limits, *confined, IMAGE, "python3", "-"],
        input=script.encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def rate(run: Callable[[T], object], items: list[T]) -> float:
    """Items per second with one worker for each core."""
    with ThreadPoolExecutor(CORES) as executor:
        started = time.perf_counter()
        list(executor.map(run, items))
        return len(items) / (time.perf_counter() - started)


@contextlib.contextmanager
def engine() -> Iterator[str | None]:
    if missing() is not None:
        yield None
    else:
        with running_engine() as socket:
            yield socket


def run(report: Report) -> None:
    programs, scripts = human_eval()
    with engine() as socket, Pool(Bubblewrap()) as warm, Pool(Bubblewrap(), warm=0) as cold:
        warm.prepare()
        work: dict[str, Callable[[], float]] = {
            "trivial, warm pool": lambda: rate(warm.execute, [TRIVIAL] * 80),
            "trivial, cold bwrap": lambda: rate(cold.execute, [TRIVIAL] * 24),
            "HumanEval, warm pool": lambda: rate(warm.execute, programs),
        }
        if socket is not None:
            run_cold = functools.partial(cold_docker, socket)
            work["trivial, cold docker run"] = lambda: rate(run_cold, ["print(1)"] * 10)
            work["HumanEval, cold docker run"] = lambda: rate(run_cold, scripts[:16])
        best = dict.fromkeys(work, 0.0)
        for _ in range(ROUNDS):
            for name, measure in work.items():
                best[name] = max(best[name], measure())
        for name, figure in best.items():
            report.add(f"{name}, programs per second", f"{figure:.1f}")
        for what in ("trivial", "HumanEval"):
            cold_name = f"{what}, cold docker run"
            if cold_name in best:
                ratio = best[f"{what}, warm pool"] / best[cold_name]
                report.add(f"{what}: warm pool against cold docker run", f"{ratio:.1f}×", "≥ 5×")
        ratio = best["trivial, warm pool"] / best["trivial, cold bwrap"]
        report.add("trivial: warm pool against cold bwrap, throughput", f"{ratio:.1f}×")
        _latency(report, warm, cold, socket)


def _latency(report: Report, warm: Pool, cold: Pool, socket: str | None) -> None:
    """How long one caller waits for a trivial program when the pool has had time to refill."""
    pools = {"warm bubblewrap": warm, "cold bubblewrap": cold}
    with contextlib.ExitStack() as stack:
        if socket is not None:
            options = DockerOptions(socket=socket, image=IMAGE)
            pools["warm docker"] = stack.enter_context(Pool(Docker(options)))
            pools["cold docker"] = stack.enter_context(Pool(Docker(options), warm=0))
        times: dict[str, list[float]] = {name: [] for name in pools}
        for pool in pools.values():
            pool.execute(TRIVIAL)
        for _ in range(11):
            for name, pool in pools.items():
                pool.prepare() if pool.warm else None
                time.sleep(0.3)
                started = time.perf_counter()
                pool.execute(TRIVIAL)
                times[name].append((time.perf_counter() - started) * 1000)
    for name, found in times.items():
        cuts = statistics.quantiles(found, n=20)
        figure = f"{statistics.median(found):.0f} ms (5 % to 95 %: {cuts[0]:.0f} to {cuts[-1]:.0f})"
        report.add(f"one trivial program, {name}", figure)
    for kind in ("bubblewrap", "docker"):
        if f"warm {kind}" in times:
            ratio = statistics.median(times[f"cold {kind}"]) / statistics.median(times[f"warm {kind}"])
            report.add(f"waiting time, cold against warm {kind}", f"{ratio:.1f}×")
