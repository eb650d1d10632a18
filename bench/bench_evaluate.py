"""`evaluate` against a bare `asyncio.gather` with a semaphore: 50 ms tasks, concurrency 64 and 256."""

import asyncio
import time
from typing import Any

from bench.harness import Report
from evenhand import aevaluate

SECONDS = 0.05
WAVES = 40
"""Rounds of calls at full concurrency: as long a run as a small benchmark."""
ROUNDS = 3
LIMIT = 1.25


async def _bare(count: int, concurrency: int) -> float:
    gate = asyncio.Semaphore(concurrency)

    async def one(text: str) -> bool:
        async with gate:
            await asyncio.sleep(SECONDS)
            return text == text.strip()

    start = time.perf_counter()
    await asyncio.gather(*(one(str(number)) for number in range(count)))
    return time.perf_counter() - start


async def _ours(count: int, concurrency: int) -> float:
    async def task(text: str) -> str:
        await asyncio.sleep(SECONDS)
        return text

    data: list[dict[str, Any]] = [{"input": str(number), "expected": str(number)} for number in range(count)]
    start = time.perf_counter()
    found = await aevaluate(data, task, ["exact_match"], concurrency=concurrency, progress=False)
    spent = time.perf_counter() - start
    assert found.mean() == 1.0
    return spent


def run(report: Report) -> None:
    asyncio.run(_ours(10, 10))  # loads what is loaded once
    for concurrency in (64, 256):
        count = WAVES * concurrency
        bare = min(asyncio.run(_bare(count, concurrency)) for _ in range(ROUNDS))
        ours = min(asyncio.run(_ours(count, concurrency)) for _ in range(ROUNDS))
        report.add(
            f"evaluate, {count:,} async tasks of 50 ms, concurrency {concurrency}",
            f"{ours:.2f} s, {ours / bare:.2f}× a bare asyncio.gather with a semaphore ({bare:.2f} s)",
            f"≤ {LIMIT}×",
        )
