"""Scores that come with new runs and spans, and scores in batches: stored, given to jobs, or reported as missing."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.scores import (
    BatchReport,
    InlineScoreJob,
    Score,
    ScoreJob,
    SkippedInlineScore,
    SkippedScore,
)
from evenhand.core.outcome import Failed, NoScore, Unscored
from evenhand.store.connection import Connection
from evenhand.store.jobs import JobRequest, add_requested
from evenhand.store.scores import Measurement, insert_scores
from evenhand.store.targets import Target, TargetName, find_targets

MOST_MESSAGE = 500

ScoreResult = Measurement | JobRequest | NoScore
"""What became of a score in a request: a score to be stored, a job to be made, or no score and why."""


class InlineResult(NamedTuple):
    """What became of one score of a new run or span."""

    place: int
    """The place of its run or span in the request."""
    score_place: int
    """Its place among the scores there."""
    scorer_name: str
    """As the request named it."""
    result: ScoreResult
    """What it came to."""


class BatchEntry(Struct, frozen=True, kw_only=True):
    """One score of a batch."""

    target: TargetName
    """What is scored."""
    result: ScoreResult
    """What it came to."""


def why(outcome: NoScore) -> tuple[str, str | None, str | None]:
    """Reason, error and message as answers show them. Only a failure is an error."""
    match outcome:
        case Unscored(reason="no_expected_output" as reason):
            return reason, None, None  # the contract's whole answer
        case Unscored(reason=reason, message=message):
            return reason, None, message[:MOST_MESSAGE] or None
        case Failed(error=error, message=message):
            return error, error, message[:MOST_MESSAGE]


def attach(
    connection: Connection, results: Iterable[InlineResult], target: Callable[[int], Target]
) -> tuple[list[SkippedInlineScore], list[InlineScoreJob]]:
    """Store inline scores and make their jobs; what was left out, and the jobs."""
    scores: list[tuple[Target, Measurement]] = []
    asked: list[tuple[InlineResult, JobRequest]] = []
    skipped: list[SkippedInlineScore] = []
    for one in results:
        match one.result:
            case Measurement():
                scores.append((target(one.place), one.result))
            case JobRequest():
                asked.append((one, one.result))
            case Unscored() | Failed():
                reason, error, message = why(one.result)
                skipped.append(
                    SkippedInlineScore(
                        index=one.place,
                        score_index=one.score_place,
                        scorer_name=one.scorer_name,
                        reason=reason,
                        error=error,
                        message=message,
                    )
                )
    insert_scores(connection, scores)
    ids = add_requested(connection, [(target(one.place), request) for one, request in asked])
    jobs = [
        InlineScoreJob(index=one.place, score_index=one.score_place, job_id=job_id)
        for (one, _), job_id in zip(asked, ids, strict=True)
    ]
    return skipped, jobs


def store_batch(connection: Connection, entries: Sequence[BatchEntry]) -> BatchReport:
    """Store a batch of scores, all or none; `NOT_FOUND` names the targets that do not exist."""
    wanted = [entry for entry in entries if isinstance(entry.result, Measurement | JobRequest)]
    found = find_targets(connection, [entry.target for entry in wanted])
    missing = [entry.target.id for entry, target in zip(wanted, found, strict=True) if target is None]
    if missing:
        raise Refusal("NOT_FOUND", f"{len(missing)} targets not found.", {"target_ids": missing[:100]})
    for target in found:
        if isinstance(target, Refusal):
            raise target
    targets = iter([target for target in found if isinstance(target, Target)])
    scores: list[tuple[int, Target, Measurement]] = []
    asked: list[tuple[int, Target, JobRequest]] = []
    skipped: list[SkippedScore] = []
    for index, entry in enumerate(entries):
        match entry.result:
            case Measurement():
                scores.append((index, next(targets), entry.result))
            case JobRequest():
                asked.append((index, next(targets), entry.result))
            case Unscored() | Failed():
                reason, error, message = why(entry.result)
                skipped.append(SkippedScore(index=index, reason=reason, error=error, message=message))
    made: list[Score] = insert_scores(connection, [(target, score) for _, target, score in scores])
    jobs = add_requested(connection, [(target, request) for _, target, request in asked])
    score_ids: list[str | None] = [None] * len(entries)
    for (index, _, _), score in zip(scores, made, strict=True):
        score_ids[index] = score.id
    return BatchReport(
        accepted=len(made),
        score_ids=score_ids,
        skipped=skipped,
        jobs=[
            ScoreJob(index=index, job_id=job_id) for (index, _, _), job_id in zip(asked, jobs, strict=True)
        ],
    )
