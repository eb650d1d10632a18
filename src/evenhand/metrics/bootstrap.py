"""Bootstrap intervals for means and medians, of single values and of whole groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics.checks import (
    checked_choice,
    checked_count,
    checked_groups,
    checked_level,
    checked_values,
)
from evenhand.metrics.clusters import group_totals
from evenhand.metrics.quantiles import normal_cdf, normal_quantile
from evenhand.metrics.resampling import (
    Resampled,
    resampled_group_medians,
    resampled_means,
    resampled_medians,
    resampled_ratios,
)
from evenhand.metrics.types import FloatArray, IntArray, Interval

METHODS = ("auto", "percentile", "bca")
STATISTICS = ("mean", "median")


def bootstrap_ci(
    scores: npt.ArrayLike,
    confidence: float = 0.95,
    n_bootstrap: int = 10_000,
    seed: int = 0,
    *,
    statistic: str = "mean",
    method: str = "auto",
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> Interval:
    """The mean or median of `scores` with a bootstrap interval; with `groups`, whole groups are resampled.

    `percentile` (what `auto` means here) takes the (1 ∓ confidence)/2 quantiles of the resampled statistic
    (Efron and Tibshirani 1993, chapter 13); `bca` corrects them for bias and skewness (chapter 14, equations
    14.10, 14.14 and 14.15). The result's `method` ends in how the resamples were made: drawn as counts
    (`binomial`, `multinomial`), one by one (`resampling`), or as the limit of infinitely many (`inversion`).
    The same seed gives the same bits, and the order of the scores does not matter.
    """
    values = checked_values(scores, name="scores", at_least=2)
    level = checked_level(confidence, name="confidence")
    n_resamples = checked_count(n_bootstrap, name="n_bootstrap", at_least=1)
    checked_choice(statistic, STATISTICS, name="statistic")
    kind = "percentile" if checked_choice(method, METHODS, name="method") == "auto" else method
    rng = np.random.default_rng(checked_count(seed, name="seed"))
    if groups is None:
        sample: _Sample = _Singles(values, statistic)
    else:
        sample = _Groups(values, checked_groups(groups, n=values.size), statistic)
    resampled = sample.resample(n_resamples, rng)
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    if kind == "bca":
        tails = _bca_tails(tails, resampled.below(sample.estimate), sample.jackknife())
    return Interval(
        value=sample.estimate,
        ci_lower=resampled.quantile(tails[0]),
        ci_upper=resampled.quantile(tails[1]),
        confidence_level=level,
        method=f"{kind}/{resampled.how}",
        n=values.size,
        n_groups=sample.n_groups,
    )


def _bca_tails(tails: tuple[float, float], below: float, jackknife: FloatArray) -> tuple[float, float]:
    if not 0.0 < below < 1.0:
        return tails
    bias = normal_quantile(below)
    pull = jackknife.mean() - jackknife
    spread = float((pull**2).sum()) ** 1.5
    acceleration = float((pull**3).sum()) / (6.0 * spread) if spread > 0.0 else 0.0

    def corrected(tail: float) -> float:
        z = bias + normal_quantile(tail)
        return normal_cdf(bias + z / (1.0 - acceleration * z))

    return corrected(tails[0]), corrected(tails[1])


class _Singles:
    """Independent values."""

    n_groups: int | None = None

    def __init__(self, values: FloatArray, statistic: str) -> None:
        self.values = np.sort(values)
        self.statistic = statistic
        self.estimate = float(self.values.mean() if statistic == "mean" else np.median(self.values))

    def resample(self, n_resamples: int, rng: np.random.Generator) -> Resampled:
        drawn = resampled_means if self.statistic == "mean" else resampled_medians
        return drawn(self.values, n_resamples=n_resamples, rng=rng)

    def jackknife(self) -> FloatArray:
        n = self.values.size
        if self.statistic == "mean":
            return np.asarray((self.values.sum() - self.values) / (n - 1))
        return np.array([_median_without(self.values, index) for index in range(n)])


class _Groups:
    """Independent groups of values that may depend on each other."""

    def __init__(self, values: FloatArray, codes: IntArray, statistic: str) -> None:
        self.statistic = statistic
        if statistic == "mean":
            self.totals = group_totals(values, codes)
            self.estimate = self.totals.mean
            self.n_groups: int | None = self.totals.sums.size
        else:
            order = np.lexsort((values, codes))
            edges = np.flatnonzero(np.diff(codes[order])) + 1
            self.members = sorted(np.split(values[order], edges), key=lambda group: group.tolist())
            self.estimate = float(np.median(values))
            self.n_groups = len(self.members)

    def resample(self, n_resamples: int, rng: np.random.Generator) -> Resampled:
        if self.statistic == "mean":
            return resampled_ratios(self.totals.sums, self.totals.sizes, n_resamples=n_resamples, rng=rng)
        together = np.concatenate(self.members)
        owners = np.repeat(np.arange(len(self.members)), [group.size for group in self.members])
        order = np.argsort(together, kind="stable")
        return resampled_group_medians(together[order], owners[order], n_resamples=n_resamples, rng=rng)

    def jackknife(self) -> FloatArray:
        if self.statistic == "mean":
            sums, sizes = self.totals.sums, self.totals.sizes
            return np.asarray((sums.sum() - sums) / (sizes.sum() - sizes))
        return np.array(
            [
                np.median(np.concatenate(self.members[:index] + self.members[index + 1 :]))
                for index in range(len(self.members))
            ]
        )


_Sample = _Singles | _Groups


def _median_without(ordered: FloatArray, index: int) -> float:
    n = ordered.size - 1
    low, high = (n - 1) // 2, n // 2
    return float((ordered[low + (low >= index)] + ordered[high + (high >= index)]) / 2.0)
