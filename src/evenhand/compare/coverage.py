"""What is missing on either side, and how far it could move the result.

A sample that failed, was not scored or is not there has no score; whoever leaves it out of a mean assumes that it is
like the others. Hard samples fail more often, so that may be wrong. The worst case needs no assumption: every missing
score is set to the end of the scale that hurts the candidate most, and the comparison is made again.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice

import numpy as np
from msgspec import Struct

from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

Key = tuple[int, int]
"""A problem's number and a repeat."""


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
    base_scored: int
    """How many of the possible ones the base has scored."""
    candidate_scored: int
    """How many of the possible ones the candidate has scored."""
    share: float
    """The part of the possible pairs that was compared."""
    base_share: float
    """The part that the base has scored."""
    candidate_share: float
    """The part that the candidate has scored."""
    missing: list[MissingPair]
    """Every pair that is not compared."""
    low: float
    """The lowest score that a missing sample could have had."""
    high: float
    """The highest score that a missing sample could have had."""
    worst_delta: float
    """The delta if every missing score went against the candidate."""
    best_delta: float
    """The delta if every missing score went for the candidate."""
    worst_lower: float | None = None
    """The lower end of the worst case's interval."""
    best_upper: float | None = None
    """The upper end of the best case's interval."""

    def reaches(self, least: float) -> bool:
        """Whether each side has scored at least this part."""
        return min(self.base_share, self.candidate_share) >= least


class Filled(Struct, frozen=True, kw_only=True):
    """Means per problem over all its samples, the missing ones set to an end of the scale."""

    base: FloatArray
    """The base's means."""
    candidate: FloatArray
    """The candidate's means."""

    @property
    def delta(self) -> float:
        """The mean difference, candidate minus base."""
        return float(np.mean(self.candidate - self.base))


def score_range(samples: Iterable[SampleResult]) -> tuple[float, float]:
    """The range that a missing score could have had: 0 to 1, wider where scores are seen outside."""
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    return min([0.0, *rewards]), max([1.0, *rewards])


def rewards_of(samples: Mapping[Key, SampleResult]) -> dict[Key, float | None]:
    """Every sample's score; None for what was not scored."""
    return {key: None if one.reward is None else float(one.reward) for key, one in samples.items()}


def expected_keys(*runs: Iterable[Key], expected: Iterable[Key] = ()) -> list[Key]:
    """The samples that all of the runs should have: every problem of any, in the repeats that all have made.

    A base with one repeat and a candidate with four are compared on the first; the other three are not missing. What is
    `expected` in these repeats is missing although no run has it.
    """
    ordered = [list(run) for run in runs]
    sides, expected = [set(run) for run in ordered], set(expected)
    if not expected and all(side == sides[0] for side in sides):
        return sorted(ordered[0])  # the usual case; mostly they are sorted already
    every = set().union(*sides)
    shared = set.intersection(*({repeat for _, repeat in side} for side in sides))
    keys = {key for key in every | expected if key[1] in shared}
    lost = {problem for problem, _ in every} - {problem for problem, _ in keys}
    return sorted(keys | {(problem, min(shared)) for problem in lost if shared})


def planned_keys(*runs: RunResults) -> set[Key]:
    """The samples that the runs' bundles promise, when a file holds fewer rows than its bundle says.

    How many rows are absent is known, not which. Problems that no file has take the lowest free numbers.
    """
    planned: set[Key] = set()
    short = [
        (run.bundle.benchmark.samples, run)
        for run in runs
        if run.bundle is not None and run.bundle.benchmark.samples > len(run.samples)
    ]
    if not short:
        return planned
    known = {sample.problem_idx for run in runs for sample in run.samples}
    for promised, run in short:
        assert run.bundle is not None
        repeats = set(range(run.bundle.benchmark.repeats)) | {sample.repeat for sample in run.samples}
        problems = set(known)
        free = (number for number in count() if number not in known)
        problems |= set(islice(free, max(0, -(-promised // len(repeats)) - len(known))))
        planned |= {(problem, repeat) for problem in problems for repeat in repeats}
    return planned


def filled(
    keys: Sequence[Key],
    mine: Mapping[Key, float | None],
    theirs: Mapping[Key, float | None],
    *,
    for_base: float,
    for_candidate: float,
) -> Filled:
    """Means per problem when what is missing has these scores."""
    left = np.array([for_base if (found := mine.get(key)) is None else found for key in keys])
    right = np.array([for_candidate if (found := theirs.get(key)) is None else found for key in keys])
    _, codes = np.unique([problem for problem, _ in keys], return_inverse=True)
    counts = np.bincount(codes)  # sums go in the order of the keys
    return Filled(
        base=np.bincount(codes, weights=left) / counts, candidate=np.bincount(codes, weights=right) / counts
    )


def coverage_words(found: Coverage, *, delta: str, worst: str, best: str) -> str:
    """One sentence: how much each side has scored, and where the delta would lie in the worst and best case."""
    if found.pairs == found.possible:
        return f"coverage 100%: all {found.possible:,} samples are scored on both sides"
    sides = (
        f"coverage: base {found.base_scored:,} of {found.possible:,} samples scored ({share_text(found.base_share)}), "
        f"candidate {found.candidate_scored:,} ({share_text(found.candidate_share)})"
    )
    return f"{sides}; the means and {delta} cover the {found.pairs:,} scored on both; worst case {worst}, best case {best}"


def share_text(share: float) -> str:
    """A part in percent, never rounded up to 100 %: 98.5%."""
    return f"{min(int(share * 1000) / 10, 100.0 if share >= 1 else 99.9):.1f}%"
