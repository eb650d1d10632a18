"""Running scorers on what is stored: off the event loop, and for no longer than a request should wait."""

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from evenhand.core.jsontext import decode
from evenhand.core.outcome import Failed, NoScore, Outcome, Scored, Unscored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.types import ScorerInput
from evenhand.server.jobs.score_requests import ScoreToCompute
from evenhand.server.jobs.threads import ScoringThreads
from evenhand.store.jobs import JobRequest
from evenhand.store.scores import Measurement
from evenhand.store.targets import Material

T = TypeVar("T")
# Threads of their own: while scorers keep them busy, bodies are still decoded and answers still made.
_THREADS = ScoringThreads(4, "evenhand-scoring")


async def run_off_loop(work: Callable[[], T]) -> T:
    """What `work` returns, computed on one of the threads for requests."""
    return await _THREADS.run(work)


async def compute_scores(
    wanted: list[tuple[ScoreToCompute, Material]], *, seconds: float
) -> list[Measurement | NoScore | JobRequest]:
    """What the scores come to, in order. Slow scorers become jobs, and so does all that is left after `seconds`."""
    if all(score.prepared.as_job for score, _ in wanted):
        return [score.job for score, _ in wanted]
    return await run_off_loop(lambda: list(_computed(wanted, time.monotonic() + seconds)))


def _computed(
    wanted: Iterable[tuple[ScoreToCompute, Material]], deadline: float
) -> Iterable[Measurement | NoScore | JobRequest]:
    for score, material in wanted:
        if score.prepared.as_job or time.monotonic() >= deadline:
            yield score.job
        else:
            yield compute_score(score, material)


def compute_score(score: ScoreToCompute, material: Material) -> Measurement | NoScore:
    """Run the scorer. Can take a while: call it off the event loop."""
    assert score.prepared.scorer is not None
    sample = sample_of(material, score.expected(value_of(material.expected_output)))
    outcome = in_range(score_sample(score.prepared.scorer, sample, think_tags=score.prepared.think_tags))
    if not isinstance(outcome, Scored):
        return outcome
    return Measurement(
        scorer_name=score.scorer_name,
        value=outcome.value,
        rationale=score.rationale,
        config=score.config_text,
        metadata=score.metadata,
        source="rule",
        canonical_name=score.prepared.canonical_name,
        version=score.prepared.version,
        options=score.prepared.options,
    )


def sample_of(material: Material, expected: Any) -> ScorerInput:
    """A run or span as scorers know it: the output is the response, the expected output the target."""
    metadata = value_of(material.metadata)
    return ScorerInput(
        response=value_of(material.output),
        target=expected,
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def in_range(outcome: Outcome) -> Outcome:
    """The outcome, where a value can be stored: a number from 0 to 1, or a label without the character NUL."""
    if not isinstance(outcome, Scored):
        return outcome
    value = outcome.value
    if isinstance(value, str):
        return _storable_label(outcome, value)
    if not 0.0 <= value <= 1.0:
        return Unscored(
            reason="out_of_range", message=f"the scorer's value is {value:g}; a score is from 0 to 1"
        )
    return Scored(value=float(value) + 0.0, extracted=outcome.extracted, details=outcome.details)  # no -0.0


def _storable_label(outcome: Scored, label: str) -> Outcome:
    try:
        label.encode()
    except UnicodeEncodeError:
        return Failed(error="bad_result", message="the scorer's label is not valid Unicode")
    if "\x00" in label:
        return Failed(error="bad_result", message="the scorer's label contains the character NUL")
    return outcome


def value_of(text: str | None) -> Any:
    """Stored JSON as a value."""
    return None if text is None else decode(text)
