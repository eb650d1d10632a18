"""Intervals for means and proportions; the default picks the method by the data and says which."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evenhand.metrics.bootstrap import bootstrap_ci
from evenhand.metrics.checks import (
    checked_choice,
    checked_count,
    checked_groups,
    checked_level,
    checked_values,
    is_binary,
    useful_groups,
)
from evenhand.metrics.clusters import (
    GroupTotals,
    clustered_error,
    design_effect,
    group_totals,
    independent_units,
    relative_skewness,
)
from evenhand.metrics.quantiles import beta_quantile, normal_quantile, t_quantile
from evenhand.metrics.types import FloatArray, IntArray, Interval

PROPORTION_METHODS = ("auto", "wilson", "clopper_pearson", "beta_binomial")
MEAN_METHODS = ("auto", "t", "normal", "wilson", "clopper_pearson", "beta_binomial", "percentile", "bca")
FEW_FAILURES = 4
"""Up to this many failures (or successes) the default is Clopper–Pearson: Wilson covers too seldom there."""

NEARLY_SYMMETRIC = 0.2
"""Student's t serves while the skewness of the values (or of the group sums) over √n is at most this."""


def proportion_interval(
    successes: int, n: int, *, confidence_level: float = 0.95, method: str = "auto"
) -> Interval:
    """The share of successes among `n` independent trials.

    `wilson` inverts the score test: (p̂ + z²/2n ± z√(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n) (Wilson 1927, JASA
    22:209). `clopper_pearson` inverts the exact test and never covers less than promised: quantiles of
    Beta(x, n−x+1) and Beta(x+1, n−x) (Clopper and Pearson 1934, Biometrika 26:404). `beta_binomial` is the
    posterior under Jeffreys' prior Beta(½, ½), with the end at 0 or 1 when there is no success or no failure
    (Brown, Cai and DasGupta 2001, Statistical Science 16:101). `auto` is Clopper–Pearson for few failures
    or few successes and Wilson otherwise.
    """
    n = checked_count(n, name="n", at_least=1)
    x = checked_count(successes, name="successes", at_most=n)
    level = checked_level(confidence_level)
    kind = checked_choice(method, PROPORTION_METHODS, name="method")
    if kind == "auto":
        kind = "clopper_pearson" if min(x, n - x) <= FEW_FAILURES else "wilson"
    lower, upper = proportion_ends(x, n, level, kind)
    p = x / n
    return Interval(
        value=p,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method=kind,
        n=n,
        standard_error=(p * (1.0 - p) / n) ** 0.5,
    )


def proportion_ends(x: float, n: float, level: float, method: str) -> tuple[float, float]:
    """The two ends for `x` successes in `n` trials, either of which may be an effective, fractional number."""
    tail = (1.0 - level) / 2.0
    if method == "wilson":
        z = normal_quantile(1.0 - tail)
        p = x / n
        centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n)
        half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)) ** 0.5 / (1.0 + z * z / n)
        return (0.0 if x == 0 else centre - half), (1.0 if x == n else centre + half)
    if method == "clopper_pearson":
        lower = 0.0 if x == 0 else beta_quantile(tail, x, n - x + 1.0)
        upper = 1.0 if x == n else beta_quantile(1.0 - tail, x + 1.0, n - x)
        return lower, upper
    lower = 0.0 if x == 0 else beta_quantile(tail, x + 0.5, n - x + 0.5)
    upper = 1.0 if x == n else beta_quantile(1.0 - tail, x + 0.5, n - x + 0.5)
    return lower, upper


class NoSpread(ValueError):
    """Scores that are all alike, on a scale whose ends are unknown, say nothing about how far off their mean may be."""


def constant_ends(value: float, units: float, tail: float, *, low: float, high: float) -> tuple[float, float]:
    """The two ends for `units` independent values from `low` to `high` that all came out as `value`.

    With probability above `tail` nothing else is seen while everything else has a share of up to
    1 − tail^(1/units); that share may lie anywhere in the range. At 0 and 1 this is Clopper–Pearson.
    """
    seen = tail ** (1.0 / units)
    return value * seen + low * (1.0 - seen), value * seen + high * (1.0 - seen)


