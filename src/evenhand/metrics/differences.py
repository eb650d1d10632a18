"""The mean of paired differences: its interval, and whether a drop is smaller than a margin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics.bounded import lower_mean_bound, p_mean_at_most, with_lowest
from evenhand.metrics.checks import (
    checked_groups,
    checked_level,
    checked_positive,
    checked_values,
    useful_groups,
)
from evenhand.metrics.clusters import (
    GroupTotals,
    clustered_error,
    group_totals,
    independent_units,
    relative_skewness,
)
from evenhand.metrics.intervals import constant_ends, mean_interval
from evenhand.metrics.quantiles import normal_cdf, normal_quantile, t_cdf, t_quantile
from evenhand.metrics.types import FloatArray, IntArray, Interval, NonInferiority

MOST_SKEWED = 0.03
"""Skewness over 6√n beyond this is counted as this: Johnson's correction is a first-order one."""
FEW_CHANGES = 4
"""Up to this many problems that differ at all, Student's t is not to be trusted."""


@dataclass(frozen=True)
class _Centre:
    """Where the interval is centred and how it spreads; df None stands for the normal distribution."""

    value: float
    centre: float
    error: float
    df: float | None
    method: str
    n_groups: int | None
    units: float | None = None
    """Set when the differences, all within the scale, are all alike: how many independent ones there are."""

    def quantile(self, p: float) -> float:
        return normal_quantile(p) if self.df is None else t_quantile(p, self.df)

    def cdf(self, x: float) -> float:
        return normal_cdf(x) if self.df is None else t_cdf(x, self.df)


def seen_scale(*scores: FloatArray) -> float:
    """The largest difference that scores like these could have: 1, or as far as they reach beyond 0 and 1."""
    seen = np.concatenate(scores)
    return float(max(1.0, seen.max()) - min(0.0, seen.min()))


def difference_interval(
    differences: FloatArray, codes: IntArray | None, confidence_level: float, *, scale: float | None = 1.0
) -> Interval:
    """The mean of checked differences with the interval that suits them.

    `scale` is the largest difference that could be, 1 for scores from 0 to 1 and None where nobody knows.
    Student's t, clustered when there are groups. Differences of −1, 0 and 1 on that scale (two arms of passes
    and failures), and any differences within it that are nearly all 0, get one win and one loss added first: the
    adjusted Wald interval of Bonett and Price (2012, Journal of Educational and Behavioral Statistics
    37:479), (w̃ − l̃) ± z·√((w̃ + l̃ − (w̃ − l̃)²)/(n + 2)) with w̃ = (w + 1)/(n + 2) and l̃ = (l + 1)/(n + 2).
    Without it twenty equal pairs would have an interval of width 0. With groups a whole group of the size that a random
    value sees is won and another one lost: what was not seen may be a whole group too. They are added where groups change as a whole only, and where at most four problems differ at all. Other differences within
    the scale that are all alike get `constant_ends`. Those beyond it have an interval of width 0. The ends of differences
    within the scale stay within it.
    """
    found = _centre(differences, codes, scale)
    if found.units is not None and scale is not None:
        lower, upper = constant_ends(
            found.value, found.units, (1.0 - confidence_level) / 2.0, low=-scale, high=scale
        )
        return Interval(
            value=found.value,
            ci_lower=lower,
            ci_upper=upper,
            confidence_level=confidence_level,
            method=found.method,
            n=differences.size,
            n_groups=found.n_groups,
        )
    half = found.quantile((1.0 + confidence_level) / 2.0) * found.error
    bounded = scale is not None and float(np.abs(differences).max()) <= scale
    limit = scale if scale is not None and bounded else float("inf")
    return Interval(
        value=found.value,
        ci_lower=max(found.centre - half, -limit),
        ci_upper=min(found.centre + half, limit),
        confidence_level=confidence_level,
        method=found.method,
        n=differences.size,
        n_groups=found.n_groups,
        standard_error=found.error,
    )


