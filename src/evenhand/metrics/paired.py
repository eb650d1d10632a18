"""Two arms on the same problems: the difference with its interval, and tests of no difference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evenhand.metrics.bootstrap import bootstrap_ci
from evenhand.metrics.checks import (
    checked_alternative,
    checked_choice,
    checked_count,
    checked_groups,
    checked_level,
    checked_values,
    same_length,
)
from evenhand.metrics.differences import difference_interval, non_inferiority
from evenhand.metrics.effects import cohens_d_paired, matched_odds_ratio, win_rate
from evenhand.metrics.intervals import mean_interval
from evenhand.metrics.quantiles import binomial_cdf, binomial_pmf
from evenhand.metrics.signflip import flip_p_value
from evenhand.metrics.types import Alternative, FloatArray, IntArray, Interval, TestResult

__all__ = [
    "cohens_d_paired",
    "difference_interval",
    "matched_odds_ratio",
    "mcnemar",
    "non_inferiority",
    "paired_difference",
    "permutation_test",
    "sign_test",
    "win_rate",
]

DIFFERENCE_METHODS = ("auto", "t", "normal", "percentile", "bca")


def paired_difference(
    base: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    statistic: str = "mean",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    method: str = "auto",
    scale: float | None = 1.0,
) -> Interval:
    """Candidate minus base, pair by pair: the mean (or median) of the differences with its interval.

    `groups` names the problem of each pair; pairs of one problem are not independent, and the interval is
    clustered by problem. `auto` is, for the median (of the differences), the percentile bootstrap; for the
    mean, `difference_interval`, which explains `scale`. Swapping the arms negates the result.
    """
    first = checked_values(base, name="base", at_least=2)
    second = checked_values(candidate, name="candidate")
    same_length(first, second, names=("base", "candidate"))
    level = checked_level(confidence_level)
    kind = checked_choice(method, DIFFERENCE_METHODS, name="method")
    checked_choice(statistic, ("mean", "median"), name="statistic")
    if statistic == "median" and kind in ("t", "normal"):
        raise ValueError(f"method: {kind!r} is for the mean, not the median")
    codes = None if groups is None else checked_groups(groups, n=first.size)
    differences = second - first
    direction = _direction(differences, codes)
    turned = direction * differences if direction else differences
    if statistic == "median" or kind in ("percentile", "bca"):
        found = bootstrap_ci(turned, level, n_resamples, seed, statistic=statistic, method=kind, groups=codes)
    elif kind == "auto":
        found = difference_interval(turned, codes, level, scale=scale)
    else:
        found = mean_interval(turned, groups=codes, confidence_level=level, method=kind)
    return _turned_back(found, direction)


def _direction(differences: FloatArray, codes: IntArray | None) -> int:
    """1 or −1, opposite for swapped arms; 0 when swapping changes nothing.

    Differences are looked at in this direction only, so that swapping the arms negates the result exactly,
    resampling noise and rounding included.
    """
    parts = [differences] if codes is None else [np.bincount(codes, weights=differences), differences]
    for part in parts:
        ahead, behind = np.sort(part), np.sort(-part)
        unlike = np.flatnonzero(ahead != behind)
        if unlike.size:
            return 1 if ahead[unlike[0]] > behind[unlike[0]] else -1
    return 0


def _turned_back(found: Interval, direction: int) -> Interval:
    if direction > 0:
        return found
    if direction < 0:
        return replace(found, value=-found.value, ci_lower=-found.ci_upper, ci_upper=-found.ci_lower)
    half = (found.ci_upper - found.ci_lower) / 2.0
    return replace(found, value=0.0, ci_lower=-half, ci_upper=half)


def mcnemar(
    losses: int, wins: int, *, mid_p: bool = False, alternative: Alternative = "two-sided"
) -> TestResult:
    """The exact McNemar test: among discordant pairs, is a win as likely as a loss?

    Wins given their sum are Binomial(losses + wins, ½) when nothing differs (McNemar 1947, Psychometrika
    12:153); two-sided is twice the smaller tail. `mid_p` counts the observed table half: less conservative,
    and close to its level (Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91).
    `greater` asks whether the candidate is better. The statistic is the number of wins.
    """
    losses = checked_count(losses, name="losses")
    wins = checked_count(wins, name="wins")
    side = checked_alternative(alternative)
    return _sign_result(losses, wins, mid_p=mid_p, side=side, n=losses + wins)


def sign_test(
    differences: npt.ArrayLike, *, mid_p: bool = False, alternative: Alternative = "two-sided"
) -> TestResult:
    """Are positive differences as likely as negative ones? Zeros are left out.

    The statistic is the number of positive differences, Binomial(positive + negative, ½) when nothing differs
    (Dixon and Mood 1946, JASA 41:557).
    """
    values = checked_values(differences, name="differences")
    side = checked_alternative(alternative)
    return _sign_result(
        int((values < 0).sum()), int((values > 0).sum()), mid_p=mid_p, side=side, n=values.size
    )


def _sign_result(losses: int, wins: int, *, mid_p: bool, side: Alternative, n: int) -> TestResult:
    trials = losses + wins
    half = 0.5 * binomial_pmf(wins, trials, 0.5) if mid_p and trials else 0.0
    less = binomial_cdf(wins, trials, 0.5) - half
    greater = binomial_cdf(losses, trials, 0.5) - half
    p_value = {"less": less, "greater": greater, "two-sided": 2.0 * min(less, greater)}[side]
    return TestResult(
        statistic=float(wins),
        p_value=min(1.0, p_value),
        method="mid_p" if mid_p else "exact",
        alternative=side,
        n=n,
    )


def permutation_test(
    differences: npt.ArrayLike,
    *,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> TestResult:
    """The sign-flip test of a mean difference: were the arms alike, each pair could as well be swapped.

    The statistic is the mean difference; the p-value is the share of the sign patterns that give a mean at
    least as far from 0 (Fisher 1935, The Design of Experiments, section 21). With `groups` whole problems
    are flipped, since repeats of one problem are not exchangeable one by one. Few problems, and differences
    on a lattice (passes and failures, marks), are counted exactly; many other differences in the limit of
    infinitely many patterns; the rest is sampled with the seed, counting the observed pattern too (Phipson
    and Smyth 2010, SAGMB 9:39), and `monte_carlo_error` says how far the p-value may be off.
    """
    values = checked_values(differences, name="differences")
    side = checked_alternative(alternative)
    n_resamples = checked_count(n_resamples, name="n_resamples", at_least=1)
    seed = checked_count(seed, name="seed")
    order = np.argsort(values, kind="stable")
    totals = values[order]
    if groups is not None:
        codes = checked_groups(groups, n=values.size)[order]
        totals = np.bincount(codes, weights=totals).astype(np.float64)
    flipped = flip_p_value(totals, side=side, n_resamples=n_resamples, seed=seed)
    return TestResult(
        statistic=float(np.sort(values).mean()),
        p_value=min(1.0, flipped.p_value),
        method=f"permutation/{flipped.how}",
        alternative=side,
        n=values.size,
        monte_carlo_error=flipped.monte_carlo_error,
    )
