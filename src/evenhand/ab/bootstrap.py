"""Bootstrap intervals on paired deltas, resampled by task.

Repeats of one task are not independent, so a resample draws whole tasks: T tasks drawn from T with replacement are
T multinomial counts W, and everything needed of a resample follows from sums per task.

Means: Σ W·sum / Σ W·size. The interval runs from the k-th smallest to the k-th largest of the resampled means.

Medians: the (lower) median of a resample is at most x exactly when Σ W·(2·#{delta ≤ x} − size) ≥ 0, so the k-th
smallest of all resampled medians is found by bisection over the observed deltas, with one matrix product per step
for every metric at once, instead of by sorting each of the 10,000 resamples. The lower end uses the lower median of
a resample of even size and the upper end the upper one, which is on the safe side by at most one observation.

Both mirror exactly when every delta changes its sign, and depend on no order of lines.

Beyond `MANY_TASKS` tasks the draws are replaced by their normal limit (the same sums per task; for the median
inverted in the manner of Woodruff, 1952), because the limit is then closer than 10,000 draws are; `method` says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.ab.decimals import Floats, Integers
from evenhand.ab.pairing import TaskTotals
from evenhand.metrics.quantiles import normal_quantile

MANY_TASKS = 2_000
_CHUNK_CELLS = 1 << 21
_EXACT = 2**24
"""Whole numbers below this are exact in single precision."""

Weights = NDArray[np.float32]

RESAMPLED = "cluster bootstrap by task, percentile"
LIMIT = "cluster bootstrap by task, normal limit"


@dataclass(frozen=True)
class _Column:
    """The known values of one delta, sorted, and what each task adds up to."""

    values: Floats
    """Ascending."""
    codes: Integers
    """The task of each value, counted without gaps."""
    sums: Floats
    sizes: Floats

    @property
    def tasks(self) -> int:
        return len(self.sizes)

    def mirrored(self) -> "_Column":
        return _Column(-self.values[::-1], self.codes[::-1], -self.sums, self.sizes)


Ends = tuple[float, float]


@dataclass(frozen=True)
class BootstrapEnds:
    """The ends of both intervals of one delta, and how they came about."""

    mean: Ends
    median: Ends
    method: str


def bootstrap_ends(
    totals: Mapping[str, TaskTotals], *, confidence_level: float, n_resamples: int, seed: int
) -> dict[str, BootstrapEnds]:
    """The ends for the mean and the median of every delta that at least two tasks have."""
    by_size: dict[int, dict[str, _Column]] = {}
    for name, one in totals.items():
        if len(one) >= 2:
            by_size.setdefault(len(one), {})[name] = _column(one)
    out: dict[str, BootstrapEnds] = {}
    for tasks, group in by_size.items():
        if tasks > MANY_TASKS:
            ends = {name: _limit_ends(column, confidence_level) for name, column in group.items()}
            method = LIMIT
        else:
            weights = draw_tasks(tasks, n_resamples, seed)
            ends = _resampled_ends(group, weights, confidence_level)
            method = RESAMPLED
        out |= {name: BootstrapEnds(*found, method) for name, found in ends.items()}
    return out


def _column(totals: TaskTotals) -> _Column:
    return _Column(*totals.ranked, totals.sums, totals.sizes)


def draw_tasks(tasks: int, n_resamples: int, seed: int) -> Weights:
    """How often each task is in each resample: (resamples, tasks), every row adding up to `tasks`."""
    rng = np.random.default_rng([seed, tasks])
    out = np.empty((n_resamples, tasks), np.float32)
    rows = max(1, _CHUNK_CELLS // tasks)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        drawn = rng.integers(0, tasks, size=(stop - start, tasks))
        drawn += np.arange(stop - start)[:, None] * tasks
        counts = np.bincount(drawn.ravel(), minlength=(stop - start) * tasks)
        out[start:stop] = counts.reshape(stop - start, tasks)
    return out


def _tail_count(n_resamples: int, confidence_level: float) -> int:
    """How many resamples lie beyond each end."""
    return int(n_resamples * (1.0 - confidence_level) / 2.0 + 1e-9)


def _resampled_ends(
    group: Mapping[str, _Column], weights: Weights, level: float
) -> dict[str, tuple[Ends, Ends]]:
    columns = list(group.values())
    tail = _tail_count(len(weights), level)
    sums = _products(weights, np.stack([column.sums for column in columns], axis=1))
    sizes = _products(weights, np.stack([column.sizes for column in columns], axis=1))
    means = np.sort(sums / sizes, axis=0)
    single = float(sizes.max()) < _EXACT
    lower = _lower_medians(columns, weights, tail, single=single)
    upper = _lower_medians([column.mirrored() for column in columns], weights, tail, single=single)
    return {
        name: (
            (float(means[tail, place]), float(means[-1 - tail, place])),
            (lower[place], -upper[place]),
        )
        for place, name in enumerate(group)
    }


def _products(weights: Weights, columns: Floats) -> Floats:
    """weights @ columns, a chunk of resamples at a time."""
    out = np.empty((len(weights), columns.shape[1]))
    rows = max(1, _CHUNK_CELLS // weights.shape[1])
    for start in range(0, len(weights), rows):
        out[start : start + rows] = weights[start : start + rows].astype(np.float64) @ columns
    return out


def _lower_medians(columns: list[_Column], weights: Weights, tail: int, *, single: bool) -> list[float]:
    """The (tail + 1)-th smallest resampled lower median of each column, by bisection over its values.

    The sums are whole numbers; `single` says that single precision holds them exactly.
    """
    low = np.zeros(len(columns), np.int64)
    high = np.array([len(column.values) - 1 for column in columns], np.int64)
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low + high) // 2
        balance = np.stack(
            [_balance(columns[place], columns[place].values[middle[place]]) for place in open_], axis=1
        )
        sums = weights @ balance.astype(np.float32) if single else _products(weights, balance)
        reached = (sums >= 0.0).sum(axis=0) > tail
        high[open_] = np.where(reached, middle[open_], high[open_])
        low[open_] = np.where(reached, low[open_], middle[open_] + 1)
    return [float(column.values[place]) for column, place in zip(columns, low, strict=True)]


def _balance(column: _Column, x: float) -> Floats:
    """2·#{values ≤ x} − size, per task."""
    at_most = int(np.searchsorted(column.values, x, side="right"))
    return 2.0 * np.bincount(column.codes[:at_most], minlength=column.tasks) - column.sizes


def _limit_ends(column: _Column, level: float) -> tuple[Ends, Ends]:
    z = normal_quantile((1.0 + level) / 2.0)
    n = float(column.sizes.sum())
    mean = math.fsum(column.sums.tolist()) / n
    half = z * float(np.sqrt(((column.sums - mean * column.sizes) ** 2).sum())) / n
    return (mean - half, mean + half), (
        _limit_lower_median(column, z),
        -_limit_lower_median(column.mirrored(), z),
    )


def _limit_lower_median(column: _Column, z: float) -> float:
    """The smallest value x at which Σ balance reaches −z of its own standard deviations over resamples."""
    low, high = 0, len(column.values) - 1
    while low < high:
        middle = (low + high) // 2
        balance = _balance(column, column.values[middle])
        spread = float(np.sqrt(((balance - balance.mean()) ** 2).sum()))
        if float(balance.sum()) >= -z * spread:
            high = middle
        else:
            low = middle + 1
    return float(column.values[low])