def mean_interval(
    scores: npt.ArrayLike,
    *,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The mean of `scores` with the interval that suits them.

    `auto`: zeros and ones without groups get `proportion_interval`; other values Student's t,
    x̄ ± t(n−1)·s/√n; with groups, Student's t with the clustered standard error and its degrees of freedom
    (see `clusters`). These symmetric intervals fail where the mean hangs on few values or few groups: when
    all scores lie from 0 to 1 and the skewness of the values (or group sums) over √n exceeds 0.2, the
    interval is that of a proportion for the effective number of independent trials, n over the design effect.
    Scores (or group means) that are all alike have no spread: they get `constant_ends` for a scale that reaches
    from `bounds[0]` to `bounds[1]`, and `NoSpread` is raised when they lie outside it.
    Scores within `bounds` have an interval within them. `percentile` and `bca` are the bootstrap of `bootstrap_ci`.
    """
    values = checked_values(scores, name="scores")
    level = checked_level(confidence_level)
    kind = checked_choice(method, MEAN_METHODS, name="method")
    codes = None if groups is None else useful_groups(checked_groups(groups, n=values.size))
    if kind in ("percentile", "bca"):
        return bootstrap_ci(values, level, seed=seed, method=kind, groups=codes)
    if codes is not None:
        return _within(_clustered(values, codes, level, kind, bounds), values, bounds)
    values = np.sort(values)
    if kind in PROPORTION_METHODS and is_binary(values):
        return proportion_interval(int(values.sum()), values.size, confidence_level=level, method=kind)
    if kind not in ("auto", "t", "normal"):
        raise ValueError(f"method: {kind!r} is for scores of 0 and 1 only")
    if kind == "auto" and values.size > 1:
        singles = GroupTotals(sums=values, sizes=np.ones(values.size))
        if _is_constant(singles):
            return _constant(singles, level, bounds, grouped=False)
        if _is_lopsided(values, singles):
            return _effective_proportion(singles, level, at_least=0.0, grouped=False)
    return _within(_independent(values, level, "t" if kind == "auto" else kind), values, bounds)


def _within(found: Interval, values: FloatArray, bounds: tuple[float, float]) -> Interval:
    """The interval cut to the scale, when all values lie on it: no mean can be outside."""
    low, high = bounds
    if float(values.min()) < low or float(values.max()) > high:
        return found
    return replace(found, ci_lower=max(found.ci_lower, low), ci_upper=min(found.ci_upper, high))


def _is_constant(totals: GroupTotals) -> bool:
    return relative_skewness(totals) == float("inf")


def _constant(totals: GroupTotals, level: float, bounds: tuple[float, float], *, grouped: bool) -> Interval:
    low, high = bounds
    mean = totals.mean
    if not low <= mean <= high:
        raise NoSpread(f"scores: all are {mean:g}, so there is no spread to estimate an interval from")
    lower, upper = constant_ends(
        mean, independent_units(totals.sizes), (1.0 - level) / 2.0, low=low, high=high
    )
    return Interval(
        value=mean,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method="clustered_constant" if grouped else "constant",
        n=int(totals.sizes.sum()),
        n_groups=totals.sums.size if grouped else None,
    )


def _is_lopsided(values: FloatArray, totals: GroupTotals) -> bool:
    within = float(values.min()) >= 0.0 and float(values.max()) <= 1.0
    return within and relative_skewness(totals) > NEARLY_SYMMETRIC


def _independent(values: FloatArray, level: float, kind: str) -> Interval:
    if values.size < 2:
        raise ValueError("scores: at least 2 values are needed unless they are 0 or 1")
    error = float(values.std(ddof=1)) / values.size**0.5
    tail = (1.0 + level) / 2.0
    half = error * (t_quantile(tail, values.size - 1) if kind == "t" else normal_quantile(tail))
    mean = float(values.mean())
    return Interval(
        value=mean,
        ci_lower=mean - half,
        ci_upper=mean + half,
        confidence_level=level,
        method=kind,
        n=values.size,
        standard_error=error,
    )


def _clustered(
    values: FloatArray, codes: IntArray, level: float, kind: str, bounds: tuple[float, float]
) -> Interval:
    if kind not in ("auto", "t", "normal"):
        raise ValueError(f"method: {kind!r} takes no groups")
    totals = group_totals(values, codes)
    if kind == "auto" and not is_binary(values) and _is_constant(totals):
        return _constant(totals, level, bounds, grouped=True)
    if kind == "auto" and _is_lopsided(values, totals):
        at_least = 1.0 if is_binary(values) else 0.0
        return _effective_proportion(totals, level, at_least=at_least, grouped=True)
    error = clustered_error(totals)
    tail = (1.0 + level) / 2.0
    factor = normal_quantile(tail) if kind == "normal" else t_quantile(tail, error.df)
    half = factor * error.standard_error
    return Interval(
        value=totals.mean,
        ci_lower=totals.mean - half,
        ci_upper=totals.mean + half,
        confidence_level=level,
        method="clustered_normal" if kind == "normal" else "clustered_t",
        n=values.size,
        n_groups=totals.sums.size,
        standard_error=error.standard_error,
    )


def _effective_proportion(totals: GroupTotals, level: float, *, at_least: float, grouped: bool) -> Interval:
    # As many independent passes and failures as carry the same information: n over the design effect (Kish
    # 1965, Survey Sampling; Korn and Graubard 1998, Survey Methodology 24:193). A symmetric interval fails
    # here, because what matters are few failures, in few groups.
    n = float(totals.sizes.sum())
    p = min(1.0, max(0.0, totals.mean))
    trials = n / design_effect(totals, at_least=at_least)
    few = trials * min(p, 1.0 - p) <= FEW_FAILURES
    kind = "clopper_pearson" if few else "wilson"
    lower, upper = proportion_ends(p * trials, trials, level, kind)
    return Interval(
        value=p,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method=f"clustered_{kind}" if grouped else f"effective_{kind}",
        n=int(n),
        n_groups=totals.sums.size if grouped else None,
        standard_error=clustered_error(totals).standard_error,
    )
