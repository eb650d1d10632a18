"""Is it decided yet? Looks at a run that grows in a random order, against a baseline that is there already.

The verdicts of `compare.sequential` stay valid however often one looks and whenever one stops. For that the order of the
problems must not depend on their scores: it is drawn by a seed, and only the problems up to the first unfinished one
count. A run is decided when a drop larger than tolerated is ruled out on every scorer (PASS, or WARN where a smaller
one is shown), or proven on one (BLOCK):
an estimate that merely lies beyond the tolerance may still come back. Several scorers share the error rate.
"""

from collections.abc import Container, Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.comparison import Options
from evenhand.compare.sequential import SequentialComparison, compare_sequentially
from evenhand.core.errors import InputError
from evenhand.results import RunResults
from evenhand.results.by_scorer import pairs_by_scorer

ORDER = "order_seed"
"""Where the configuration of a run says in which order it asked its problems."""


Decision = Literal["PASS", "WARN", "BLOCK", "INCONCLUSIVE"]


class Look(Struct, frozen=True, kw_only=True):
    """What one look came to."""

    verdict: Decision
    """INCONCLUSIVE: go on. WARN: a drop is shown, and one larger than tolerated is ruled out."""
    problems: int
    """How many problems had been answered in a row, in the order of the run."""
    comparisons: list[SequentialComparison]
    """Each scorer's own, with the interval that is valid at any time."""

    @property
    def decided(self) -> bool:
        return self.verdict != "INCONCLUSIVE"


def random_order(problems: Iterable[int], seed: int) -> list[int]:
    """The problems in an order that only the seed decides; the same for any part of them."""
    return sorted(problems, key=lambda problem: _rank(problem, seed))


def _rank(problem: int, seed: int) -> bytes:
    return blake2b(f"{seed}:{problem}".encode(), digest_size=16).digest()


def row_of_finished(order: Sequence[int], finished: Container[int]) -> list[int]:
    """The problems of the order up to the first that is not finished."""
    found = []
    for problem in order:
        if problem not in finished:
            break
        found.append(problem)
    return found


def look(base: RunResults, candidate: RunResults, order: Sequence[int], options: Options) -> Look:
    """Compare the two on the problems of `order`, in this order. Scores must lie between 0 and 1."""
    left, right = (_renumbered(run, order) for run in (base, candidate))
    mine, theirs = pairs_by_scorer(left, right)
    if len(mine) == len(theirs) == 1:
        pairs = [(next(iter(mine.values())), next(iter(theirs.values())))]
    else:
        pairs = [(mine[name], theirs[name]) for name in mine if name in theirs]
    level = 1 - (1 - options.confidence_level) / len(pairs)
    shared = replace(options, confidence_level=level)
    found = []
    for pair in pairs:
        try:
            found.append(compare_sequentially(*pair, shared, growing=False, shuffled=True))
        except InputError:  # nothing scored on both sides yet
            return Look(verdict="INCONCLUSIVE", problems=len(order), comparisons=[])
    verdict: Decision = "INCONCLUSIVE"
    if any(_is_proven(one, options) for one in found):
        verdict = "BLOCK"
    elif all(_is_ruled_out(one, options) for one in found):
        verdict = "WARN" if any(one.verdict.name == "WARN" for one in found) else "PASS"
    return Look(verdict=verdict, problems=len(order), comparisons=found)


def _is_proven(one: SequentialComparison, options: Options) -> bool:
    within = (one.coverage.low, one.coverage.high) == (0.0, 1.0)
    return within and one.verdict.name == "BLOCK" and one.delta.ci_upper < -options.max_drop


def _is_ruled_out(one: SequentialComparison, options: Options) -> bool:
    if one.verdict.name == "WARN":
        covered = one.coverage.reaches(options.min_coverage)
        lower = one.delta.ci_lower if covered else one.coverage.worst_lower
        return lower is not None and lower > -options.max_drop
    return one.verdict.name == "PASS"


def in_asked_order(base: RunResults, candidate: RunResults) -> tuple[RunResults, RunResults, bool]:
    """Two runs with their problems numbered in the random order in which one of them asked them, and whether they are.

    Without that order, or where the runs have more problems than it was drawn for, the numbers stay: which problems of
    the order are unfinished is then unknown, and those that finished first are no random choice.
    """
    told = [
        run.bundle.config
        for run in (candidate, base)
        if run.bundle is not None and ORDER in run.bundle.config
    ]
    if not told:
        return base, candidate, False
    mine, theirs = ({one.problem_idx for one in run.samples} for run in (base, candidate))
    planned = told[0].get("problems")
    if not isinstance(planned, int) or planned < len(mine | theirs):
        return base, candidate, False
    # Up to the first problem that is not there on both sides: what finished by chance before it does not count.
    order = row_of_finished(random_order(mine | theirs, told[0][ORDER]), mine & theirs)
    return _renumbered(base, order), _renumbered(candidate, order), True


def _renumbered(run: RunResults, order: Sequence[int]) -> RunResults:
    place = {problem: number for number, problem in enumerate(order)}
    samples = [
        replace(one, problem_idx=place[one.problem_idx]) for one in run.samples if one.problem_idx in place
    ]
    return replace(run, samples=sorted(samples, key=lambda one: (one.problem_idx, one.repeat)))
