"""How low the mean of bounded values can be: a one-sided bound that holds for small samples and rare, large drops.

Student's t learns the spread from the sample. Where one problem in twenty falls by the whole scale and the others hardly
move, one sample in thirteen of 50 problems holds no fall at all and looks certain. Gaffke's bound (2005, "Three test
statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable", Mathematical Methods of
Statistics 14:451) adds one value at the lower end of the scale, the one that was not seen, and weighs all values by
random shares of 1 (W ~ Dirichlet(1, …, 1)). The p-value of "the mean is at most μ" is P(Σ W_i x_i ≤ μ). For values of 0
and 1 that is Clopper and Pearson's exact test, for values that are all alike the rule of three; for large samples it is
the z-test. That it keeps its level for every bounded distribution is a conjecture without a known counterexample (Phan,
Thomas and Learned-Miller 2021, "Towards practical mean bounds for small samples", ICML); docs/metrics.md has our tables.

With groups the values are the groups' sums: a group of the largest size seen may be lost as a whole.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.metrics.clusters import GroupTotals
from evenhand.metrics.quantiles import normal_quantile
from evenhand.metrics.types import FloatArray

_CELLS = 1 << 21  # of the table of values × frequencies, at a time
_MOST_NODES = 4096
_STEPS = 100
_PRECISION = 1e-9


@dataclass(frozen=True)
class Weighted:
    """Sums and sizes of groups (of single values: sizes of 1), how often each occurs, and the value that was not seen."""

    sums: FloatArray
    sizes: FloatArray
    counts: FloatArray


def with_lowest(totals: GroupTotals, lowest: float) -> Weighted:
    """The groups, and one more of the largest size whose values are all `lowest`."""
    pairs, counts = np.unique(np.column_stack((totals.sums, totals.sizes)), axis=0, return_counts=True)
    largest = float(totals.sizes.max())
    return Weighted(
        sums=np.append(pairs[:, 0], lowest * largest),
        sizes=np.append(pairs[:, 1], largest),
        counts=np.append(counts, 1).astype(np.float64),
    )


def p_mean_at_most(values: Weighted, target: float) -> float:
    """The p-value of "the true mean is at most `target`"."""
    apart = values.sums - target * values.sizes
    # Sums of decimals that should be equal differ in the last bits; a value at the target adds nothing.
    apart[np.abs(apart) <= 1e-13 * (np.abs(values.sums) + abs(target) * values.sizes)] = 0.0
    if apart[-1] >= 0.0:
        return 0.0  # no mean can be below the end of the scale
    if apart.max() <= 0.0:
        return 1.0
    apart = apart / float(np.abs(apart).max())
    if float((values.counts * apart).sum()) > 0.0:
        return _p_negative(apart, values.counts)
    return 1.0 - _p_negative(-apart, values.counts)


def lower_mean_bound(values: Weighted, alpha: float) -> float:
    """The mean whose p-value is `alpha`: all lower ones are ruled out at that level."""
    low, high = float(values.sums[-1] / values.sizes[-1]), float((values.sums / values.sizes).max())
    if high <= low:
        return low
    wanted = normal_quantile(alpha)

    def height(target: float) -> float:
        p = p_mean_at_most(values, target)
        return normal_quantile(min(max(p, 1e-300), 1.0 - 1e-16)) - wanted

    # Regula falsi on normal quantiles, which are nearly a line; the end that stays is halved (Illinois). It starts around
    # the bound of the normal distribution.
    guess, error = _normal_guess(values, wanted)
    for side in (-0.5, 0.5):
        near = guess + side * error
        if low < near < high:
            low, high = (near, high) if height(near) < 0.0 else (low, near)
    at_low, at_high, kept = height(low), height(high), 0
    for _ in range(_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            middle = (low + high) / 2.0
        at = height(middle)
        if abs(at) < 1e-9 or high - low <= 1e-13 * max(1.0, abs(high)):
            return middle
        if at < 0.0:
            low, at_low = middle, at
            at_high = at_high / 2.0 if kept < 0 else at_high
            kept = -1
        else:
            high, at_high = middle, at
            at_low = at_low / 2.0 if kept > 0 else at_low
            kept = 1
    return (low + high) / 2.0


def _normal_guess(values: Weighted, wanted: float) -> tuple[float, float]:
    total = float((values.counts * values.sizes).sum())
    mean = float((values.counts * values.sums).sum()) / total
    error = float((values.counts * (values.sums - mean * values.sizes) ** 2).sum()) ** 0.5 / total
    return mean + wanted * error, error


def _p_negative(c: FloatArray, counts: FloatArray) -> float:
    """P(Σ c_i E_i < 0) for independent exponentials E_i: shares of 1 are exponentials over their sum.

    The generating function is Π (1 − s c_i)^−1; the integral of −1/s times it along the line through its saddle point
    between 1/min c and 0 gives the probability to many digits, however small it is (Lugannani and Rice 1980, Advances in
    Applied Probability 12:475, for the line).
    """
    low, high = 1.0 / float(c.min()), 0.0
    for _ in range(40):
        s = (low + high) / 2.0
        if float((counts * c / (1.0 - s * c)).sum()) - 1.0 / s < 0.0:
            low = s
        else:
            high = s
    s = (low + high) / 2.0
    parts = c / (1.0 - s * c)
    at_saddle = float(np.exp(-(counts * np.log1p(-s * c)).sum()))
    width = (float((counts * parts**2).sum()) + 1.0 / s**2) ** -0.5
    shares = float((counts * np.abs(parts)).sum()) ** 2 / float((counts * parts**2).sum())
    reach = 12.0 if shares < 200.0 else 4.0  # few large parts: the tails are those of a power
    before, nodes = None, 32
    while True:
        step = reach / nodes
        u = (np.arange(nodes) + 0.5) * step
        heights = _along(s, width * np.sinh(u), parts, counts)
        found = -float((heights * width * np.cosh(u)).sum()) * step / np.pi * at_saddle
        if before is not None and abs(found - before) <= _PRECISION * abs(found):
            break
        if nodes >= _MOST_NODES:
            break
        before, nodes = found, 2 * nodes
    return min(1.0, max(0.0, found))


def _along(s: float, heights: FloatArray, parts: FloatArray, counts: FloatArray) -> FloatArray:
    """The real part of Π (1 − i·t·part)^−count / (s + i·t) at the heights t, relative to its value at 0 without 1/s."""
    once, often = parts[counts == 1.0], counts > 1.0
    found = np.empty(heights.size)
    rows = max(1, _CELLS // parts.size)
    for start in range(0, heights.size, rows):
        t = heights[start : start + rows, None]
        log = (np.log(1.0 - 1j * t * parts[often]) * counts[often]).sum(axis=1)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # far out the product overflows, and its inverse is 0
            product = np.multiply.reduce(1.0 - 1j * t * once, axis=1) * (s + 1j * t[:, 0])
            inverse = (np.exp(-log) / product).real
        found[start : start + rows] = np.where(np.isfinite(inverse), inverse, 0.0)
    return found
