"""The distribution of a sum whose terms change sign at random."""

from dataclasses import dataclass

import numpy as np

from evenhand.metrics.types import Alternative, FloatArray

ENUMERATED = 16
"""Up to this many terms that are not 0, all 2^m sign patterns are looked at."""

_TIE = 1e-9  # sums closer than this share of the total size are equal: floats of 0.9 − 0.8 are not all alike
_CELLS = 1 << 20


@dataclass(frozen=True)
class Flipped:
    """A p-value and how it came about."""

    p_value: float
    how: str
    monte_carlo_error: float | None = None


def flip_p_value(terms: FloatArray, *, side: Alternative, n_resamples: int, seed: int) -> Flipped:
    """The share of sign patterns of `terms` whose sum is at least as extreme as the one observed."""
    sizes = np.sort(np.abs(terms[terms != 0.0]))
    observed = float(np.sort(terms).sum())
    slack = _TIE * float(sizes.sum())
    if sizes.size <= ENUMERATED:
        share = _share(_all_sums(sizes), observed, slack, side)
        return Flipped(p_value=share, how="exact")
    hits = 0.0
    rng = np.random.default_rng(seed)
    rows = max(1, _CELLS // sizes.size)
    for start in range(0, n_resamples, rows):
        count = min(rows, n_resamples - start)
        signs = rng.integers(0, 2, size=(count, sizes.size), dtype=np.int8) * 2 - 1
        hits += _share(signs @ sizes, observed, slack, side) * count
    p = (round(hits) + 1) / (n_resamples + 1)
    return Flipped(p_value=p, how="monte carlo", monte_carlo_error=(p * (1.0 - p) / n_resamples) ** 0.5)


def _all_sums(sizes: FloatArray) -> FloatArray:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums - size, sums + size))
    return sums


def _share(sums: FloatArray, observed: float, slack: float, side: Alternative) -> float:
    if side == "greater":
        return float((sums >= observed - slack).mean())
    if side == "less":
        return float((sums <= observed + slack).mean())
    return float((np.abs(sums) >= abs(observed) - slack).mean())
