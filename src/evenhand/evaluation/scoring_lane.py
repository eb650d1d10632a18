"""Scoring beside generation: quick scorers in place, slow ones on threads, async ones as tasks."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from evenhand.benchmarks.definition import Benchmark, Problem
from evenhand.core import jsontext
from evenhand.core.outcome import Failed
from evenhand.evaluation.records import Measured
from evenhand.scoring.apply import Measurement, measure_sample, measure_sample_async
from evenhand.scoring.registry import Scorer
from evenhand.scoring.types import ScorerInput

TRIALS = 4
"""Calls on a thread, timed, before a plain scorer may run in the event loop."""
QUICK_SECONDS = 0.002
"""A scorer that takes less processor time may run in the event loop."""
_SIMPLE = (str, bool, int, type(None))


class ScoringLane:
    """Scores the samples of one run."""

    def __init__(self, benchmark: Benchmark, *, sandbox: Any = None, workers: int = 4) -> None:
        self._extra: Mapping[str, Any] = dict(benchmark.extra)
        self._sandbox = sandbox
        self._scorer = benchmark.scorer
        self._is_async = benchmark.scorer.is_async
        self._slots = asyncio.Semaphore(workers)
        self._trials = 0
        self._slowest = 0.0

    @property
    def quick(self) -> bool:
        """Whether scoring takes so little that it may happen between two answers."""
        # A program in a sandbox costs this process nothing and still has to be waited for.
        apart = self._is_async or self._sandbox is not None
        return not apart and self._trials >= TRIALS and self._slowest < QUICK_SECONDS

    def sample(self, problem: Problem, response: str) -> ScorerInput:
        """What the scorer is given."""
        return ScorerInput(
            response=response,
            target=problem.target,
            metadata=problem.metadata,
            config=self._extra,
            sandbox=self._sandbox,
        )

    def measure(self, key: int, sample: ScorerInput) -> Measured:
        """Score in place."""
        start = time.perf_counter()
        found = measure_sample(self._scorer, sample)
        return _measured(key, found, time.perf_counter() - start)

    async def measure_apart(self, key: int, sample: ScorerInput) -> Measured:
        """Score without holding up the event loop."""
        async with self._slots:
            start = time.perf_counter()
            if self._is_async:
                found = await measure_sample_async(self._scorer, sample)
            else:
                found, seconds = await asyncio.to_thread(_timed, self._scorer, sample)
                self._trials += 1
                if self._trials > 1:  # the first call pays for imports and tables
                    self._slowest = max(self._slowest, seconds)
            return _measured(key, found, time.perf_counter() - start)


def _measured(key: int, found: Measurement, seconds: float) -> Measured:
    outcome = found.outcome
    try:
        if outcome.details or not isinstance(getattr(outcome, "extracted", None), _SIMPLE):
            jsontext.encode(outcome)
    except UnicodeEncodeError:
        pass  # the journal knows what to do with lone surrogates
    except (ValueError, TypeError) as error:
        outcome = Failed(error="bad_result", message=f"the scorer's result cannot be kept as JSON: {error}")
    return Measured(key=key, outcome=outcome, seconds=seconds, extracts=found.reports_extraction)


def _timed(scorer: Scorer, sample: ScorerInput) -> tuple[Measurement, float]:
    start = time.thread_time()
    found = measure_sample(scorer, sample)
    return found, time.thread_time() - start
