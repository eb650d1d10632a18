"""Several judgements on one sample become one outcome."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.judging.config import Combine


def combine_outcomes(outcomes: Sequence[Outcome], combine: Combine, *, threshold: float) -> Outcome:
    """The joint outcome; failed when half of the judgements or more are missing, or no label has a majority."""
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    details: dict[str, Any] = {
        "verdicts": [outcome.value if isinstance(outcome, Scored) else None for outcome in outcomes],
        "verdicts_read": len(scored),
    }
    if 2 * len(scored) <= len(outcomes):
        reasons = Counter(reason_of(outcome) for outcome in outcomes if not isinstance(outcome, Scored))
        return Failed(
            error=reasons.most_common(1)[0][0],
            message=f"only {len(scored)} of {len(outcomes)} judgements could be had",
            details=details,
        )
    labels = [outcome.details.get("label") for outcome in scored]
    if combine == "majority" or all(isinstance(label, str) for label in labels):
        return _majority(scored, details, threshold)
    values = [float(outcome.value) for outcome in scored]
    value = fmean(values) if combine == "mean" else float(median(values))
    return Scored(value=value, extracted=value, details={**details, "correct": value >= threshold})


def _majority(scored: Sequence[Scored], details: dict[str, Any], threshold: float) -> Outcome:
    """The label, or the side of the threshold, that more than half agree on."""
    votes = [outcome.details.get("label") or _side(outcome, threshold) for outcome in scored]
    ((winner, count), *_) = Counter(votes).most_common()
    details = {**details, "votes": {str(vote): n for vote, n in Counter(votes).items()}}
    if 2 * count <= len(votes):
        return Failed(error="no_majority", message="the judgements do not agree", details=details)
    first = scored[votes.index(winner)]
    labelled = first.details.get("label") is not None
    value = float(first.value) if labelled else float(winner == "correct")
    return Scored(
        value=value,
        extracted=winner,
        details={**details, "correct": value >= threshold, **({"label": winner} if labelled else {})},
    )


def _side(outcome: Scored, threshold: float) -> str:
    return "correct" if float(outcome.value) >= threshold else "incorrect"


def reason_of(outcome: Outcome) -> str:
    """Why there is no score."""
    return outcome.error if isinstance(outcome, Failed) else getattr(outcome, "reason", "")
