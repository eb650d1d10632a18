"""Several runs of one benchmark: a table, every pair tested, and which ones cannot be told apart."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct

from evenhand import metrics
from evenhand.compare.comparison import Options, difference
from evenhand.compare.compatibility import differences
from evenhand.compare.coverage import score_range
from evenhand.compare.pairing import tally_of
from evenhand.compare.values import Range, reward_ranges, shared_means
from evenhand.core.errors import Incomparable, InputError
from evenhand.core.outcome import Tally
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import permutation_test
from evenhand.metrics.types import Interval
from evenhand.results import RunResults


class RankedRun(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    """Where the run came from."""
    mean: Interval
    """Over the problems that all runs have scored."""
    share: float
    """The part of its samples that the run has scored."""
    lowest_mean: float
    """The mean over all problems if every missing sample had the lowest score."""
    highest_mean: float
    """The mean over all problems if every missing sample had the highest score."""
    tally: Tally
    """All its samples by status."""
    letters: str
    """Runs that share a letter cannot be told apart."""


class PairTest(Struct, frozen=True, kw_only=True):
    """Two of the runs."""

    first: str
    """One run."""
    second: str
    """The other run."""
    delta: Interval
    """Second minus first."""
    p_value: float
    """Of the sign-flip test over problems."""
    p_adjusted: float
    """The same after Holm's correction over all pairs."""
    told_apart: bool
    """Whether the difference is significant, and missing samples could not reverse it (or are few)."""


class ManyRuns(Struct, frozen=True, kw_only=True):
    """The comparison of several runs."""

    benchmark: str
    """The benchmark's name."""
    problems: int
    """How many problems all runs have scored."""
    dropped: int
    """How many problems are missing in at least one run."""
    runs: list[RankedRun]
    """Best first."""
    pairs: list[PairTest]
    """Every pair."""
    groups: list[list[str]]
    """The largest sets of runs that cannot be told apart."""


def compare_many(runs: Sequence[RunResults], options: Options | None = None) -> ManyRuns:
    """Rank the runs on the problems that all of them have scored, in the repeats that all have."""
    options = options or Options()
    names = _names(runs)
    if not options.force:
        different = [
            f"{names[i]}: {words}" for i, run in enumerate(runs[1:], 1) for words in differences(runs[0], run)
        ]
        if different:
            raise Incomparable(different)
    scores = shared_means(runs)
    shared = sorted(scores[0])
    if not shared:
        raise InputError("nothing to compare: no problem is scored in all runs")
    values = [np.array([one[index] for index in shared]) for one in scores]
    order = sorted(range(len(runs)), key=lambda i: (-float(np.mean(values[i])), names[i]))
    tests = [
        (i, j, permutation_test(values[j] - values[i], seed=options.seed).p_value)
        for i, j in combinations(order, 2)
    ]
    adjusted = holm([p for *_, p in tests]).tolist()
    alpha = 1 - options.confidence_level
    ranges = reward_ranges(runs)
    apart = {
        (i, j)
        for (i, j, _), p in zip(tests, adjusted, strict=True)
        # `order` puts the better run first, so i is ahead of j.
        if p < alpha and not _reversible(ranges[i], ranges[j], options)
    }
    alike = {frozenset((i, j)) for i, j, _ in tests if (i, j) not in apart}
    groups = cliques(order, alike)
    bounds = score_range([sample for run in runs for sample in run.samples])
    return ManyRuns(
        benchmark=runs[0].name,
        problems=len(shared),
        dropped=len({one.problem_idx for run in runs for one in run.samples}) - len(shared),
        runs=[
            RankedRun(
                name=names[i],
                mean=metrics.mean_interval(
                    values[i],
                    confidence_level=options.confidence_level,
                    seed=options.seed,
                    bounds=bounds,
                ),
                share=ranges[i].share,
                lowest_mean=float(np.mean(ranges[i].low)),
                highest_mean=float(np.mean(ranges[i].high)),
                tally=tally_of(runs[i].samples),
                letters="".join(_letter(n) for n, group in enumerate(groups) if i in group),
            )
            for i in order
        ],
        pairs=[
            PairTest(
                first=names[i],
                second=names[j],
                delta=difference(values[i], values[j], options),
                p_value=p,
                p_adjusted=q,
                told_apart=(i, j) in apart,
            )
            for (i, j, p), q in zip(tests, adjusted, strict=True)
        ],
        groups=[[names[i] for i in group] for group in groups],
    )


def _reversible(ahead: Range, behind: Range, options: Options) -> bool:
    """Whether more is missing than allowed, and in the worst case the run ahead would not be shown to be ahead."""
    if min(ahead.share, behind.share) >= options.min_coverage:
        return False
    if len(ahead.low) < 2:
        return True
    return difference(behind.high, ahead.low, options).ci_lower <= 0


def cliques(order: Sequence[int], alike: set[frozenset[int]]) -> list[list[int]]:
    """The maximal sets in which every two members are alike, in the given order (Bron and Kerbosch, 1973)."""
    neighbours = {i: {j for j in order if frozenset((i, j)) in alike and i != j} for i in order}
    found: list[list[int]] = []

    def grow(chosen: list[int], candidates: set[int], excluded: set[int]) -> None:
        if not candidates and not excluded:
            found.append(chosen)
            return
        for one in [i for i in order if i in candidates]:
            grow([*chosen, one], candidates & neighbours[one], excluded & neighbours[one])
            candidates = candidates - {one}
            excluded = excluded | {one}

    grow([], set(order), set())
    place = {one: index for index, one in enumerate(order)}
    return sorted(
        (sorted(group, key=place.__getitem__) for group in found), key=lambda g: [place[i] for i in g]
    )


def _names(runs: Sequence[RunResults]) -> list[str]:
    """Short names that are still different: the last parts of the paths."""
    for depth in (1, 2, 3):
        names = ["/".join(run.path.parts[-depth:]) for run in runs]
        if len(set(names)) == len(names):
            return names
    return [run.source for run in runs]


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"({index})"
