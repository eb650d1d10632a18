"""The interval of a mean from kept sums: the same as `mean_interval` gives, at the same cost for any number of scores.

Groups (the scores of one problem) of the same size and the same number of passes are one entry: their count, the sum
of their totals and the sum of the squares of these. There are as many entries as there are different sizes and passes,
however many groups there are.

One difference is left: these sums do not tell whether scores other than 0 and 1 are lopsided, so those get
Student's t where `mean_interval` would take the interval of a proportion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenhand.metrics.clusters import participants, weighted_satterthwaite
from evenhand.metrics.intervals import (
    FEW_FAILURES,
    NEARLY_SYMMETRIC,
    constant_ends,
    proportion_ends,
    proportion_interval,
)
from evenhand.metrics.quantiles import t_quantile
from evenhand.metrics.types import FloatArray, Interval


@dataclass(frozen=True)
class KeptGroups:
    """Groups that are alike."""

    size: int
    """How many scores each of them has."""
    passes: int
    """How many of these are 1."""
    count: int
    """How many such groups there are."""
    total: Fraction
    """The sum of the groups' sums."""
    squares: Fraction
    """The sum of the squares of the groups' sums."""


def kept_interval(
    groups: Sequence[KeptGroups], *, binary: bool, confidence_level: float = 0.95
) -> Interval | None:
    """The mean with its interval; None where the data give none.

    That is one value other than 0 and 1, a single group, or scores that are all alike and not from 0 to 1.

    `binary`: all scores are 0 or 1.
    """
    present = [group for group in groups if group.count > 0]
    n = sum(group.size * group.count for group in present)
    if n == 0:
        return None
    if all(group.size == 1 for group in present):
        return _independent(present, n, binary, confidence_level)
    if sum(group.count for group in present) < 2:
        return None
    return _clustered(present, n, binary, confidence_level)


def _independent(groups: Sequence[KeptGroups], n: int, binary: bool, level: float) -> Interval | None:
    total = sum((group.total for group in groups), Fraction(0))
    if binary:
        return proportion_interval(int(total), n, confidence_level=level)
    if n < 2:
        return None
    squares = sum((group.squares for group in groups), Fraction(0))
    variance = float((squares - total * total / n) / (n - 1))
    error = (variance / n) ** 0.5
    if _no_spread(error, float(total / n)):
        return _constant(float(total / n), n, level, "constant", n, None)
    return _around(float(total / n), error, t_quantile((1.0 + level) / 2.0, n - 1), level, "t", n, None)


def _no_spread(error: float, mean: float) -> bool:
    # Sums of floats that are alike may differ in their last bits.
    return error <= 1e-12 * (abs(mean) + 1.0)


def _constant(
    mean: float, units: float, level: float, method: str, n: int, clusters: int | None
) -> Interval | None:
    if not 0.0 <= mean <= 1.0:
        return None
    lower, upper = constant_ends(mean, units, (1.0 - level) / 2.0, low=0.0, high=1.0)
    return Interval(
        value=mean,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method=method,
        n=n,
        n_groups=clusters,
    )


def _clustered(groups: Sequence[KeptGroups], n: int, binary: bool, level: float) -> Interval | None:
    mean = sum((group.total for group in groups), Fraction(0)) / n
    counts = np.array([group.count for group in groups], dtype=np.float64)
    sizes = np.array([group.size for group in groups], dtype=np.float64)
    # Σ r² with r = T − m·mean, exactly, group size by group size.
    squared = np.array(
        [float(g.squares - 2 * g.size * mean * g.total + g.size**2 * mean**2 * g.count) for g in groups]
    )
    leverage = 1.0 / (1.0 - sizes / n)
    error = float((leverage * squared).sum() / n**2) ** 0.5
    clusters = int(counts.sum())
    if binary:
        passes = np.array([group.passes for group in groups], dtype=np.float64)
        skewed = _relative_skewness(passes, sizes, counts, float(mean)) > NEARLY_SYMMETRIC
        if skewed:
            return _effective_proportion(passes, sizes, counts, error, level)
    elif _no_spread(error, float(mean)):
        units = n**2 / float((counts * sizes**2).sum())
        return _constant(float(mean), units, level, "clustered_constant", n, clusters)
    df = weighted_satterthwaite(sizes, leverage, counts)
    return _around(float(mean), error, t_quantile((1.0 + level) / 2.0, df), level, "clustered_t", n, clusters)


def _relative_skewness(passes: FloatArray, sizes: FloatArray, counts: FloatArray, mean: float) -> float:
    residuals = passes - sizes * mean
    clusters = float(counts.sum())
    variance = float((counts * residuals**2).sum()) / clusters
    if variance <= 1e-24 * float((counts * sizes**2).sum()) / clusters:
        return float("inf")
    third = float((counts * residuals**3).sum()) / clusters
    return float(abs(third) / variance**1.5 / clusters**0.5)


def _effective_proportion(
    passes: FloatArray, sizes: FloatArray, counts: FloatArray, error: float, level: float
) -> Interval:
    n = float((counts * sizes).sum())
    p = float((counts * passes).sum()) / n
    largest = float((counts * sizes**2).sum()) / n
    independent = p * (1.0 - p) / n
    effect = largest
    if independent > 0.0:
        ratio = min(max(error**2 / independent, 1.0), largest)
        seen = min(participants(passes, counts), participants(sizes - passes, counts))
        effect = (seen * ratio + largest) / (seen + 1.0)
    trials = n / effect
    few = min(trials * p, trials - trials * p) <= FEW_FAILURES
    kind = "clopper_pearson" if few else "wilson"
    lower, upper = proportion_ends(trials * p, trials, level, kind)
    return Interval(
        value=p,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method=f"clustered_{kind}",
        n=int(n),
        n_groups=int(counts.sum()),
        standard_error=error,
    )


def _around(
    mean: float, error: float, factor: float, level: float, method: str, n: int, clusters: int | None
) -> Interval:
    return Interval(
        value=mean,
        ci_lower=mean - factor * error,
        ci_upper=mean + factor * error,
        confidence_level=level,
        method=method,
        n=n,
        n_groups=clusters,
        standard_error=error,
    )