def unpaired_difference(
    base: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    base_groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    candidate_groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
    seed: int = 0,
) -> Interval:
    """Candidate minus base when the arms saw different problems. Pair by problem wherever that is possible.

    Each arm gets its own `mean_interval`; with estimates p and ends l, u the difference lies between
    d − √((p₂ − l₂)² + (u₁ − p₁)²) and d + √((u₂ − p₂)² + (p₁ − l₁)²) (Newcombe 1998, Statistics in Medicine
    17:873, method 10; Zou and Donner 2008, Statistics in Medicine 27:1693).
    """
    level = checked_level(confidence_level)
    arms = []
    for name, scores, groups in (
        ("base", base, base_groups),
        ("candidate", candidate, candidate_groups),
    ):
        values = checked_values(scores, name=name, at_least=2)
        codes = None if groups is None else checked_groups(groups, n=values.size, name=f"{name}_groups")
        arms.append(mean_interval(values, groups=codes, confidence_level=level, method=method, seed=seed))
    first, second = arms
    value = second.value - first.value
    return Interval(
        value=value,
        ci_lower=value - math.hypot(second.value - second.ci_lower, first.ci_upper - first.value),
        ci_upper=value + math.hypot(second.ci_upper - second.value, first.value - first.ci_lower),
        confidence_level=level,
        method=f"newcombe({first.method}, {second.method})",
        n=first.n + second.n,
    )


def non_inferiority(
    differences: npt.ArrayLike,
    margin: float,
    *,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    confidence_level: float = 0.95,
    scale: float | None = 1.0,
) -> NonInferiority:
    """Whether the candidate is no worse than the base by more than `margin` points.

    Established when the one-sided lower bound of the mean difference (candidate − base) lies above −margin;
    the p-value is that of the hypothesis that the true difference is −margin or less (Wellek 2010, Testing
    Statistical Hypotheses of Equivalence and Noninferiority, chapter 2). `scale` is the largest difference that could
    be (differences beyond it widen it): the bound is Gaffke's, which counts one difference more, the largest drop, because it may not have
    been seen (see `bounded`); with groups, a whole group that is lost. Where nobody knows the scale (None) it is Student's t, clustered
    when there are groups; where large drops are few (negative skewness) corrected for them (Johnson 1978, JASA 73:536), never
    in the candidate's favour.
    """
    values = checked_values(differences, name="differences", at_least=2)
    margin = checked_positive(margin, name="margin", zero_allowed=True)
    level = checked_level(confidence_level)
    codes = None if groups is None else useful_groups(checked_groups(groups, n=values.size))
    if scale is None:
        return _student_non_inferiority(values, codes, margin, level)
    weighted = with_lowest(_totals(values, codes), -max(scale, float(np.abs(values).max())))
    lower = lower_mean_bound(weighted, 1.0 - level)
    return NonInferiority(
        established=lower > -margin,
        margin=margin,
        value=_mean(values),
        ci_lower=lower,
        confidence_level=level,
        p_value=p_mean_at_most(weighted, -margin),
        method="gaffke" if codes is None else "clustered_gaffke",
        n=values.size,
    )


def p_at_most(
    values: FloatArray, target: float, *, groups: Sequence[Any] | npt.NDArray[Any] | None, scale: float
) -> float:
    """The p-value of "the true mean of these differences is at most `target`", by the same bound."""
    codes = None if groups is None else useful_groups(checked_groups(groups, n=values.size))
    return p_mean_at_most(
        with_lowest(_totals(values, codes), -max(scale, float(np.abs(values).max()))), target
    )


def _totals(values: FloatArray, codes: IntArray | None) -> GroupTotals:
    if codes is None:
        return GroupTotals(sums=values, sizes=np.ones(values.size))
    return group_totals(values, codes)


def _student_non_inferiority(
    values: FloatArray, codes: IntArray | None, margin: float, level: float
) -> NonInferiority:
    found = _centre(values, codes, None)
    distance = found.centre + margin
    lower, p_value = found.centre, 0.0 if distance > 0.0 else 1.0
    if found.error > 0.0:
        pull = _skewness(values, found) if found.method == "t" else 0.0
        lower = found.centre - _unpulled(found.quantile(level), pull) * found.error
        p_value = found.cdf(-_pulled(distance / found.error, pull))
    return NonInferiority(
        established=lower > -margin,
        margin=margin,
        value=found.value,
        ci_lower=lower,
        confidence_level=level,
        p_value=p_value,
        method=found.method,
        n=values.size,
    )


