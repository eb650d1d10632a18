"""Runs made by hand for tests of comparing and gating."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.results import (
    BenchmarkSummary,
    Bundle,
    JsonlFile,
    RunResults,
    SampleError,
    SampleResult,
    Usage,
    write_json,
)

Rewards = Mapping[int, Sequence[float | None]]


def samples(
    rewards: Rewards, *, category: Mapping[int, str] | None = None, **more: Any
) -> list[SampleResult]:
    """Problem → rewards of its repeats; None is a failed sample."""
    made = []
    for problem, values in rewards.items():
        for repeat, reward in enumerate(values):
            made.append(
                SampleResult(
                    problem_idx=problem,
                    repeat=repeat,
                    reward=reward,
                    status="failed" if reward is None else "scored",
                    error=SampleError(kind="timeout", message="too slow") if reward is None else None,
                    expected_answer="yes",
                    model_response=f"answer {reward}",
                    metadata={"category": category[problem]} if category else {},
                    **more,
                )
            )
    return made


def run(
    rewards: Rewards, *, name: str = "bench", path: str = "run", bundle: Bundle | None = None, **more: Any
) -> RunResults:
    """A run in memory."""
    return RunResults(path=Path(path), name=name, bundle=bundle, samples=samples(rewards, **more))


def single(values: Sequence[float | None]) -> dict[int, list[float | None]]:
    """One answer per problem."""
    return {index: [value] for index, value in enumerate(values)}


def usage(*, tokens: int, cost: float, seconds: float) -> Usage:
    """What an answer cost."""
    return Usage(
        input_tokens=tokens // 2, output_tokens=tokens - tokens // 2, cost_usd=cost, duration_seconds=seconds
    )


def write_run(
    folder: Path,
    rewards: Rewards,
    *,
    name: str = "bench",
    hashes: Mapping[str, str] | None = None,
    **more: Any,
) -> Path:
    """A run on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    made = samples(rewards, **more)
    with JsonlFile(folder / "results.jsonl") as file:
        for sample in made:
            file.write(sample)
    summary = BenchmarkSummary(name=name, samples=len(made))
    write_json(
        folder / f"eval-20260101T000000Z-{name}.json",
        Bundle(benchmark=summary, hashes=dict(hashes or {}), schema_version=1),
    )
    return folder
