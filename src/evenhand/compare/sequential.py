"""A verdict that may be looked at after every sample.

Ordinary p-values and intervals are valid for one look, decided on beforehand. These stay valid however often one
looks and whenever one stops (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting").
For that the order of the problems must not depend on their scores: they are taken by their number, up to the first
one that is not yet there on both sides. Where the failures come late the order does tell something; so no bound is
narrower than the one of a single look, and a problem that is absent although both runs are past it is missing.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.comparison import FALLBACK_EFFECT, Options
from evenhand.compare.compatibility import differences
from evenhand.compare.coverage import Coverage
from evenhand.compare.pairing import pair_runs
from evenhand.compare.verdict import Evidence, Verdict, decide
from evenhand.core.errors import Incomparable, InputError
from evenhand.metrics.paired import non_inferiority
from evenhand.metrics.sequential import confidence_sequence, paired_sequential_test
from evenhand.metrics.types import Interval
from evenhand.results import RunResults


class SequentialComparison(Struct, frozen=True, kw_only=True):
    """Where a growing comparison stands."""

    benchmark: str
    """The benchmark's name."""
    verdict: Verdict
    """What can be said now, and would still hold after any number of further looks."""
    delta: Interval
    """Candidate minus base, from a confidence sequence."""
    p_drop: float
    """Anytime-valid and one-sided: of data like these, at any time, if the candidate were not worse."""
    p_rise: float
    """The same for a candidate that is not better."""
    problems: int
    """How many problems in a row are there on both sides."""
    waiting: int
    """How many problems come after the first gap and do not count yet."""
    decided_at: int | None
    """After how many problems a drop was first proven."""
    coverage: Coverage
    """What is missing among the problems that both runs have reached."""


def compare_sequentially(
    base: RunResults,
    candidate: RunResults,
    options: Options | None = None,
    *,
    growing: bool = True,
    shuffled: bool = False,
) -> SequentialComparison:
    """Compare two runs that may still be growing; of two that are not, every problem that a side lacks is missing.

    `shuffled`: the numbers of the problems are a random order. Then the order tells nothing, the confidence sequence
    is valid for any bounded scores, and it is taken as it is. Scores outside 0 to 1 have no bounds that are known
    beforehand, only those that are seen, so for them the interval of a single look counts too.
    """
    options = options or Options()
    different = differences(base, candidate)
    if different and not options.force:
        raise Incomparable(different)
    pairing = pair_runs(base, candidate)
    first_gap = min(
        (one.problem_idx for one in pairing.coverage.missing if "absent" in (one.base, one.candidate)),
        default=None,
    )
    ready = [one for one in pairing.problems if first_gap is None or one.problem_idx < first_gap]
    if not ready:
        raise InputError(f"nothing to look at yet: problem {first_gap} is not there on both sides")
    seen = pairing
    if growing:
        reached = min(max(one.problem_idx for one in run.samples) for run in (base, candidate))
        seen = pair_runs(_until(base, reached), _until(candidate, reached))
    low, high = pairing.coverage.low, pairing.coverage.high
    bounds = (low - high, high - low)
    shuffled = shuffled and (low, high) == (0.0, 1.0)
    alpha = 1 - options.confidence_level
    deltas = [one.delta for one in ready]
    drop = paired_sequential_test(deltas, bounds=bounds, alpha=alpha, alternative="less")
    rise = paired_sequential_test(deltas, bounds=bounds, alpha=alpha, alternative="greater")
    delta = _sequence(deltas, bounds, options, shuffled)
    coverage = replace(
        seen.coverage,
        worst_lower=_sequence(
            (seen.worst.candidate - seen.worst.base).tolist(), bounds, options, shuffled
        ).ci_lower,
        best_upper=_sequence(
            (seen.best.candidate - seen.best.base).tolist(), bounds, options, shuffled
        ).ci_upper,
    )
    verdict = decide(
        Evidence(
            delta=delta,
            p_drop=drop.p_value,
            p_rise=rise.p_value,
            max_drop=options.max_drop,
            coverage=coverage,
            min_coverage=options.min_coverage,
            more_problems=None,
            wanted_effect=options.max_drop or FALLBACK_EFFECT * (high - low),
            scale=high - low,
        )
    )
    if verdict.name == "INCONCLUSIVE":
        verdict = replace(verdict, next_step="Let both runs go on and look again whenever you like.")
    return SequentialComparison(
        benchmark=base.name,
        verdict=verdict,
        delta=delta,
        p_drop=drop.p_value,
        p_rise=rise.p_value,
        problems=len(ready),
        waiting=len(pairing.problems) - len(ready),
        decided_at=drop.decided_at,
        coverage=coverage,
    )


def _until(run: RunResults, problem: int) -> RunResults:
    """The run's samples up to a problem."""
    return replace(run, samples=[one for one in run.samples if one.problem_idx <= problem])


def _sequence(
    deltas: Sequence[float], bounds: tuple[float, float], options: Options, shuffled: bool
) -> Interval:
    """The confidence sequence's last interval; unless shuffled, at least as wide as the interval of a single look."""
    found = confidence_sequence(
        deltas, bounds=bounds, confidence_level=options.confidence_level, every=len(deltas)
    )
    lower, upper = found.ci_lower[-1], found.ci_upper[-1]
    if len(deltas) > 1 and not shuffled:
        values, scale, level = np.array(deltas), bounds[1], (1 + options.confidence_level) / 2
        lower = min(lower, non_inferiority(values, 0.0, confidence_level=level, scale=scale).ci_lower)
        upper = max(upper, -non_inferiority(-values, 0.0, confidence_level=level, scale=scale).ci_lower)
    return Interval(
        value=found.value[-1],
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=options.confidence_level,
        method=f"confidence sequence ({found.method})",
        n=len(deltas),
    )
