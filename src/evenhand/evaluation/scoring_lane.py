"""Scoring beside generation: quick scorers in place, slow ones on threads, async ones as tasks."""

import asyncio
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import asdict, replace

from evenhand.benchmarks.definition import Problem
from evenhand.core import jsontext
from evenhand.core.outcome import Failed, Outcome
from evenhand.evaluation.records import Measured
from evenhand.evaluation.scorer_calls import counting_calls
from evenhand.scoring.apply import Measurement, measure_sample, measure_sample_async
from evenhand.scoring.registry import Scorer
from evenhand.scoring.types import ScorerInput

TRIALS = 4
"""Calls on a thread, timed, before a plain scorer may run in the event loop."""
QUICK_SECONDS = 0.002
"""A scorer that takes less processor time may run in the event loop."""
_SIMPLE = (str, bool, int, type(None))


class ScoringLane:
    """Scores the samples of one run: every scorer on every answer, the first one's numbers are the headline."""

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        *,
        options: Mapping[str, Any] | None = None,
        sandbox: Any = None,
        workers: int = 4,
    ) -> None:
        self._options: Mapping[str, Any] = dict(options or {})
        self._sandbox = sandbox
        self._scorers = dict(scorers)
        self._first = next(iter(self._scorers.values()))
        self._is_async = any(one.is_async for one in scorers.values())
        self._slots = asyncio.Semaphore(workers)
        self._trials = 0
        self._slowest = 0.0

    @property
    def quick(self) -> bool:
        """Whether scoring takes so little that it may happen between two answers."""
        # A program in a sandbox costs this process nothing and still has to be waited for.
        apart = self._is_async or self._sandbox is not None
        return not apart and self._trials >= TRIALS and self._slowest < QUICK_SECONDS

    def sample(
        self, problem: Problem, response: Any, usage: Mapping[str, Any] = MappingProxyType({})
    ) -> ScorerInput:
        """What the scorers are given."""
        return ScorerInput(
            response=response,
            target=problem.target,
            metadata=problem.metadata,
            config=self._options,
            sandbox=self._sandbox,
            input=problem.input,
            usage=usage,
        )

    def _applied(self, sample: ScorerInput) -> dict[str, Scorer]:
        """The first scorer, and those of the others that are for this row."""
        first = next(iter(self._scorers))
        return {name: one for name, one in self._scorers.items() if name == first or one.applies(sample)}

    def measure(self, key: int, sample: ScorerInput) -> Measured:
        """Score in place."""
        start = time.perf_counter()
        if len(self._scorers) == 1:
            found = measure_sample(self._first, sample)
            return Measured(
                key=key,
                outcome=_kept(found.outcome),
                seconds=time.perf_counter() - start,
                extracts=found.reports_extraction,
            )
        several = {name: measure_sample(one, sample) for name, one in self._applied(sample).items()}
        return _measured(key, several, time.perf_counter() - start)

    async def measure_apart(self, key: int, sample: ScorerInput) -> Measured:
        """Score without holding up the event loop."""
        async with self._slots:
            start = time.perf_counter()
            applied = self._applied(sample)
            plain = {name: one for name, one in applied.items() if not one.is_async}
            found: dict[str, Measurement] = {}
            if plain:
                found, seconds = await asyncio.to_thread(_timed, plain, sample)
                self._trials += 1
                if self._trials > 1:  # the first call pays for imports and tables
                    self._slowest = max(self._slowest, seconds)
            with counting_calls() as calls:
                for name, one in applied.items():
                    if one.is_async:
                        found[name] = await measure_sample_async(one, sample)
            measured = _measured(key, {name: found[name] for name in applied}, time.perf_counter() - start)
            return replace(measured, **asdict(calls))


def _measured(key: int, found: Mapping[str, Measurement], seconds: float) -> Measured:
    outcomes = {name: _kept(one.outcome) for name, one in found.items()}
    first = next(iter(outcomes))
    return Measured(
        key=key,
        outcome=outcomes.pop(first),
        seconds=seconds,
        extracts=found[first].reports_extraction,
        others=outcomes,
    )


def _kept(outcome: Outcome) -> Outcome:
    """The outcome as it can be written down."""
    try:
        if outcome.details or not isinstance(getattr(outcome, "extracted", None), _SIMPLE):
            jsontext.encode(outcome)
    except UnicodeEncodeError:
        pass  # the journal knows what to do with lone surrogates
    except (ValueError, TypeError) as error:
        return Failed(error="bad_result", message=f"the scorer's result cannot be kept as JSON: {error}")
    return outcome


def _timed(scorers: Mapping[str, Scorer], sample: ScorerInput) -> tuple[dict[str, Measurement], float]:
    start = time.thread_time()
    found = {name: measure_sample(one, sample) for name, one in scorers.items()}
    return found, time.thread_time() - start
