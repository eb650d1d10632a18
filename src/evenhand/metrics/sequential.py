"""Intervals and tests that may be looked at after every sample.

Both bet against the hypothesis with money that is won only if it is wrong: if the mean is m, the capital
Π(1 + λᵢ(Xᵢ − m)) with bets λᵢ fixed before Xᵢ is seen is a martingale, and by Ville's inequality it ever
reaches 1/α with probability at most α (Waudby-Smith and Ramdas 2024, JRSS B 86:1, arXiv 2010.09686). Stopping
whenever one likes costs nothing. The order of the values is the order in which they came.
"""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evenhand.metrics.checks import checked_alternative, checked_count, checked_level, checked_values
from evenhand.metrics.types import Alternative, FloatArray

GRID = 1_000
"""Into how many steps the range of the mean is divided."""


class ConfidenceSequence(Struct, frozen=True, kw_only=True):
    """Intervals after each sample; with the stated probability all of them cover the mean at once."""

    value: list[float]
    """The mean of the first t values."""
    ci_lower: list[float]
    """The lower end after t values."""
    ci_upper: list[float]
    """The upper end after t values."""
    confidence_level: float
    """How often the whole sequence covers the mean."""
    method: str
    """How it was made."""
    n: int
    """How many values went in."""


class SequentialTest(Struct, frozen=True, kw_only=True):
    """A test that may be stopped at any time."""

    e_value: float
    """The capital after the last value: evidence against the null, of mean at most 1 under it."""
    p_value: float
    """1 over the largest capital so far: valid whenever one stops."""
    decided_at: int | None
    """After how many values the capital first reached 1/alpha; None when it has not."""
    alpha: float
    """The chance of ever deciding against a true null."""
    alternative: Alternative
    """Which departures from 0 count."""
    mean: float
    """The mean difference so far."""
    n: int
    """How many values went in."""
    p_values: list[float]
    """The p-value after each value; it never rises."""


def confidence_sequence(
    values: npt.ArrayLike,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence_level: float = 0.95,
    every: int = 1,
) -> ConfidenceSequence:
    """Intervals for the mean of values known to lie within `bounds`, valid at every time together.

    The hedged capital process of Waudby-Smith and Ramdas (section 4) with their predictable
    plug-in bets √(2 log(2/α)/(σ̂²ₜ₋₁ t log(t + 1))), no bet larger than half of what keeps the capital
    positive. Means are tried on a grid, and the ends are moved out by one step of it. `every` thins what is
    returned; the last value is always included.
    """
    x, low, width = _scaled(values, bounds, "values")
    level = checked_level(confidence_level)
    every = checked_count(every, name="every", at_least=1)
    alpha = 1.0 - level
    bets = _plug_in_bets(x, alpha)
    means = np.linspace(0.0, 1.0, GRID + 1)
    with np.errstate(divide="ignore"):
        largest_up = 0.5 / means
        largest_down = 0.5 / (1.0 - means)
    up, down = np.zeros(means.size), np.zeros(means.size)
    alive = np.ones(means.size, dtype=bool)
    threshold = np.log(2.0 / alpha)  # either half of the money alone must multiply by 2/α
    running = np.cumsum(x) / np.arange(1, x.size + 1)
    kept: list[int] = []
    ends: list[tuple[float, float]] = []
    lower, upper = 0.0, 1.0
    for t in range(x.size):
        gap = x[t] - means
        up += np.log1p(np.minimum(bets[t], largest_up) * gap)
        down += np.log1p(-np.minimum(bets[t], largest_down) * gap)
        alive &= (up < threshold) & (down < threshold)
        inside = np.flatnonzero(alive)
        if inside.size:
            lower, upper = means[max(inside[0] - 1, 0)], means[min(inside[-1] + 1, GRID)]
        if t % every == every - 1 or t == x.size - 1:
            kept.append(t)
            ends.append((float(lower), float(upper)))
    return ConfidenceSequence(
        value=[float(low + width * running[t]) for t in kept],
        ci_lower=[low + width * end[0] for end in ends],
        ci_upper=[low + width * end[1] for end in ends],
        confidence_level=level,
        method="hedged_betting",
        n=x.size,
    )


def paired_sequential_test(
    differences: npt.ArrayLike,
    *,
    bounds: tuple[float, float] = (-1.0, 1.0),
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> SequentialTest:
    """Is the mean of paired differences 0? May be asked again after every pair.

    The capital Π(1 + λᵢdᵢ) for `greater` (bets against a mean of 0 or less) and Π(1 − λᵢdᵢ) for `less`;
    two-sided is half the money on each. The bets are the approximate growth-rate-optimal ones of
    Waudby-Smith and Ramdas, mean/(variance + mean²) of what was seen before, shrunk by one
    imagined loss and win, at least 0 and at most half of what keeps the capital positive.
    """
    d = checked_values(differences, name="differences")
    low, high = _checked_bounds(bounds)
    if not low < 0.0 < high:
        raise ValueError(f"bounds: must have 0 inside, not {bounds}")
    if d.min() < low or d.max() > high:
        raise ValueError(f"differences: must lie within bounds {bounds}")
    alpha = checked_level(alpha, name="alpha")
    side = checked_alternative(alternative)
    gain, loss = _log_capital(d, -low), _log_capital(-d, high)
    if side == "greater":
        logs = gain
    elif side == "less":
        logs = loss
    else:
        logs = np.logaddexp(gain, loss) - np.log(2.0)
    p_values = np.minimum(1.0, np.exp(-np.maximum.accumulate(logs)))
    crossed = np.flatnonzero(p_values <= alpha)
    return SequentialTest(
        e_value=float(np.exp(min(float(logs[-1]), 700.0))),
        p_value=float(p_values[-1]),
        decided_at=int(crossed[0]) + 1 if crossed.size else None,
        alpha=alpha,
        alternative=side,
        mean=float(d.mean()),
        n=d.size,
        p_values=p_values.tolist(),
    )


def _log_capital(d: FloatArray, worst: float) -> FloatArray:
    """log Π(1 + λᵢdᵢ) with λᵢ from the values before i; `worst` is the largest loss that one value can bring."""
    before = np.arange(d.size)
    total = np.concatenate(([0.0], np.cumsum(d)[:-1]))
    squares = np.concatenate(([0.0], np.cumsum(d**2)[:-1]))
    mean = total / (before + 2.0)
    second = (squares + 2.0 * worst**2) / (before + 2.0)  # mean² + variance, one imagined loss and win added
    bets = np.clip(mean / second, 0.0, 0.5 / worst)
    return np.asarray(np.cumsum(np.log1p(bets * d)))


def _plug_in_bets(x: FloatArray, alpha: float) -> FloatArray:
    t = np.arange(1, x.size + 1)
    means = (0.5 + np.cumsum(x)) / (t + 1.0)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1.0)
    previous = np.concatenate(([0.25], variances[:-1]))
    return np.asarray(np.sqrt(2.0 * np.log(2.0 / alpha) / (previous * t * np.log(t + 1.0))))


def _scaled(values: npt.ArrayLike, bounds: tuple[float, float], name: str) -> tuple[FloatArray, float, float]:
    x = checked_values(values, name=name)
    low, high = _checked_bounds(bounds)
    if x.min() < low or x.max() > high:
        raise ValueError(f"{name}: must lie within bounds {bounds}")
    return (x - low) / (high - low), low, high - low


def _checked_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(bound) for bound in bounds)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"bounds: must be two finite numbers, the lower first, not {bounds}")
    return low, high
