"""The distribution of a sum whose terms change sign at random: exact, in the limit, or by Monte Carlo."""

from dataclasses import dataclass

import numpy as np

from evenhand.metrics.inversion import flip_distribution
from evenhand.metrics.quantiles import binomial_cdf
from evenhand.metrics.types import Alternative, FloatArray, IntArray

ENUMERATED = 18
"""Up to this many terms that are not 0, all 2^m sign patterns are looked at."""
LARGEST_LATTICE = 1_000_000
"""Terms that are whole multiples of a unit are summed exactly while their sum is at most this many units."""
LARGEST_WORK = 20_000_000
"""Cosines that an exact sum may take: distinct sizes times units. Token counts would take billions."""
SMALLEST_P = 1e-10
"""What the inversion can tell from 0; smaller p-values are reported as this."""

_TIE = 1e-9  # sums closer than this share of the total size are equal: floats of 0.9 − 0.8 are not all alike
_PARTS = 60  # the smallest term may be this many units
_CELLS = 1 << 20


@dataclass(frozen=True)
class Flipped:
    """A p-value and how it came about."""

    p_value: float
    how: str
    monte_carlo_error: float | None = None


def flip_p_value(terms: FloatArray, *, side: Alternative, n_resamples: int, seed: int) -> Flipped:
    """The share of sign patterns of `terms` whose sum is at least as extreme as the one observed.

    Few terms are enumerated. Terms on a lattice (differences of passes and failures, of marks) are summed
    exactly by a discrete Fourier transform of the product of cosines. Otherwise the same product, taken at a
    few frequencies, gives the limit of infinitely many sign patterns; where that has steps, patterns are
    drawn.
    """
    sizes = np.sort(np.abs(terms[terms != 0.0]))
    gains, losses = np.sort(terms[terms > 0.0]), np.sort(-terms[terms < 0.0])
    observed = float(gains.sum() - losses.sum())  # in halves, so that swapping the arms negates it exactly
    slack = _TIE * float(sizes.sum())
    if sizes.size <= ENUMERATED:
        sums = _all_sums(sizes)
        shares = np.full(sums.size, 1.0 / sums.size)
        return Flipped(p_value=_tail(sums, shares, observed, slack, side), how="exact")
    units = _on_lattice(sizes)
    if units is not None and units[0] == units[-1]:
        return Flipped(p_value=_sign_tail(observed / float(sizes.mean()), sizes.size, side), how="exact")
    if units is not None:
        scale = float(sizes.sum()) / float(units.sum())
        sums, shares = _lattice_sums(units)
        return Flipped(p_value=_tail(sums * scale, shares, observed, slack, side), how="exact")
    limit = flip_distribution(sizes)
    if limit is not None:
        z = observed / float((sizes**2).sum()) ** 0.5
        tail = {"greater": limit.cdf(-z), "less": limit.cdf(z), "two-sided": 2.0 * limit.cdf(-abs(z))}[side]
        return Flipped(p_value=min(1.0, max(tail, SMALLEST_P)), how="inversion")
    return _drawn(sizes, observed, slack, side, n_resamples, seed)


def _drawn(
    sizes: FloatArray, observed: float, slack: float, side: Alternative, n_resamples: int, seed: int
) -> Flipped:
    hits = 0
    rng = np.random.default_rng(seed)
    rows = max(1, _CELLS // sizes.size)
    for start in range(0, n_resamples, rows):
        count = min(rows, n_resamples - start)
        signs = rng.integers(0, 2, size=(count, sizes.size), dtype=np.int8) * 2 - 1
        sums = (signs * sizes).sum(axis=1)
        hits += round(_tail(sums, np.ones(count), observed, slack, side))
    p = (hits + 1) / (n_resamples + 1)
    return Flipped(p_value=p, how="monte carlo", monte_carlo_error=(p * (1.0 - p) / n_resamples) ** 0.5)


def _sign_tail(balance: float, count: int, side: Alternative) -> float:
    # Terms of one size: the number of positive ones is binomial, and its tails keep their digits when tiny.
    positive = round((count + balance) / 2.0)
    less, greater = binomial_cdf(positive, count, 0.5), binomial_cdf(count - positive, count, 0.5)
    tail = {"less": less, "greater": greater, "two-sided": 2.0 * min(less, greater)}[side]
    return min(1.0, tail)


def _all_sums(sizes: FloatArray) -> FloatArray:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums - size, sums + size))
    return sums


def _on_lattice(sizes: FloatArray) -> IntArray | None:
    """The terms as whole multiples of one unit; None when there is no unit coarse enough."""
    for parts in range(1, _PARTS + 1):
        ratio = sizes * (parts / float(sizes[0]))
        if float(ratio.sum()) > LARGEST_LATTICE:
            return None
        whole = np.rint(ratio)
        if float(np.abs(ratio - whole).max()) <= 1e-7 * float(whole.max()):
            affordable = np.unique(whole).size * float(whole.sum()) <= LARGEST_WORK
            return whole.astype(np.int64) if affordable else None
    return None


def _lattice_sums(units: IntArray) -> tuple[FloatArray, FloatArray]:
    # Σ ±u = 2·Σ(chosen u) − Σu, and the chosen sum lies in 0..S: its probabilities are the inverse transform
    # of Π (1 + e^{−2πi j u/(S+1)})/2 = Π e^{−πi j u/(S+1)} cos(π j u/(S+1)).
    total = int(units.sum())
    size = total + 1
    frequencies = np.arange(size // 2 + 1)
    distinct, counts = np.unique(units, return_counts=True)
    product = np.ones(frequencies.size)
    for unit, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        product *= np.cos(np.pi * (frequencies * unit % (2 * size)) / size) ** count
    phase = np.exp(-1j * np.pi * (frequencies * total % (2 * size)) / size)
    shares = np.fft.irfft(product * phase, n=size)
    sums: FloatArray = 2.0 * np.arange(size, dtype=np.float64) - total
    return sums, np.maximum(shares, 0.0)


def _tail(sums: FloatArray, shares: FloatArray, observed: float, slack: float, side: Alternative) -> float:
    if side == "greater":
        counted = sums >= observed - slack
    elif side == "less":
        counted = sums <= observed + slack
    else:
        counted = np.abs(sums) >= abs(observed) - slack
    return float(shares[counted].sum())
