"""What the authors of judged benchmarks report beside, or instead of, the mean of the rewards.

SimpleQA (simple-evals): the shares that are correct, incorrect and not attempted; the accuracy among the attempted; and
F1, the harmonic mean of that accuracy and of the share that is correct. HealthBench: the mean over samples, which may be
negative one by one, cut to the range from 0 to 1.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from evenhand.results.bundle import CategorySummary, MetricValue

CORRECT, INCORRECT, NOT_ATTEMPTED = "CORRECT", "INCORRECT", "NOT_ATTEMPTED"
GRADES = frozenset((CORRECT, INCORRECT, NOT_ATTEMPTED))
"""The labels of SimpleQA's rubric."""


class OfficialMetrics:
    """Takes the details of scored samples, and completes their metrics."""

    def __init__(self) -> None:
        self._grades: Counter[str] = Counter()
        self._points = 0
        self._others = 0

    def add(self, details: Mapping[str, Any]) -> None:
        """One scored sample."""
        label = details.get("label")
        if isinstance(label, str) and label in GRADES:
            self._grades[label] += 1
        elif "possible_points" in details:
            self._points += 1
        else:
            self._others += 1

    def complete(self, scores: dict[str, MetricValue]) -> dict[str, MetricValue]:
        """The metrics with those of the authors, where all samples are of their kind."""
        if self._points and not (self._grades or self._others):
            return {name: clipped(value) for name, value in scores.items()}
        if self._grades and not (self._points or self._others):
            return {**scores, **attempts_metrics(self._grades)}
        return scores

    def categories(self, found: list[CategorySummary]) -> list[CategorySummary]:
        """The categories, cut to the range where the mean is."""
        if not self._points or self._grades or self._others:
            return found
        return [
            replace(
                one,
                mean_reward=_cut(one.mean_reward),
                ci_lower=_cut(one.ci_lower),
                ci_upper=_cut(one.ci_upper),
            )
            for one in found
        ]


def clipped(metric: MetricValue) -> MetricValue:
    """A metric and its interval, cut to the range from 0 to 1."""
    return replace(
        metric, value=_cut(metric.value), ci_lower=_cut(metric.ci_lower), ci_upper=_cut(metric.ci_upper)
    )


def _cut(value: float | None) -> float | None:
    return None if value is None else min(max(value, 0.0), 1.0)


def attempts_metrics(grades: Mapping[str, int]) -> dict[str, MetricValue]:
    """SimpleQA's rates, its accuracy among the attempted and its F1."""
    total = sum(grades.values())
    correct, incorrect = grades.get(CORRECT, 0), grades.get(INCORRECT, 0)
    attempted = correct + incorrect
    among = correct / attempted if attempted else 0.0
    share = correct / total
    f1 = 2 * among * share / (among + share) if correct else 0.0
    return {
        "correct": MetricValue(value=share, n=total),
        "incorrect": MetricValue(value=incorrect / total, n=total),
        "not_attempted": MetricValue(value=grades.get(NOT_ATTEMPTED, 0) / total, n=total),
        "attempted": MetricValue(value=attempted / total, n=total),
        "accuracy_given_attempted": MetricValue(value=among, n=attempted),
        "f1": MetricValue(value=f1, n=total),
    }
