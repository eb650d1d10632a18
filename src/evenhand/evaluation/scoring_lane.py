"""Scoring beside generation: quick scorers in place, slow ones on threads, async ones as tasks."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from evenhand.benchmarks.definition import Benchmark, Problem
from evenhand.core import jsontext
from evenhand.core.outcome import Failed, Outcome
from evenhand.evaluation.records import Measured
from evenhand.scoring.apply import score_sample, score_sample_async
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
        self._reporting: set[int] = set()
        self._scorer = self._watched(benchmark.scorer)
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
        outcome = score_sample(self._scorer, sample)
        return self._measured(key, sample, outcome, time.perf_counter() - start)

    async def measure_apart(self, key: int, sample: ScorerInput) -> Measured:
        """Score without holding up the event loop."""
        async with self._slots:
            start = time.perf_counter()
            if self._is_async:
                outcome = await score_sample_async(self._scorer, sample)
            else:
                outcome, seconds = await asyncio.to_thread(_timed, self._scorer, sample)
                self._trials += 1
                if self._trials > 1:  # the first call pays for imports and tables
                    self._slowest = max(self._slowest, seconds)
            return self._measured(key, sample, outcome, time.perf_counter() - start)

    def _measured(self, key: int, sample: ScorerInput, outcome: Outcome, seconds: float) -> Measured:
        reported = id(sample) in self._reporting
        self._reporting.discard(id(sample))
        try:
            if outcome.details or not isinstance(getattr(outcome, "extracted", None), _SIMPLE):
                jsontext.encode(outcome)
        except UnicodeEncodeError:
            pass  # the journal knows what to do with lone surrogates
        except (ValueError, TypeError) as error:
            outcome = Failed(
                error="bad_result", message=f"the scorer's result cannot be kept as JSON: {error}"
            )
        return Measured(key=key, outcome=outcome, seconds=seconds, extracts=reported)

    def _watched(self, scorer: Scorer) -> Scorer:
        """The scorer, with a note of whether it reports what it extracted."""

        def note(sample: ScorerInput, result: Any) -> Any:
            if isinstance(result, Mapping) and "extracted" in result:
                self._reporting.add(id(sample))
            return result

        def plain(sample: ScorerInput) -> Any:
            return note(sample, scorer(sample))

        async def awaiting(sample: ScorerInput) -> Any:
            return note(sample, await scorer(sample))

        return Scorer(
            awaiting if scorer.is_async else plain,
            name=scorer.name,
            version=scorer.version,
            needs_target=scorer.needs_target,
            options={},
        )


def _timed(scorer: Scorer, sample: ScorerInput) -> tuple[Outcome, float]:
    start = time.thread_time()
    outcome = score_sample(scorer, sample)
    return outcome, time.thread_time() - start
