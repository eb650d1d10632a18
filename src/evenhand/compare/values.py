"""A metric's value per problem, on both sides of a pair of runs."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.metrics.repeats import pass_at_k, pass_hat_k
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

SPENT = ("cost", "duration", "tokens")
"""Metrics of what a run used up; all others are scores."""


class PairedValues(Struct, frozen=True, kw_only=True):
    """One number per problem and side."""

    base: FloatArray
    """The base's values."""
    candidate: FloatArray
    """The candidate's values, in the same order."""
    possible: int
    """How many problems there would be if nothing were missing."""

    @property
    def share(self) -> float:
        """The part of the possible problems that is there on both sides."""
        return len(self.base) / self.possible if self.possible else 0.0


def paired_values(metric: str, base: RunResults, candidate: RunResults) -> PairedValues:
    """The values of `metric` for every problem that has one on both sides."""
    mine, theirs = per_problem(metric, base.samples), per_problem(metric, candidate.samples)
    shared = sorted(mine.keys() & theirs.keys())
    problems = {sample.problem_idx for sample in [*base.samples, *candidate.samples]}
    return PairedValues(
        base=np.array([mine[index] for index in shared]),
        candidate=np.array([theirs[index] for index in shared]),
        possible=len(problems),
    )


def per_problem(metric: str, samples: Sequence[SampleResult]) -> dict[int, float]:
    """Problem → value. A problem without what the metric needs is left out, never counted as zero."""
    groups: dict[int, list[SampleResult]] = {}
    for sample in samples:
        groups.setdefault(sample.problem_idx, []).append(sample)
    found = {}
    for index, group in groups.items():
        value = _value(metric, group)
        if value is not None:
            found[index] = value
    return found


def _value(metric: str, group: Sequence[SampleResult]) -> float | None:
    if metric in SPENT:
        spent = [_spent(metric, sample) for sample in group]
        known = [value for value in spent if value is not None]
        return sum(known) / len(known) if known else None
    rewards = [float(sample.reward) for sample in group if sample.reward is not None]
    if not rewards:
        return None
    if metric == "mean_reward":
        return sum(rewards) / len(rewards)
    at = metric.startswith("pass@")
    k = int(metric[5:])
    if any(reward not in (0.0, 1.0) for reward in rewards):
        raise InputError(f"{metric} needs scores of 0 or 1; problem {group[0].problem_idx} has others")
    if len(rewards) < k:
        return None
    right = int(sum(rewards))
    return pass_at_k(len(rewards), right, k) if at else pass_hat_k(len(rewards), right, k)


def _spent(metric: str, sample: SampleResult) -> float | None:
    usage = sample.usage
    if usage is None:
        return None
    if metric == "cost":
        return usage.cost_usd
    if metric == "duration":
        return usage.duration_seconds
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return float(usage.input_tokens + usage.output_tokens)
