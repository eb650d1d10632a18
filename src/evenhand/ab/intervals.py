"""The headline intervals of every paired delta, made for few tasks, and the bootstrap beside them.

Only tasks are independent: repeats of one task are not. So every interval here rests on what each task adds up to.

Means: Student's t with the clustered standard error, which for equal repeats is Student's t on the task means. Two
things go wrong with few tasks. Where the deltas are skewed (costs, durations), the mean hangs on rare large values, and
the end on their side is moved out by a factor 1 + `SKEW_STRETCH` · |skewness| / √tasks; the constants were set by
simulation (docs/ab.md). Where passes and failures differ on few tasks, a small spread is no proof: the interval is
widened to the one that `compare` gives (one win and one loss added: Bonett and Price 2012). Deltas that are all alike
on an unknown scale have no interval.

Medians: the values that a sign-flip test by task does not reject. With T tasks no p-value of that test is below 2/2^T, so
a 95% interval needs six tasks.

The cluster bootstrap that the contract asks for stays beside them; with 5 to 10 tasks it covers 82 to 88% only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from evenhand.ab.bootstrap import BootstrapEnds, Ends, bootstrap_ends
from evenhand.ab.decimals import Floats, Integers
from evenhand.ab.pairing import DeltaSummary, Pairs, TaskTotals
from evenhand.metrics.clusters import GroupTotals, clustered_error
from evenhand.metrics.differences import difference_interval
from evenhand.metrics.quantiles import normal_cdf, t_quantile
from evenhand.metrics.types import Interval

SKEW_STRETCH = 4.0
"""How much the skewness of the tasks' sums moves the end on the long side out."""
PAIR_SKEW_STRETCH = 1.0
"""The same for the skewness of single pairs; the larger of the two counts."""
PASS_SCALE = 1.0
"""The largest difference between a pass and a failure."""

STUDENT = "Student's t on task means"
SKEWED = "Student's t on task means, wider on the long side of skewed deltas"
FEW_CHANGES = "Student's t on task means, widened by one added win and one added loss (Bonett and Price)"
ALIKE = "every task alike: as far as what went unseen could move the mean"
INVERTED = "sign-flip test by task, inverted"

ENUMERATED = 14
"""Up to this many tasks every sign pattern is looked at."""
LARGEST_SUM = 500_000
"""Tasks times pairs up to which the distribution of a random sum is added up exactly; beyond, its normal limit."""


@dataclass(frozen=True, kw_only=True)
class DeltaIntervals:
    """The intervals of one delta; None where there is none."""

    mean: Interval | None
    """The headline interval of the mean."""
    median: Interval | None
    """The headline interval of the median."""
    mean_bootstrap: Interval | None
    """The percentile bootstrap by task, for the mean; None when fewer than two tasks have the delta."""
    median_bootstrap: Interval | None
    """The same for the median."""
    mean_reason: str | None = None
    """Why there is no headline interval of the mean."""
    median_reason: str | None = None
    """Why there is no headline interval of the median."""


def delta_intervals(
    pairs: Pairs,
    deltas: Mapping[str, DeltaSummary],
    *,
    confidence_level: float,
    n_resamples: int,
    seed: int,
    scales: Mapping[str, float],
) -> dict[str, DeltaIntervals]:
    """All intervals of every delta. `scales` names the deltas whose largest possible size is known."""
    totals = {name: pairs.by_task(name) for name in deltas}
    drawn = bootstrap_ends(totals, confidence_level=confidence_level, n_resamples=n_resamples, seed=seed)
    return {
        name: _intervals(one, deltas[name], drawn.get(name), confidence_level, scales.get(name))
        for name, one in totals.items()
    }


def _intervals(
    totals: TaskTotals, delta: DeltaSummary, drawn: BootstrapEnds | None, level: float, scale: float | None
) -> DeltaIntervals:
    if drawn is None or delta.mean is None or delta.median is None:
        found = "no task has it" if not len(totals) else "one task has it, and says nothing about others"
        return DeltaIntervals(
            mean=None,
            median=None,
            mean_bootstrap=None,
            median_bootstrap=None,
            mean_reason=found,
            median_reason=found,
        )
    mean, mean_reason = mean_by_task(totals, delta.mean, level=level, scale=scale)
    median, median_reason = median_by_task(totals, delta.median, level=level)
    return DeltaIntervals(
        mean=mean,
        median=median,
        mean_bootstrap=_interval(delta.mean, drawn.mean, level, drawn.method, totals),
        median_bootstrap=_interval(delta.median, drawn.median, level, drawn.method, totals),
        mean_reason=mean_reason,
        median_reason=median_reason,
    )


