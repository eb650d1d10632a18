"""SIGKILL at any moment, then resume: nothing is lost, repeated or changed."""

import asyncio
import hashlib
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.evaluation.runs import timeless

from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall, with_nonce

CONCURRENCY = 4
BENCH = """
from evenhand.benchmarks import benchmark
from evenhand.scoring.registry import scorer


def rows():
    return [{"n": n, "target": str(2 * n), "category": "abc"[n % 3]} for n in range(COUNT)]


@benchmark(name="judged", dataset=rows, prompt="What is twice {n}?", judge="default")
@scorer
def check(sample):
    return {"correct": False, "needs_judge": True}
"""


def without_codes(text: str) -> str:
    """The text without the codes that fence the judged answer: they are keyed, and each run has a key of its own."""
    return re.sub(r"\b[0-9a-f]{16}\b", "CODE", text)


class Oracle:
    """The model and its judge behind one endpoint; both always say the same to the same question."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, call: MockCall) -> str:
        self.calls[call.model] += 1
        number = int(hashlib.sha256(without_codes(call.prompt).encode()).hexdigest(), 16)
        if call.model == "judge":
            reply = {"nonce": "{{nonce}}", "reasoning": "because", "score": number % 6}
            return with_nonce(json.dumps(reply), call.prompt)
        return f"It is {number % 1000}, I believe."


async def start(bench: Path, folder: Path, url: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "evenhand",
            "eval",
            "run",
            "--bench",
            str(bench),
            "-o",
            str(folder),
            "--resume",
        ),
        *("--model-url", url, "--model-id", "model", "--judge-url", url, "--judge-id", "judge"),
        *("--concurrency", str(CONCURRENCY)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


async def finish(process: asyncio.subprocess.Process) -> None:
    _, errors = await asyncio.wait_for(process.communicate(), 600)
    assert process.returncode == 0, errors.decode()


async def kill_at_a_random_moment(
    process: asyncio.subprocess.Process, oracle: Oracle, rng: random.Random
) -> bool:
    """After some calls, or (one time in five) after some time if that comes first, wherever the process is then."""
    by_time = rng.random() < 0.2
    target = oracle.calls.total() + rng.randint(3, 40)
    deadline = time.monotonic() + (rng.uniform(0.1, 1.5) if by_time else 600)
    while time.monotonic() < deadline and process.returncode is None:
        if oracle.calls.total() >= target:
            break
        await asyncio.sleep(0.002)
    await asyncio.sleep(rng.uniform(0, 0.02))
    if process.returncode is not None:
        return False
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    return True


async def killed_run(tmp_path: Path, samples: int, kills: int, seed: int) -> None:
    bench = tmp_path / "bench.py"
    bench.write_text(BENCH.replace("COUNT", str(samples)))
    rng = random.Random(seed)
    oracle = Oracle()
    async with MockModel(oracle, latency=0.004, keep_calls=False) as server:
        await finish(await start(bench, tmp_path / "whole", server.url))
        assert oracle.calls == {"model": samples, "judge": samples}
        oracle.calls.clear()
        done = 0
        for _ in range(kills):
            done += await kill_at_a_random_moment(
                await start(bench, tmp_path / "killed", server.url), oracle, rng
            )
        await finish(await start(bench, tmp_path / "killed", server.url))
    killed, whole = (without_codes(json.dumps(timeless(tmp_path / name))) for name in ("killed", "whole"))
    assert killed == whole
    assert done * 3 >= kills, "too few kills met a running process to prove anything"
    for name in ("model", "judge"):
        assert oracle.calls[name] <= samples + done * CONCURRENCY, oracle.calls


async def test_five_kills(tmp_path: Path) -> None:
    await killed_run(tmp_path, samples=240, kills=5, seed=1)


@pytest.mark.slow
async def test_fifty_kills_of_five_hundred_samples(tmp_path: Path) -> None:
    await killed_run(tmp_path, samples=500, kills=50, seed=2)
