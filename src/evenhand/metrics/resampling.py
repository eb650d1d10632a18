"""Bootstrap distributions without drawing the samples, wherever that is possible.

Everything here takes sorted, canonical input: the same values in another order give the same bits.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenhand.metrics.inversion import Inverted, bisected, mean_distribution, ratio_cdf
from evenhand.metrics.types import FloatArray, IntArray

FEW_VALUES = 16
"""With at most this many different values the counts of a resample are drawn instead of its members."""

_CELLS = 1 << 19  # resampled values held at a time: 4 MB of indices and 4 MB of values


class Resampled(Protocol):
    """The bootstrap distribution of a statistic."""

    @property
    def how(self) -> str:
        """How it was made."""

    def quantile(self, p: float) -> float:
        """Where a share p of the resamples lies below."""

    def below(self, value: float) -> float:
        """The share of resamples below `value`, those equal to it counting half."""


@dataclass(frozen=True)
class Draws:
    """A finite number of resamples."""

    values: FloatArray
    how: str

    def quantile(self, p: float) -> float:
        return float(np.quantile(self.values, p))

    def below(self, value: float) -> float:
        return float((self.values < value).mean() + (self.values == value).mean() / 2.0)


@dataclass(frozen=True)
class Limit:
    """Infinitely many resamples of a mean."""

    standard: Inverted
    mean: float
    scale: float
    how: str = "inversion"

    def quantile(self, p: float) -> float:
        return self.mean + self.scale * self.standard.quantile(p)

    def below(self, value: float) -> float:
        return self.standard.cdf((value - self.mean) / self.scale)


@dataclass(frozen=True)
class RatioLimit:
    """Infinitely many resamples of groups of unequal sizes, for their overall mean."""

    sums: FloatArray
    sizes: FloatArray
    centre: float
    spread: float
    how: str = "groups/inversion"

    def quantile(self, p: float) -> float:
        low, high = self.centre - 12.0 * self.spread, self.centre + 12.0 * self.spread
        return bisected(lambda ratio: self.below(ratio) - p, low, high, halvings=30)

    def below(self, value: float) -> float:
        found = ratio_cdf(self.sums, self.sizes, value)
        # Far out, where the ratio leaves no spread to invert, every resample is on one side.
        return float(value > self.centre) if found is None else found


def resampled_means(values: FloatArray, *, n_resamples: int, rng: np.random.Generator) -> Resampled:
    """Means of resamples of the sorted `values`.

    A resample of few different values is its counts, and those are binomial or multinomial: one draw for
    each of them instead of n. Of many different values the limit of infinitely many resamples is computed;
    where that is not possible (few values, or a lattice among them), resamples are drawn.
    """
    n = values.size
    starts = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    distinct, counts = values[starts], np.diff(starts, append=n)
    if distinct.size == 1:
        return Draws(values=distinct, how="constant")
    if distinct.size == 2:
        upper = rng.binomial(n, counts[1] / n, size=n_resamples)
        return Draws(values=distinct[0] + (distinct[1] - distinct[0]) * (upper / n), how="binomial")
    if distinct.size <= FEW_VALUES:
        drawn = rng.multinomial(n, counts / n, size=n_resamples)
        return Draws(values=drawn @ distinct / n, how="multinomial")
    limit = mean_limit(distinct, counts / n, n)
    return limit or Draws(values=_indexed_means(values, n_resamples, rng), how="resampling")


def mean_limit(distinct: FloatArray, shares: FloatArray, n: int) -> Limit | None:
    """The bootstrap distribution of the mean of n draws, or None where it has steps."""
    standard = mean_distribution(distinct, shares, n)
    if standard is None:
        return None
    mean = float((shares * distinct).sum())
    return Limit(standard, mean, (float((shares * (distinct - mean) ** 2).sum()) / n) ** 0.5)


def _indexed_means(values: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    n = values.size
    out = np.empty(n_resamples)
    rows = max(1, _CELLS // n)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        out[start:stop] = values[rng.integers(0, n, size=(stop - start, n))].mean(axis=1)
    return out


def resampled_medians(values: FloatArray, *, n_resamples: int, rng: np.random.Generator) -> Resampled:
    """Medians of resamples of the sorted `values`, one or two draws each.

    A member of a resample is x₍⌊nU⌋₎ with U uniform, so its k-th smallest is the value at ⌊nU₍ₖ₎⌋, and the
    k-th of n uniforms is Beta(k, n + 1 − k). The neighbour below U₍ₖ₊₁₎ is U₍ₖ₊₁₎ times a Beta(k, 1).
    """
    n = values.size
    k = n // 2
    upper = rng.beta(k + 1, n - k, size=n_resamples)
    above = values[np.minimum((n * upper).astype(np.int64), n - 1)]
    if n % 2:
        return Draws(values=above, how="order statistic")
    lower = upper * rng.beta(k, 1, size=n_resamples)
    below = values[np.minimum((n * lower).astype(np.int64), n - 1)]
    return Draws(values=(below + above) / 2.0, how="order statistic")


def resampled_ratios(
    sums: FloatArray, sizes: FloatArray, *, n_resamples: int, rng: np.random.Generator
) -> Resampled:
    """Overall means of resamples of whole groups: Σ sums / Σ sizes over the groups drawn."""
    groups = sums.size
    if (sizes == sizes[0]).all():
        equal = resampled_means(np.sort(sums / sizes[0]), n_resamples=n_resamples, rng=rng)
        return _Renamed(equal)
    centre = float(sums.sum() / sizes.sum())
    spread = float(((sums - centre * sizes) ** 2).sum()) ** 0.5 / float(sizes.sum())
    if all(ratio_cdf(sums, sizes, centre + away * spread) is not None for away in (-3.0, 0.0, 3.0)):
        return RatioLimit(sums, sizes, centre, spread)
    out = np.empty(n_resamples)
    rows = max(1, _CELLS // groups)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        drawn = rng.integers(0, groups, size=(stop - start, groups))
        out[start:stop] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return Draws(values=out, how="groups/resampling")


@dataclass(frozen=True)
class _Renamed:
    """Groups of equal sizes are single values; only the name says otherwise."""

    inner: Resampled

    @property
    def how(self) -> str:
        return f"groups/{self.inner.how}"

    def quantile(self, p: float) -> float:
        return self.inner.quantile(p)

    def below(self, value: float) -> float:
        return self.inner.below(value)


def resampled_group_medians(
    values: FloatArray, codes: IntArray, *, n_resamples: int, rng: np.random.Generator
) -> Resampled:
    """Medians of resamples of whole groups; `values` are sorted and `codes` say which group each belongs to.

    A value counts as often as its group was drawn, so a resample is a weighting of the sorted values.
    """
    groups = int(codes.max()) + 1
    out = np.empty(n_resamples)
    rows = max(1, _CELLS // values.size)
    for start in range(0, n_resamples, rows):
        count = min(rows, n_resamples - start)
        drawn = rng.integers(0, groups, size=(count, groups)) + groups * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * groups).reshape(count, groups)
        reached = np.cumsum(times[:, codes], axis=1)
        total = reached[:, -1:]
        below = values[(reached > (total - 1) // 2).argmax(axis=1)]
        above = values[(reached > total // 2).argmax(axis=1)]
        out[start : start + count] = (below + above) / 2.0
    return Draws(values=out, how="groups/resampling")
