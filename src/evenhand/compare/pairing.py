"""Which samples of two runs belong together, and what is missing on either side."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.outcome import Tally
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

Key = tuple[int, int]


class MissingPair(Struct, frozen=True, kw_only=True):
    """A sample that cannot be compared."""

    problem_idx: int
    """Which problem."""
    repeat: int
    """Which answer to it."""
    base: str
    """The base's status: `scored`, `unscored`, `failed` or `absent`."""
    candidate: str
    """The candidate's status."""


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of the two runs was compared, and how far the rest could move the result."""

    pairs: int
    """Pairs scored on both sides."""
    possible: int
    """Pairs that would be there if nothing were missing."""
    missing: list[MissingPair]
    """Every pair that is not compared."""
    worst_delta: float
    """The delta if every missing score went against the candidate."""
    best_delta: float
    """The delta if every missing score went for the candidate."""

    @property
    def share(self) -> float:
        """The part of the possible pairs that was compared."""
        return self.pairs / self.possible if self.possible else 0.0


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

    @property
    def base_means(self) -> FloatArray:
        """The base's mean per problem."""
        return np.array([problem.base for problem in self.problems])

    @property
    def candidate_means(self) -> FloatArray:
        """The candidate's mean per problem."""
        return np.array([problem.candidate for problem in self.problems])

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


def pair_runs(base: RunResults, candidate: RunResults) -> Pairing:
    """Pair by problem and repeat; `InputError` when not one pair is scored on both sides."""
    mine = {(s.problem_idx, s.repeat): s for s in base.samples}
    theirs = {(s.problem_idx, s.repeat): s for s in candidate.samples}
    keys = sorted(mine.keys() | theirs.keys())
    pairs: dict[int, list[tuple[SampleResult, SampleResult]]] = {}
    missing: list[MissingPair] = []
    for key in keys:
        left, right = mine.get(key), theirs.get(key)
        if left is not None and right is not None and left.reward is not None and right.reward is not None:
            pairs.setdefault(key[0], []).append((left, right))
        else:
            missing.append(
                MissingPair(problem_idx=key[0], repeat=key[1], base=_status(left), candidate=_status(right))
            )
    if not pairs:
        raise InputError(_nothing_shared(base, candidate))
    problems = [_problem(index, found) for index, found in sorted(pairs.items())]
    coverage = _coverage(mine, theirs, keys, missing, problems)
    scores = {
        reward for found in pairs.values() for pair in found for reward in (pair[0].reward, pair[1].reward)
    }
    return Pairing(
        problems=problems,
        coverage=coverage,
        base_tally=tally_of(base.samples),
        candidate_tally=tally_of(candidate.samples),
        binary=scores <= {0.0, 1.0},
    )


def _status(sample: SampleResult | None) -> str:
    return "absent" if sample is None else sample.status


def _nothing_shared(base: RunResults, candidate: RunResults) -> str:
    both = len({s.problem_idx for s in base.samples} & {s.problem_idx for s in candidate.samples})
    return (
        f"nothing to compare: no sample is scored in both runs ({base.path}: {tally_of(base.samples).scored} scored, "
        f"{candidate.path}: {tally_of(candidate.samples).scored} scored, {both} problems in common)"
    )


def _problem(index: int, pairs: Sequence[tuple[SampleResult, SampleResult]]) -> Problem:
    left = [float(pair[0].reward) for pair in pairs if pair[0].reward is not None]
    right = [float(pair[1].reward) for pair in pairs if pair[1].reward is not None]
    return Problem(
        problem_idx=index,
        base=sum(left) / len(left),
        candidate=sum(right) / len(right),
        repeats=len(pairs),
        category=pairs[0][0].category or pairs[0][1].category,
    )


def _coverage(
    mine: dict[Key, SampleResult],
    theirs: dict[Key, SampleResult],
    keys: Sequence[Key],
    missing: list[MissingPair],
    problems: Sequence[Problem],
) -> Coverage:
    if not missing:
        delta = sum(problem.delta for problem in problems) / len(problems)
        return Coverage(pairs=len(keys), possible=len(keys), missing=[], worst_delta=delta, best_delta=delta)
    low, high = score_range([*mine.values(), *theirs.values()])
    worst: dict[int, list[float]] = {}
    best: dict[int, list[float]] = {}
    for key in keys:
        left, right = _reward(mine.get(key)), _reward(theirs.get(key))
        worst.setdefault(key[0], []).append(
            (low if right is None else right) - (high if left is None else left)
        )
        best.setdefault(key[0], []).append(
            (high if right is None else right) - (low if left is None else left)
        )
    return Coverage(
        pairs=len(keys) - len(missing),
        possible=len(keys),
        missing=missing,
        worst_delta=_mean_of_means(worst),
        best_delta=_mean_of_means(best),
    )


def score_range(samples: Iterable[SampleResult]) -> tuple[float, float]:
    """The range that a missing score could have had: 0 to 1, wider where scores are seen outside."""
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    return min([0.0, *rewards]), max([1.0, *rewards])


def _reward(sample: SampleResult | None) -> float | None:
    return None if sample is None else sample.reward


def _mean_of_means(values: dict[int, list[float]]) -> float:
    return sum(sum(found) / len(found) for found in values.values()) / len(values)