def mean_by_task(
    totals: TaskTotals, mean: float, *, level: float, scale: float | None
) -> tuple[Interval | None, str | None]:
    """The headline interval of a mean over at least two tasks, or why there is none."""
    residuals = totals.sums - totals.sizes * mean
    size = float(np.abs(totals.sums).max())
    alike = float(np.abs(residuals).max()) <= 1e-12 * size
    if alike and scale is None:
        return None, "every task has the same mean delta: no spread to estimate from"
    error = clustered_error(GroupTotals(sums=totals.sums, sizes=totals.sizes))
    half = 0.0 if alike else t_quantile((1.0 + level) / 2.0, error.df) * error.standard_error
    if scale is None:
        stretch = _stretch(residuals, totals.values - mean)
        ends = mean - half * (1.0 + stretch[0]), mean + half * (1.0 + stretch[1])
        method = SKEWED if any(stretch) else STUDENT
    else:
        ends, method = _bounded_ends(totals, mean, half, level, scale)
    found = _interval(mean, ends, level, method, totals)
    return replace(found, standard_error=error.standard_error), None


def _stretch(by_task: Floats, by_pair: Floats) -> Ends:
    """By which share of its length the lower and the upper half of an interval are longer, for skewed deltas."""
    root = float(len(by_task)) ** 0.5
    lean = (SKEW_STRETCH * skewness(by_task) / root, PAIR_SKEW_STRETCH * skewness(by_pair) / root)
    return max(0.0, -lean[0], -lean[1]), max(0.0, *lean)


def _bounded_ends(
    totals: TaskTotals, mean: float, half: float, level: float, scale: float
) -> tuple[Ends, str]:
    """Student's ends, widened to those of `compare` where few tasks differ, within the scale."""
    lower, upper, method = mean - half, mean + half, STUDENT
    compared = difference_interval(totals.means, None, level, scale=scale)
    if compared.method != "t":
        # Centred on the mean over pairs, which is another than that of the tasks when repeats are unequal.
        shift = mean - compared.value
        lower = min(lower, compared.ci_lower + shift)
        upper = max(upper, compared.ci_upper + shift)
        method = ALIKE if compared.method == "constant" else FEW_CHANGES
    return (max(lower, -scale), min(upper, scale)), method


def skewness(residuals: Floats) -> float:
    """The third moment of deviations over the cube of their spread; 0 when there is none."""
    largest = float(np.abs(residuals).max())
    if largest == 0.0:
        return 0.0
    scaled = residuals / largest  # tiny residuals would vanish when cubed
    squares = scaled * scaled
    spread = math.sqrt(float(squares.mean()))
    return float((squares * scaled).mean()) / spread**3


def median_by_task(totals: TaskTotals, median: float, *, level: float) -> tuple[Interval | None, str | None]:
    """The headline interval of a median over at least two tasks, or why there is none."""
    tail = (1.0 - level) / 2.0
    if 0.5 ** len(totals) > tail:
        needed = next(tasks for tasks in range(2, 64) if 0.5**tasks <= tail)
        return None, f"{len(totals)} tasks are too few for a median: its interval needs at least {needed}"
    if totals.ranked[0][0] == totals.ranked[0][-1]:
        return None, "every pair has the same delta: no spread to estimate from"
    values, codes = totals.ranked
    lower = _lowest_not_rejected(values, codes, len(totals), tail)
    upper = -_lowest_not_rejected(-values[::-1], codes[::-1], len(totals), tail)
    return _interval(median, (lower, upper), level, INVERTED, totals), None


def _lowest_not_rejected(ranked: Floats, codes: Integers, tasks: int, tail: float) -> float:
    """The smallest of ascending values that the test does not put below the median, by bisection."""
    sizes = np.bincount(codes, minlength=tasks)
    low, high = 0, len(ranked) - 1
    while low < high:
        middle = (low + high) // 2
        at_most = int(np.searchsorted(ranked, ranked[middle], side="right"))
        above = sizes - 2 * np.bincount(codes[:at_most], minlength=tasks)
        if flip_tail(above) > tail:
            high = middle
        else:
            low = middle + 1
    return float(ranked[low])


def flip_tail(terms: Integers) -> float:
    """The share of sign patterns of whole numbers whose sum is at least the one observed."""
    sizes, observed = np.abs(terms[terms != 0]), int(terms.sum())
    total = int(sizes.sum())
    if len(sizes) <= ENUMERATED:
        sums = np.zeros(1, np.int64)
        for size in sizes.tolist():
            sums = np.concatenate((sums - size, sums + size))
        return float((sums >= observed).mean())
    if len(sizes) * total <= LARGEST_SUM:
        # Σ ±u = 2·Σ(chosen u) − Σu: how likely each sum of chosen terms is, one term after the other.
        shares = np.zeros(total + 1)
        shares[0] = 1.0
        for size in sizes.tolist():
            moved = np.zeros_like(shares)
            moved[size:] = shares[:-size]
            shares = (shares + moved) / 2.0
        return float(shares[(observed + total + 1) // 2 :].sum())
    # With the half step of a lattice sum.
    return normal_cdf(-(observed - 1.0) / float(np.sqrt((sizes.astype(np.float64) ** 2).sum())))


def _interval(value: float, ends: Ends, level: float, method: str, totals: TaskTotals) -> Interval:
    return Interval(
        value=value,
        # An estimate lies within its own interval, whatever rounding did to the ends.
        ci_lower=min(ends[0], value) + 0.0,
        ci_upper=max(ends[1], value) + 0.0,
        confidence_level=level,
        method=method,
        n=len(totals.values),
        n_groups=len(totals),
    )
