"""Values that come in groups: totals per group, and the standard error that respects them."""

from dataclasses import dataclass

import numpy as np

from evenhand.metrics.types import FloatArray, IntArray


@dataclass(frozen=True)
class GroupTotals:
    """Sum and size of every group, in an order that depends on the values alone."""

    sums: FloatArray
    sizes: FloatArray

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / self.sizes.sum())


@dataclass(frozen=True)
class ClusteredError:
    """A standard error with the degrees of freedom that belong to it."""

    standard_error: float
    df: float


def group_totals(values: FloatArray, codes: IntArray) -> GroupTotals:
    """Totals per group. Values are added in ascending order, so the order of the input changes no bit."""
    order = np.argsort(values, kind="stable")
    sums: FloatArray = np.bincount(codes[order], weights=values[order]).astype(np.float64)
    sizes = np.bincount(codes).astype(np.float64)
    canonical = np.lexsort((sizes, sums))
    return GroupTotals(sums=sums[canonical], sizes=sizes[canonical])


def clustered_error(totals: GroupTotals) -> ClusteredError:
    """Standard error of the overall mean when only groups are independent, and its degrees of freedom.

    The variance is Σ_g r_g² / (1 − m_g/n) / n² with r_g the sum of residuals in group g of size m_g: the
    clustered standard error of Miller (2024, arXiv 2411.00640) with the bias correction of Bell
    and McCaffrey (2002), which for equal sizes is the factor G/(G − 1). The degrees of freedom are their
    Satterthwaite approximation, (tr K)²/tr K², for group totals whose spread grows with the group's size;
    for equal sizes they are G − 1, and fewer when a few groups dominate.
    """
    sizes = totals.sizes
    n = sizes.sum()
    residuals = totals.sums - sizes * (totals.sums.sum() / n)
    leverage = 1.0 / (1.0 - sizes / n)
    variance = float((leverage * residuals**2).sum() / n**2)
    return ClusteredError(standard_error=variance**0.5, df=_satterthwaite(sizes, leverage))


def design_effect(totals: GroupTotals, *, at_least: float) -> float:
    """How many values carry the information of one independent pass or failure, for values from 0 to 1.

    The clustered variance of the mean over p(1 − p)/n, at most the mean group size that a random value sees.
    An estimate from few failures is itself uncertain, so it is drawn towards that most cautious value by one
    group; the failures are counted as (Σf)²/Σf² over the groups' shortfalls f, which is the number of failed
    groups when each fails whole, and likewise the successes.
    """
    n = float(totals.sizes.sum())
    most = float((totals.sizes**2).sum()) / n
    spread = totals.mean * (1.0 - totals.mean) / n
    if spread <= 0.0:
        return most
    ratio = clustered_error(totals).standard_error ** 2 / spread
    ratio = min(max(ratio, at_least), most)
    ones = np.ones(totals.sums.size)
    seen = min(participants(totals.sums, ones), participants(totals.sizes - totals.sums, ones))
    return (seen * ratio + most) / (seen + 1.0)


def independent_units(sizes: FloatArray) -> float:
    """How many groups of one size carry as much as these: (Σm)²/Σm², the number of groups when all are alike."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def participants(parts: FloatArray, counts: FloatArray) -> float:
    """(Σf)²/Σf²: how many parts share the sum, when `counts` says how often each part occurs."""
    scaled = parts / float(parts.max())  # tiny parts would vanish when squared
    return float((counts * scaled).sum() ** 2 / (counts * scaled**2).sum())


def relative_skewness(totals: GroupTotals) -> float:
    """|skewness| of the groups' residual sums over √G: how far their mean is from normal; infinite if constant."""
    residuals = totals.sums - totals.sizes * totals.mean
    largest = float(np.abs(residuals).max())
    if largest <= 1e-12 * float(np.abs(totals.sums).max() + totals.sizes.max()):
        return float("inf")
    scaled = residuals / largest
    variance = float((scaled**2).mean())
    return float(abs((scaled**3).mean()) / variance**1.5 / scaled.size**0.5)


def _satterthwaite(sizes: FloatArray, leverage: FloatArray) -> float:
    return weighted_satterthwaite(sizes, leverage, np.ones_like(sizes))


def weighted_satterthwaite(sizes: FloatArray, leverage: FloatArray, counts: FloatArray) -> float:
    """(tr K)²/tr K² where `counts` says how many groups have each size."""
    # K = D^½ MᵀAM D^½ with D = diag(sizes²), A = diag(leverage), M = I − sizes 1ᵀ/n. MᵀAM is a diagonal plus
    # two rank-one terms, so both traces are sums over groups.
    n = (counts * sizes).sum()
    b = leverage * sizes / n
    c = float((counts * leverage * sizes**2).sum() / n**2)
    weight = sizes**2
    diagonal = leverage - 2.0 * b + c
    trace = float((counts * weight * diagonal).sum())
    # Σ_ij w_i w_j (δ_ij a_i − b_i − b_j + c)²
    w = float((counts * weight).sum())
    wb = float((counts * weight * b).sum())
    wbb = float((counts * weight * b**2).sum())
    off = 2.0 * w * wbb + 2.0 * wb**2 + c**2 * w**2 - 4.0 * c * w * wb
    on = float((counts * weight**2 * (diagonal**2 - (c - 2.0 * b) ** 2)).sum())
    return trace**2 / (off + on)