def _skewness(values: FloatArray, found: _Centre) -> float:
    """Skewness over 6√n where it is negative (few large drops), else 0."""
    residuals = np.sort(values - found.value)
    spread = float((residuals**2).mean())
    skew = float((residuals**3).mean()) / spread**1.5
    return float(max(-MOST_SKEWED, min(0.0, skew / (6.0 * values.size**0.5))))


def _pulled(t: float, pull: float) -> float:
    """Johnson's t + pull·(2t² + 1), which stops where it would fall again."""
    at = min(t, -1.0 / (4.0 * pull)) if pull < 0.0 else t
    return at + pull * (2.0 * at * at + 1.0)


def _unpulled(t: float, pull: float) -> float:
    """The t whose corrected value is this one."""
    if pull == 0.0:
        return t
    room = 1.0 - 8.0 * pull * (pull - t)
    return float((-1.0 + max(room, 0.0) ** 0.5) / (4.0 * pull))


def _centre(values: FloatArray, codes: IntArray | None, scale: float | None) -> _Centre:
    mean = _mean(values)
    if codes is None or useful_groups(codes) is None:
        return _independent_centre(values, mean, scale)
    return _clustered_centre(values, codes, mean, scale)


def _mean(values: FloatArray) -> float:
    # The two halves are added apart, so that swapping the arms negates the mean to the last bit.
    gains, losses = np.sort(values[values > 0.0]), np.sort(-values[values < 0.0])
    return float(gains.sum() - losses.sum()) / values.size


def _bounded(values: FloatArray, scale: float) -> tuple[bool, bool]:
    """Whether all differences lie within the scale, and whether all are 0 or as large as it allows."""
    size = np.abs(values)
    return bool(size.max() <= scale), bool(((size == 0.0) | (size == scale)).all())


def _alike(totals: GroupTotals) -> bool:
    return relative_skewness(totals) == float("inf")


def _independent_centre(values: FloatArray, mean: float, scale: float | None) -> _Centre:
    n = values.size
    largest = scale or 0.0
    bounded, ternary = _bounded(values, scale) if scale else (False, False)
    changed = int((values != 0.0).sum())
    if ternary or (bounded and changed <= FEW_CHANGES and 2 * changed < n):
        centre = mean * n / (n + 2)
        squares = float(np.sort(values**2).sum())
        error = (((squares + 2.0 * largest**2) / (n + 2) - centre**2) / (n + 2)) ** 0.5
        return _Centre(mean, centre, error, None, "bonett_price", None)
    if bounded and _alike(GroupTotals(sums=values, sizes=np.ones(n))):
        return _Centre(mean, mean, 0.0, None, "constant", None, units=float(n))
    spread = float((np.sort(np.abs(values - mean)) ** 2).sum())
    return _Centre(mean, mean, (spread / (n - 1) / n) ** 0.5, n - 1.0, "t", None)


def _clustered_centre(values: FloatArray, codes: IntArray, mean: float, scale: float | None) -> _Centre:
    totals = group_totals(values, codes)
    groups = totals.sums.size
    largest = scale or 0.0
    bounded, ternary = _bounded(values, scale) if scale else (False, False)
    changed = int((totals.sums != 0.0).sum())
    # Groups that are won, lost or unchanged as a whole are passes and failures themselves.
    whole = bounded and _bounded(totals.sums / totals.sizes, largest)[1]
    few = bounded and changed <= FEW_CHANGES and (ternary or 2 * changed < groups)
    if not (whole or few):
        if bounded and _alike(totals):
            units = independent_units(totals.sizes)
            return _Centre(mean, mean, 0.0, None, "clustered_constant", groups, units=units)
        error = clustered_error(totals)
        return _Centre(mean, mean, error.standard_error, error.df, "clustered_t", groups)
    n = values.size
    size = n / independent_units(totals.sizes)
    extended = GroupTotals(
        sums=np.concatenate((totals.sums, [largest * size, -largest * size])),
        sizes=np.concatenate((totals.sizes, [size, size])),
    )
    error = clustered_error(extended)
    centre = mean * n / (n + 2 * size)
    return _Centre(mean, centre, error.standard_error, error.df, "clustered_bonett_price", groups)
