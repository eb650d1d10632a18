"""Drawing bootstrap distributions without drawing the samples, wherever that is possible.

Everything here takes sorted, canonical input: the same values in another order give the same bits.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.metrics.types import FloatArray

FEW_VALUES = 16
"""With at most this many different values the counts of a resample are drawn instead of its members."""

_CELLS = 1 << 19  # resampled values held at a time: 4 MB of indices and 4 MB of values


@dataclass(frozen=True)
class Draws:
    """A bootstrap distribution and how it was drawn."""

    values: FloatArray
    how: str


def resampled_means(values: FloatArray, *, n_resamples: int, rng: np.random.Generator) -> Draws:
    """Means of resamples of the sorted `values`.

    A resample of few different values is its counts, and those are binomial or multinomial: one draw for
    each of them instead of n.
    """
    distinct, counts = np.unique(values, return_counts=True)
    n = values.size
    if distinct.size == 1:
        return Draws(values=np.full(n_resamples, distinct[0]), how="constant")
    if distinct.size == 2:
        upper = rng.binomial(n, counts[1] / n, size=n_resamples)
        return Draws(values=distinct[0] + (distinct[1] - distinct[0]) * (upper / n), how="binomial")
    if distinct.size <= FEW_VALUES:
        drawn = rng.multinomial(n, counts / n, size=n_resamples)
        return Draws(values=drawn @ distinct / n, how="multinomial")
    return Draws(values=_indexed_means(values, n_resamples, rng), how="resampling")


def _indexed_means(values: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    n = values.size
    out = np.empty(n_resamples)
    rows = max(1, _CELLS // n)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        out[start:stop] = values[rng.integers(0, n, size=(stop - start, n))].mean(axis=1)
    return out


def resampled_medians(values: FloatArray, *, n_resamples: int, rng: np.random.Generator) -> Draws:
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
) -> Draws:
    """Overall means of resamples of whole groups: Σ sums / Σ sizes over the groups drawn."""
    groups = sums.size
    out = np.empty(n_resamples)
    rows = max(1, _CELLS // groups)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        drawn = rng.integers(0, groups, size=(stop - start, groups))
        out[start:stop] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return Draws(values=out, how="groups")


def resampled_group_medians(
    members: list[FloatArray], *, n_resamples: int, rng: np.random.Generator
) -> Draws:
    """Medians of resamples of whole groups."""
    groups = len(members)
    out = np.empty(n_resamples)
    for position in range(n_resamples):
        drawn = rng.integers(0, groups, size=groups)
        out[position] = np.median(np.concatenate([members[index] for index in drawn]))
    return Draws(values=out, how="groups")
