"""A metric's value per problem, on both sides of a pair of runs."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from evenhand.compare.coverage import Key, expected_keys, planned_keys, score_range
from evenhand.core.errors import InputError
from evenhand.metrics.exact import exact_mean
from evenhand.metrics.repeats import pass_at_k, pass_hat_k
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

SPENT = ("cost", "duration", "tokens")
"""Metrics of what a run used up; all others are scores."""


class Extreme(Struct, frozen=True, kw_only=True):
    """A value for every problem, what is missing set to an end of the scale."""

    base: FloatArray
    """The base's values."""
    candidate: FloatArray
    """The candidate's values."""
    problems: list[int]
    """Which problems they are."""


class PairedValues(Struct, frozen=True, kw_only=True):
    """One number per problem and side."""

    base: FloatArray
    """The base's values."""
    candidate: FloatArray
    """The candidate's values, in the same order."""
    problems: list[int]
    """Which problems they are."""
    possible: int
    """How many problems there would be if nothing were missing."""
    missing: int
    """How many samples are not there on both sides."""
    base_share: float
    """The part of its samples for which the base has what the metric needs."""
    candidate_share: float
    """The part of its samples for which the candidate has it."""
    worst: Extreme | None
    """Every missing sample counted against the candidate; None where that has no limit (cost, time, tokens)."""
    best: Extreme | None
    """Every missing sample counted for the candidate."""

    @property
    def share(self) -> float:
        """The part of the possible problems that is there on both sides."""
        return len(self.base) / self.possible if self.possible else 0.0


def paired_values(metric: str, base: RunResults, candidate: RunResults) -> PairedValues:
    """The values of `metric` for every problem that has one on both sides, from the samples that both sides have.

    As in `compare`: repeats that one side never made are left out, and so is a sample that the other side lacks.
    """
    keys = _shared_keys([base, candidate])
    known = [_known(metric, base), _known(metric, candidate)]
    pairs = [key for key in keys if all(key in side for side in known)]
    mine, theirs = (_per_problem(metric, pairs, side) for side in known)
    shared = sorted(mine.keys() & theirs.keys())
    shares = [sum(key in side for key in keys) / len(keys) if keys else 0.0 for side in known]
    low, high = score_range([*base.samples, *candidate.samples])

    def extreme(for_base: float, for_candidate: float) -> Extreme | None:
        if metric in SPENT:
            return None
        left = _per_problem(metric, keys, known[0], for_base)
        right = _per_problem(metric, keys, known[1], for_candidate)
        both = sorted(left.keys() & right.keys())
        return Extreme(
            base=np.array([left[index] for index in both]),
            candidate=np.array([right[index] for index in both]),
            problems=both,
        )

    return PairedValues(
        base=np.array([mine[index] for index in shared]),
        candidate=np.array([theirs[index] for index in shared]),
        problems=shared,
        possible=len({problem for problem, _ in keys}),
        missing=len(keys) - len(pairs),
        base_share=shares[0],
        candidate_share=shares[1],
        worst=extreme(high, low),
        best=extreme(low, high),
    )


class Range(Struct, frozen=True, kw_only=True):
    """One run's mean score per problem, every missing sample set to either end of the scale."""

    share: float
    """The part of its samples that is scored."""
    low: FloatArray
    """Missing samples have the lowest score."""
    high: FloatArray
    """Missing samples have the highest score."""


def shared_means(runs: Sequence[RunResults]) -> list[dict[int, float]]:
    """For each run problem → mean score, over the samples that all runs have scored."""
    known = [_known("mean_reward", run) for run in runs]
    pairs = [key for key in _shared_keys(runs) if all(key in one for one in known)]
    return [_per_problem("mean_reward", pairs, one) for one in known]


def reward_ranges(runs: Sequence[RunResults]) -> list[Range]:
    """How good each of the runs could be at worst and at best, over every problem that any of them has."""
    low, high = score_range([sample for run in runs for sample in run.samples])
    keys = _shared_keys(runs)
    found = []
    for run in runs:
        known = _known("mean_reward", run)
        ends = [
            np.array([value for _, value in sorted(_per_problem("mean_reward", keys, known, end).items())])
            for end in (low, high)
        ]
        share = sum(key in known for key in keys) / len(keys) if keys else 0.0
        found.append(Range(share=share, low=ends[0], high=ends[1]))
    return found


def _shared_keys(runs: Sequence[RunResults]) -> list[Key]:
    """The samples that all of the runs should have."""
    return expected_keys(
        *([(one.problem_idx, one.repeat) for one in run.samples] for run in runs),
        expected=planned_keys(*runs),
    )


def _known(metric: str, run: RunResults) -> dict[Key, float]:
    values = (((one.problem_idx, one.repeat), _sample_value(metric, one)) for one in run.samples)
    return {key: value for key, value in values if value is not None}


def _sample_value(metric: str, sample: SampleResult) -> float | None:
    if metric in SPENT:
        return _spent(metric, sample)
    return None if sample.reward is None else float(sample.reward)


def _per_problem(
    metric: str, keys: Sequence[Key], known: Mapping[Key, float], missing: float | None = None
) -> dict[int, float]:
    """Problem → value over these samples, what is not known set to `missing`; None leaves it out.

    A problem without what the metric needs is left out, never counted as zero.
    """
    groups: dict[int, list[float]] = {}
    for key in keys:
        value = known.get(key, missing)
        if value is not None:
            groups.setdefault(key[0], []).append(value)
    values = {problem: _score(metric, group, problem) for problem, group in groups.items()}
    return {problem: value for problem, value in values.items() if value is not None}


def _score(metric: str, rewards: Sequence[float], problem: int) -> float | None:
    if metric == "mean_reward" or metric in SPENT:
        return float(exact_mean(rewards))
    at = metric.startswith("pass@")
    k = int(metric[5:])
    if any(reward not in (0.0, 1.0) for reward in rewards):
        raise InputError(f"{metric} needs scores of 0 or 1; problem {problem} has others")
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
