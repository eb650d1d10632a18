"""Thousands of samples through a judge that keeps failing: every one ends, none twice, none invented."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.core.outcome import Failed, Scored
from evenhand.judging.pipeline import judge_samples
from evenhand.judging.records import JudgeRecord
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.counters import EndpointCounters
from evenhand.scoring.judge import Judge
from evenhand.scoring.types import ScorerInput

FAULTS = (
    "rate_limit",
    "server_error",
    "unavailable",
    "slow",
    "cut",
    "cut_body",
    "html",
    "half_json",
    "empty_choices",
)
LATENCY = 0.1
CONCURRENCY = 64


@contextmanager
def mock_judge(tmp_path: Path, *options: str) -> Iterator[str]:
    """`evenhand mock-model` in a process of its own, grading by what the answer says."""
    script = tmp_path / "script.jsonl"
    lines = [
        {
            "contains": f"token-{score} ",
            "answer": f'{{"nonce": "{{{{nonce}}}}", "reasoning": "", "score": {score}}}',
        }
        for score in range(6)
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-m", "evenhand", "mock-model", "--answers", str(script), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def judged(
    tmp_path: Path, n: int, patience: float, *options: str
) -> tuple[dict[int, JudgeRecord], list[int], float, EndpointCounters]:
    with mock_judge(tmp_path, "--latency", str(LATENCY), *options) as url:
        model = connect(
            EndpointConfig(
                base_url=url,
                model="m",
                timeout=patience,
                concurrency=CONCURRENCY,
                retry=RetryPolicy(first_delay=0.05, max_delay=0.4),
            )
        )
        heard: list[int] = []
        samples = [
            (number, ScorerInput(response=f"answer {number} token-{number % 6} end")) for number in range(n)
        ]
        start = time.perf_counter()
        records = await judge_samples(
            Judge(model),
            samples,
            concurrency=2 * CONCURRENCY,
            on_record=lambda key, *_: heard.append(key),
        )
        seconds = time.perf_counter() - start
        await model.aclose()
    return records, heard, seconds, model.usage


async def check_chaos(tmp_path: Path, n: int, patience: float) -> float:
    """How many times as long the faults made the run take; a reply is given up after `patience` seconds."""
    faults = [part for fault in FAULTS for part in ("--fault", fault)]
    calm, _, calm_seconds, _ = await judged(tmp_path, n, patience)
    records, heard, seconds, usage = await judged(
        tmp_path, n, patience, "--fault-rate", "0.3", "--seed", "11", "--slow-seconds", "600", *faults
    )
    outcomes = [record.outcome for record in records.values()]
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    print(
        f"{n} samples: {len(scored)} scored, {len(failed)} failed; {seconds:.2f} s against {calm_seconds:.2f} s"
        f" ({seconds / calm_seconds:.2f}x); {usage.requests} requests, retries {usage.retries}"
    )
    assert Counter(heard) == Counter(range(n)), "every sample once"
    assert len(scored) + len(failed) == n
    for number, record in records.items():
        if isinstance(record.outcome, Scored):
            assert record.outcome.value == (number % 6) / 5, "no verdict is invented or another sample's"
            assert record.outcome == calm[number].outcome
    # A sample fails when all six tries meet a fault: 0.3^6, about 0.07 %.
    assert len(failed) <= max(3, n * 0.003)
    assert all(outcome.error == "judge_unavailable" and outcome.details["kind"] for outcome in failed)
    assert sum(usage.retries.values()) > 0.3 * n
    return seconds / calm_seconds


async def test_1000_samples_with_30_percent_faults(tmp_path: Path) -> None:
    # A good reply must not be late, however busy the machine is.
    await check_chaos(tmp_path, 1000, patience=10.0)


@pytest.mark.slow
async def test_5000_samples_with_30_percent_faults(tmp_path: Path) -> None:
    assert await check_chaos(tmp_path, 5000, patience=0.5) < 2.0
