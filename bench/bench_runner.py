"""The whole command `evenhand eval run`, from its start to the written report, against a bare aiohttp loop."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Report

SAMPLES = 2_000
FEW = 10
MANY = 100_000
ROUNDS = 3

BENCH = """
from evenhand import benchmark, exact_match, scorer


def rows():
    return ({"n": n, "target": "42", "category": str(n % 7)} for n in range(COUNT))


@benchmark(name="bench", dataset=rows, prompt="Question number {n}: what is six times seven? Answer with a number.")
@scorer
def check(sample):
    return exact_match(sample)
"""

# The same calls with nothing around them: the least that any tool must spend.
BARE = """
import asyncio, json, sys
import aiohttp

async def main(url, count, concurrency):
    numbers = iter(range(count))
    connector = aiohttp.TCPConnector(limit=0)
    right = 0
    async with aiohttp.ClientSession(connector=connector) as session:
        async def work():
            nonlocal right
            for n in numbers:
                question = f"Question number {n}: what is six times seven? Answer with a number."
                body = {"model": "m", "messages": [{"role": "user", "content": question}]}
                async with session.post(url + "/chat/completions", json=body) as reply:
                    answer = json.loads(await reply.read())
                right += answer["choices"][0]["message"]["content"] == "42"
        await asyncio.gather(*(work() for _ in range(concurrency)))
    assert right == count

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


# Compiled once, as an installed package is, whatever this shell says about bytecode.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def mock_model(latency: float) -> Iterator[str]:
    """The mock endpoint in a process of its own; gives its URL."""
    command = [sys.executable, "-m", "evenhand", "mock-model", "--answer", "42", "--latency", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def spent(command: list[str]) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak memory in KiB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def ours(folder: Path, url: str, count: int, concurrency: int) -> list[str]:
    bench = folder / f"bench_{count}.py"
    bench.write_text(BENCH.replace("COUNT", str(count)))
    out = folder / f"out-{time.monotonic_ns()}"
    run = ["eval", "run", "--bench", str(bench), "--model-url", url, "--model-id", "m", "-o", str(out)]
    return [sys.executable, "-m", "evenhand", *run, "--concurrency", str(concurrency)]


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        for latency in (0.0, 0.05):
            with mock_model(latency) as url:
                for concurrency in (64, 256):
                    _compare(report, folder, url, latency, concurrency)
        with mock_model(0.0) as url:
            _parts(report, folder, url)
            _memory(report, folder, url)


def _compare(report: Report, folder: Path, url: str, latency: float, concurrency: int) -> None:
    bare = [sys.executable, "-c", BARE, url, str(SAMPLES), str(concurrency)]
    best = {"bare": (float("inf"), float("inf")), "ours": (float("inf"), float("inf"))}
    for _ in range(ROUNDS):
        for name, command in (("bare", bare), ("ours", ours(folder, url, SAMPLES, concurrency))):
            wall, cpu, _ = spent(command)
            best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
    what = f"{SAMPLES:,} samples, {latency * 1000:.0f} ms endpoint, concurrency {concurrency}"
    ratio = best["ours"][0] / best["bare"][0]
    report.add(
        f"{what}: wall time of the whole command",
        f"{ratio:.2f}× of a bare aiohttp loop ({best['ours'][0]:.2f} s)",
        "≤ 1.25×" if latency else "≤ 2×",
    )
    report.add(f"{what}: CPU per sample", f"{best['ours'][1] / SAMPLES * 1000:.2f} ms", "< 1.5 ms")


def _parts(report: Report, folder: Path, url: str) -> None:
    """Start-up against work, in processor time, which load of the machine changes least."""
    cpu: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for count in (FEW, SAMPLES):
            bare = [sys.executable, "-c", BARE, url, str(count), "64"]
            for name, command in (("bare", bare), ("ours", ours(folder, url, count, 64))):
                cpu[name, count] = min(cpu.get((name, count), float("inf")), spent(command)[1])
    report.add(
        f"start-up and {FEW} samples: CPU",
        f"{cpu['ours', FEW]:.2f} s; a bare loop {cpu['bare', FEW]:.2f} s",
    )
    each = {name: (cpu[name, SAMPLES] - cpu[name, FEW]) / (SAMPLES - FEW) for name in ("ours", "bare")}
    report.add(
        "each further sample: CPU",
        f"{each['ours'] * 1000:.2f} ms, {each['ours'] / each['bare']:.2f}× of a bare loop",
    )


def _memory(report: Report, folder: Path, url: str) -> None:
    few = spent(ours(folder, url, SAMPLES, 64))[2]
    wall, _, many = spent(ours(folder, url, MANY, 64))
    report.add(
        f"peak memory at {MANY:,} samples, against {SAMPLES:,}",
        f"{many / 1024:.0f} MiB against {few / 1024:.0f} MiB ({many / few:.2f}×; {wall:.0f} s)",
        "flat",
    )
