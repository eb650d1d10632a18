"""A metric's value per problem, on both sides of a pair of runs."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from evenhand.compare.coverage import Key, planned_keys, score_range
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

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.base_share == self.candidate_share == 1.0 and len(self.base) == self.possible


def paired_values(metric: str, base: RunResults, candidate: RunResults) -> PairedValues:
    """The values of `metric` for every problem that has one on both sides."""
    mine, theirs = per_problem(metric, base.samples), per_problem(metric, candidate.samples)
    shared = sorted(mine.keys() & theirs.keys())
    problems = {sample.problem_idx for sample in [*base.samples, *candidate.samples]}
    problems |= {problem for problem, _ in planned_keys(base, candidate)}
    sides = [_expected(base, candidate), _expected(candidate, base)]
    known = [_known(metric, base), _known(metric, candidate)]
    shares = [
        sum(key in have for key in expected) / len(expected) if expected else 0.0
        for expected, have in zip(sides, known, strict=True)
    ]
    low, high = score_range([*base.samples, *candidate.samples])

    def extreme(for_base: float, for_candidate: float) -> Extreme | None:
        if metric in SPENT:
            return None
        left = _filled(metric, sides[0], known[0], for_base)
        right = _filled(metric, sides[1], known[1], for_candidate)
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
        possible=len(problems),
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


def reward_ranges(runs: Sequence[RunResults]) -> list[Range]:
    """How good each of the runs could be at worst and at best, over every problem that any of them has."""
    low, high = score_range([sample for run in runs for sample in run.samples])
    found = []
    for run in runs:
        expected, known = _expected(run, *runs), _known("mean_reward", run)
        ends = [
            np.array([value for _, value in sorted(_filled("mean_reward", expected, known, end).items())])
            for end in (low, high)
        ]
        share = sum(key in known for key in expected) / len(expected)
        found.append(Range(share=share, low=ends[0], high=ends[1]))
    return found


def _expected(run: RunResults, *others: RunResults) -> list[Key]:
    """The samples that the run should have: every problem of any run, in the repeats that it has made."""
    seen = {(one.problem_idx, one.repeat) for one_run in (run, *others) for one in one_run.samples}
    seen |= planned_keys(run, *others)
    repeats = {one.repeat for one in run.samples}
    keys = {key for key in seen if key[1] in repeats}
    lost = {problem for problem, _ in seen} - {problem for problem, _ in keys}
    return sorted(keys | {(problem, repeat) for problem in lost for repeat in repeats})


def _known(metric: str, run: RunResults) -> dict[Key, float]:
    values = (((one.problem_idx, one.repeat), _sample_value(metric, one)) for one in run.samples)
    return {key: value for key, value in values if value is not None}


def _sample_value(metric: str, sample: SampleResult) -> float | None:
    if metric in SPENT:
        return _spent(metric, sample)
    return None if sample.reward is None else float(sample.reward)


def _filled(
    metric: str, expected: Sequence[Key], known: Mapping[Key, float], missing: float
) -> dict[int, float]:
    groups: dict[int, list[float]] = {}
    for key in expected:
        groups.setdefault(key[0], []).append(known.get(key, missing))
    values = {problem: _score(metric, group, problem) for problem, group in groups.items()}
    return {problem: value for problem, value in values.items() if value is not None}


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
        return float(exact_mean(known)) if known else None
    rewards = [float(sample.reward) for sample in group if sample.reward is not None]
    if not rewards:
        return None
    return _score(metric, rewards, group[0].problem_idx)


def _score(metric: str, rewards: Sequence[float], problem: int) -> float | None:
    if metric == "mean_reward":
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
