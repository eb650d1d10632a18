"""Losses and wins among n pairs: the largest drop that they leave possible, by exact arithmetic.

The drop is P(loss) − P(win). How often the sides differ at all, ψ = P(loss) + P(win), is not known, and the usual
intervals put an estimate in its place; where few pairs differ their one-sided error is far above its level (240 equal
pairs "rule out" a drop of one point that goes unseen in 9 % of cases). Here pairs of counts are ordered by the adjusted
Wald statistic of Bonett and Price, and the probability of a result at most as bad as the one seen is summed exactly
over the trinomial distribution, at the ψ that makes it largest. ψ is looked for in its Clopper–Pearson interval of
level 1 − γ, and γ is added (Berger and Boos 1994, JASA 89:1012).
"""

import numpy as np

from evenhand.metrics.quantiles import beta_quantile, normal_cdf, normal_quantile
from evenhand.metrics.types import FloatArray

GAMMA = 1e-4
"""The error that is set aside for ψ: no p-value is below it."""
MANY_CHANGES = 2_000
"""With more pairs that differ than this the normal limit is as good."""
_SHARES = 12  # values of ψ that are tried
_REACH = 8.0  # standard deviations of the number of pairs that differ
_STEPS = 32


def drop_p_value(losses: float, wins: float, n: int, margin: float) -> float:
    """The probability, were the true drop `margin` (a share of all pairs), of a result this good or better.

    Counts may be fractions: partial losses count in part, which is cautious.
    """
    if margin >= 1.0:
        return GAMMA if losses < n else 1.0
    changed = losses + wins
    z = _statistic(losses - wins, changed, n, margin)
    if changed > MANY_CHANGES:
        return float(normal_cdf(z))
    tail = GAMMA / 2.0
    low = 0.0 if changed == 0 else beta_quantile(tail, changed, n - changed + 1.0)
    high = 1.0 if changed >= n else beta_quantile(1.0 - tail, changed + 1.0, n - changed)
    low = max(low, margin, 1e-12)
    shares = np.linspace(low, max(high, low), _SHARES if high > low else 1)
    return min(1.0, float(_probabilities(z, n, margin, shares).max()) + GAMMA)


def drop_bound(losses: float, wins: float, n: int, *, confidence_level: float) -> float:
    """The one-sided upper bound of the drop: the smallest that `drop_p_value` rules out at 1 − level."""
    alpha = 1.0 - confidence_level
    if losses + wins > MANY_CHANGES:
        centre, error = _adjusted(losses - wins, losses + wins, n)
        return min(1.0, centre + normal_quantile(confidence_level) * error)
    low, high = max(-1.0, (losses - wins) / n), 1.0
    if low < 0.0 and drop_p_value(losses, wins, n, 0.0) <= alpha:
        return min(0.0, _gain_bound(losses, wins, n, confidence_level))
    low = max(low, 0.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if drop_p_value(losses, wins, n, middle) <= alpha:
            high = middle
        else:
            low = middle
    return high


def _gain_bound(losses: float, wins: float, n: int, level: float) -> float:
    # A proven gain: how large it is at least decides nothing, so the adjusted Wald bound is enough.
    centre, error = _adjusted(losses - wins, losses + wins, n)
    return centre + normal_quantile(level) * error


def _adjusted(balance: float, changed: float, n: int) -> tuple[float, float]:
    centre = balance / (n + 2.0)
    return centre, (((changed + 2.0) / (n + 2.0) - centre**2) / (n + 2.0)) ** 0.5


def _statistic(balance: float, changed: float, n: int, margin: float) -> float:
    centre, error = _adjusted(balance, changed, n)
    return (centre - margin) / error


def _probabilities(z: float, n: int, margin: float, shares: FloatArray) -> FloatArray:
    """P(statistic ≤ z) when a pair differs with probability `share`, and is then a loss with (1 + margin/share)/2."""
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    low, high = float(shares[0]), float(shares[-1])
    first = max(0, int(n * low - _REACH * ((n * low * (1.0 - low)) ** 0.5 + 1.0)))
    last = min(n, int(n * high + _REACH * ((n * high * (1.0 - high)) ** 0.5 + 1.0)) + 1)
    changed = np.arange(first, last + 1, dtype=np.float64)
    most = np.floor((changed + (n + 2.0) * _largest_centre(z, changed, n, margin)) / 2.0 + 1e-9)
    open_ = most >= 0
    changed, most = changed[open_], most[open_]
    share = shares[:, None]
    log = gammaln(n + 1.0) - gammaln(changed + 1.0) - gammaln(n - changed + 1.0)
    weight = np.exp(log + xlogy(changed, share) + xlog1py(n - changed, -share))
    loss = np.minimum(1.0, (1.0 + margin / share) / 2.0)
    inner = bdtr(np.minimum(most, changed), changed.astype(np.int64), loss)
    below = np.where(most >= changed, 1.0, inner)
    found: FloatArray = (weight * below).sum(axis=1)
    return found


def _largest_centre(z: float, changed: FloatArray, n: int, margin: float) -> FloatArray:
    # The centre c at which (c − margin)/√((a − c²)/(n + 2)) = z: the root of a quadratic on the side of z's sign.
    a = (changed + 2.0) / (n + 2.0)
    k = z * z / (n + 2.0)
    root = np.sqrt(np.maximum(0.0, margin**2 - (1.0 + k) * (margin**2 - k * a)))
    found: FloatArray = (margin + (root if z > 0.0 else -root)) / (1.0 + k)
    return found
