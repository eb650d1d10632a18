"""Stored results and the judge: which samples wait for it, and what a record makes of them."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from evenhand.core.outcome import Scored, Unscored
from evenhand.core.sample import ScorerInput
from evenhand.judging.engine import Judging
from evenhand.judging.pipeline import JudgeProgress, judge_samples
from evenhand.judging.records import JudgeRecord
from evenhand.results.records import SampleError, SampleResult

Key = tuple[int, int]


def waits_for_judge(result: SampleResult, *, retry_failed: bool = False) -> bool:
    """Whether a sample was flagged `needs_judge` and has no judgement; `retry_failed` takes failed judgements too."""
    kind = result.error.kind if isinstance(result.error, SampleError) else result.error
    if result.status == "unscored":
        return kind == "needs_judge"
    if result.status == "failed":
        return retry_failed and "judge" in result.scoring_details
    return result.status == "" and bool(result.scoring_details.get("needs_judge"))


def with_judgement(result: SampleResult, record: JudgeRecord) -> SampleResult:
    """The sample with the reward, or the failure, of its record. The record is kept in its scoring details."""
    outcome = record.outcome
    kept = msgspec.to_builtins(record)
    # The outcome is the sample's own status, reward and error.
    del kept["outcome"]
    details: dict[str, Any] = {**result.scoring_details, "judge": kept}
    details.pop("needs_judge", None)
    if isinstance(outcome, Scored):
        details.update(outcome.details)
        return msgspec.structs.replace(
            result,
            status="scored",
            reward=float(outcome.value),
            extracted_answer=outcome.extracted,
            scoring_details=details,
            error=None,
        )
    unscored = isinstance(outcome, Unscored)
    return msgspec.structs.replace(
        result,
        status="unscored" if unscored else "failed",
        reward=None,
        scoring_details=details,
        error=SampleError(
            kind=outcome.reason if isinstance(outcome, Unscored) else outcome.error, message=outcome.message
        ),
    )


async def judge_results(
    judge: Judging,
    results: Iterable[SampleResult],
    *,
    concurrency: int = 32,
    retry_failed: bool = False,
    on_result: Callable[[SampleResult, JudgeProgress], None] | None = None,
) -> list[SampleResult]:
    """All results in their order, those that waited for the judge with their judgements."""
    every = list(results)
    waiting: dict[Key, SampleResult] = {
        (result.problem_idx, result.repeat): result
        for result in every
        if waits_for_judge(result, retry_failed=retry_failed)
    }

    def heard(key: Key, record: JudgeRecord, progress: JudgeProgress) -> None:
        if on_result is not None:
            on_result(with_judgement(waiting[key], record), progress)

    records = await judge_samples(
        judge,
        [(key, _sample(result)) for key, result in waiting.items()],
        concurrency=concurrency,
        on_record=heard,
    )
    return [
        with_judgement(result, records[key])
        if (key := (result.problem_idx, result.repeat)) in records
        else result
        for result in every
    ]


def _sample(result: SampleResult) -> ScorerInput:
    return ScorerInput(
        response=result.model_response or "", target=result.expected_answer, metadata=result.metadata
    )
