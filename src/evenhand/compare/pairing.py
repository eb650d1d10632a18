"""Which samples of two runs belong together, and what is missing on either side."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from evenhand.compare.coverage import (
    Coverage,
    Filled,
    Key,
    MissingPair,
    expected_keys,
    filled,
    planned_keys,
    rewards_of,
    score_range,
)
from evenhand.core.errors import InputError
from evenhand.core.outcome import Tally
from evenhand.metrics.exact import exact_mean, exact_sum
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

_ENDS = frozenset({0.0, 1.0})


class _Pairs(NamedTuple):
    """The scores of one problem's repeats that both sides have scored."""

    base: list[float]
    candidate: list[float]
    category: str | None


class Problem(Struct, frozen=True, kw_only=True):
    """One problem on both sides: means over the repeats that are scored on both."""

    problem_idx: int
    """Which problem."""
    base: float
    """The base's mean."""
    candidate: float
    """The candidate's mean."""
    repeats: int
    """How many pairs of answers the means rest on."""
    category: str | None
    """The problem's category."""
    cluster: str | None = None
    """What the problem shares with others, when a field names it."""

    @property
    def delta(self) -> float:
        """Candidate minus base."""
        return self.candidate - self.base


class Pairing(Struct, frozen=True, kw_only=True):
    """Two runs, put side by side."""

    problems: list[Problem]
    """Every problem with at least one pair, in order."""
    coverage: Coverage
    """What is missing."""
    base_tally: Tally
    """The base's samples by status."""
    candidate_tally: Tally
    """The candidate's samples by status."""
    binary: bool
    """Whether every paired score is 0 or 1."""
    every: list[int]
    """Every problem, those without a pair too, in the order of `worst` and `best`."""
    worst: Filled
    """All problems, every missing score set against the candidate."""
    best: Filled
    """All problems, every missing score set in the candidate's favour."""

    @property
    def base_means(self) -> FloatArray:
        """The base's mean per problem."""
        return np.array([problem.base for problem in self.problems])

    @property
    def candidate_means(self) -> FloatArray:
        """The candidate's mean per problem."""
        return np.array([problem.candidate for problem in self.problems])

    @property
    def delta(self) -> float:
        """The mean difference of the problems' means, in exact decimals."""
        rise = exact_sum(one.candidate for one in self.problems) - exact_sum(
            one.base for one in self.problems
        )
        return float(rise / len(self.problems))

    @property
    def single(self) -> bool:
        """Whether every problem has exactly one pair, so that plain McNemar applies."""
        return all(problem.repeats == 1 for problem in self.problems)


def tally_of(samples: Iterable[SampleResult]) -> Tally:
    """How many samples were scored, unscored and failed."""
    counts = {"scored": 0, "unscored": 0, "failed": 0}
    for sample in samples:
        counts[sample.status] += 1
    return Tally(**counts)


def pair_runs(base: RunResults, candidate: RunResults, expected: Iterable[Key] = ()) -> Pairing:
    """Pair by problem and repeat; `InputError` when not one pair is scored on both sides. The `expected` should be there."""
    mine = {(s.problem_idx, s.repeat): s for s in base.samples}
    theirs = {(s.problem_idx, s.repeat): s for s in candidate.samples}
    keys = expected_keys(mine, theirs, expected={*expected, *planned_keys(base, candidate)})
    rewards = rewards_of(mine), rewards_of(theirs)
    scored_by_base, scored_by_candidate = rewards
    pairs: dict[int, _Pairs] = {}
    missing: list[MissingPair] = []
    for key in keys:
        left, right = scored_by_base.get(key), scored_by_candidate.get(key)
        if left is None or right is None:
            sides = _status(mine.get(key)), _status(theirs.get(key))
            missing.append(MissingPair(problem_idx=key[0], repeat=key[1], base=sides[0], candidate=sides[1]))
            continue
        found = pairs.get(key[0])
        if found is None:
            found = pairs[key[0]] = _Pairs([], [], mine[key].category or theirs[key].category)
        found.base.append(left)
        found.candidate.append(right)
    if not pairs:
        raise InputError(_nothing_shared(base, candidate))
    low, high = score_range([*base.samples, *candidate.samples])
    worst = filled(keys, *rewards, for_base=high, for_candidate=low)
    # Where nothing is missing the two cases are one.
    best = filled(keys, *rewards, for_base=low, for_candidate=high) if missing else worst
    return Pairing(
        problems=[_problem(index, found) for index, found in sorted(pairs.items())],
        coverage=_coverage(keys, rewards, missing, (low, high), (worst.delta, best.delta)),
        base_tally=tally_of(base.samples),
        candidate_tally=tally_of(candidate.samples),
        binary=all(_ENDS.issuperset(one.base) and _ENDS.issuperset(one.candidate) for one in pairs.values()),
        every=sorted({key[0] for key in keys}),
        worst=worst,
        best=best,
    )


def _status(sample: SampleResult | None) -> str:
    return "absent" if sample is None else sample.status


def _nothing_shared(base: RunResults, candidate: RunResults) -> str:
    both = len({s.problem_idx for s in base.samples} & {s.problem_idx for s in candidate.samples})
    return (
        f"nothing to compare: no sample is scored in both runs ({base.source}: {tally_of(base.samples).scored} scored, "
        f"{candidate.source}: {tally_of(candidate.samples).scored} scored, {both} problems in common)"
    )


def _problem(index: int, pairs: _Pairs) -> Problem:
    return Problem(
        problem_idx=index,
        base=_mean(pairs.base),
        candidate=_mean(pairs.candidate),
        repeats=len(pairs.base),
        category=pairs.category,
    )


def _mean(scores: Sequence[float]) -> float:
    """The mean of the decimals that people read, so that equal means are equal: 0.1, 0.2 and 0.3 have a mean of 0.2."""
    if len(scores) == 1:
        return scores[0]
    if _ENDS.issuperset(scores):
        return sum(scores) / len(scores)
    return float(exact_mean(scores))


def _coverage(
    keys: Sequence[Key],
    rewards: tuple[Mapping[Key, float | None], Mapping[Key, float | None]],
    missing: list[MissingPair],
    ends: tuple[float, float],
    extremes: tuple[float, float],
) -> Coverage:
    possible = len(keys)
    base = candidate = possible
    if missing:
        base, candidate = (sum(side.get(key) is not None for key in keys) for side in rewards)
    return Coverage(
        pairs=possible - len(missing),
        possible=possible,
        base_scored=base,
        candidate_scored=candidate,
        share=(possible - len(missing)) / possible,
        base_share=base / possible,
        candidate_share=candidate / possible,
        missing=missing,
        low=ends[0],
        high=ends[1],
        worst_delta=extremes[0],
        best_delta=extremes[1],
    )
