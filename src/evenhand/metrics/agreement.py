"""How far raters agree beyond chance, each coefficient with a bootstrap interval over the items rated."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics.checks import checked_choice, checked_count, checked_level
from evenhand.metrics.intervals import constant_ends
from evenhand.metrics.types import FloatArray, Interval

_CELLS = 1 << 20  # resampled rows times categories held at a time


def cohen_kappa(
    a: Sequence[Any] | npt.NDArray[Any],
    b: Sequence[Any] | npt.NDArray[Any],
    *,
    weights: str | None = None,
    labels: Sequence[Any] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Cohen's κ of two raters: 1 − Σ wᵢⱼ pᵢⱼ / Σ wᵢⱼ pᵢ· p·ⱼ with disagreement weights w.

    `weights` None counts every disagreement alike (Cohen 1960, Educational and Psychological Measurement
    20:37); `linear` and `quadratic` weigh it by the distance of the ranks and its square (Cohen 1968,
    Psychological Bulletin 70:213). The ranks are those of `labels`, or of the sorted ratings.
    Raters who agree on every item leave the bootstrap nothing to vary: the lower end is then the κ with a share of
    1 − (α/2)^(1/n) of disagreements, as bad as they can be, which would go unseen.
    """
    first, second = _checked_labels(a, "a"), _checked_labels(b, "b")
    if len(first) != len(second):
        raise ValueError(f"b: must have as many ratings as a ({len(first)}), not {len(second)}")
    if len(first) < 2:
        raise ValueError("a: at least 2 items are needed")
    checked_choice(weights or "none", ("none", "linear", "quadratic"), name="weights")
    known = _ranked({*first, *second}, labels)
    rank = {label: position for position, label in enumerate(known)}
    table = np.zeros((len(known), len(known)))
    np.add.at(table, ([rank[x] for x in first], [rank[x] for x in second]), 1.0)
    distance = np.abs(np.subtract.outer(np.arange(len(known)), np.arange(len(known)))).astype(np.float64)
    penalty = {None: (distance > 0).astype(np.float64), "linear": distance}.get(weights, distance**2)

    def kappa(tables: FloatArray) -> FloatArray:
        shares = tables / tables.sum(axis=(-2, -1), keepdims=True)
        observed = (shares * penalty).sum(axis=(-2, -1))
        expected = np.einsum("ri,rj,ij->r", shares.sum(axis=-1), shares.sum(axis=-2), penalty)
        return _one_minus_ratio(observed, expected)

    n = len(first)
    value = _defined(float(kappa(table[None])[0]), "a", "κ")
    rng = np.random.default_rng(checked_count(seed, name="seed"))
    level = checked_level(confidence_level)
    count = checked_count(n_resamples, name="n_resamples", at_least=1)
    if value == 1.0:
        chance = float(table.sum(axis=1) @ penalty @ table.sum(axis=0)) / n**2
        return _unseen(value, float(penalty.max()) / chance, level, n)
    filled = table.ravel() > 0  # a resample of items is a multinomial draw of the cells of their table
    drawn = np.zeros((count, table.size))
    drawn[:, filled] = rng.multinomial(n, table.ravel()[filled] / n, size=count)
    draws = kappa(drawn.reshape(count, *table.shape))
    return _interval(value, draws, level, n)


def fleiss_kappa(
    table: npt.ArrayLike, *, confidence_level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Fleiss' κ of many raters: (P̄ − P̄ₑ)/(1 − P̄ₑ) (Fleiss 1971, Psychological Bulletin 76:378).

    `table` has a row per item and a column per category; a cell says how many raters chose it. Every item
    has the same number of raters; where they differ, use `krippendorff_alpha`. For raters who agree on every item the
    lower end is that of `cohen_kappa`.
    """
    try:
        counts = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("table: must be numbers") from None
    if counts.ndim != 2 or counts.shape[0] < 2:
        raise ValueError(f"table: must have at least 2 items and 2 dimensions, not shape {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("table: must hold whole numbers of raters")
    raters = counts.sum(axis=1)
    if raters[0] < 2 or (raters != raters[0]).any():
        raise ValueError("table: every item needs the same number of raters, at least 2")
    agreeing = (counts * (counts - 1.0)).sum(axis=1) / (raters[0] * (raters[0] - 1.0))
    rows = _canonical(np.column_stack([agreeing, counts / raters[0]]))

    def kappa(sums: FloatArray) -> FloatArray:
        means = sums / rows.shape[0]
        return _one_minus_ratio(1.0 - means[:, 0], 1.0 - (means[:, 1:] ** 2).sum(axis=1))

    value = _defined(float(kappa(rows.sum(axis=0)[None])[0]), "table", "κ")
    level = checked_level(confidence_level)
    if value == 1.0:
        chance = 1.0 - float((rows[:, 1:].mean(axis=0) ** 2).sum())
        return _unseen(value, 1.0 / chance, level, rows.shape[0])
    return _interval(value, _resampled(rows, kappa, n_resamples, seed), level, rows.shape[0])


def krippendorff_alpha(
    ratings: Sequence[Sequence[Any]] | npt.NDArray[Any],
    *,
    level: str = "nominal",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Krippendorff's α = 1 − D_o/D_e (Krippendorff 2019, Content Analysis, chapter 12).

    `ratings` has a row per rater and a column per unit; None or NaN is a missing rating, and units with
    fewer than two ratings say nothing. `level` chooses how far apart two values are: `nominal` (equal or
    not), `ordinal` (by the ratings between them; values must sort) or `interval` (squared difference of
    numbers). The interval resamples units; where raters agree on every unit the lower end is that of `cohen_kappa`.
    """
    kind = checked_choice(level, ("nominal", "ordinal", "interval"), name="level")
    units = _units(ratings)
    if len(units) < 2:
        raise ValueError("ratings: at least 2 units with two ratings each are needed")
    if kind == "interval":
        rows, alpha = _interval_parts(units)
    else:
        rows, alpha = _category_parts(units, ordinal=kind == "ordinal")
    rows = _canonical(rows)
    value = _defined(float(alpha(rows.sum(axis=0)[None])[0]), "ratings", "α")
    wanted = checked_level(confidence_level)
    if value == 1.0:
        return _unseen(value, _worst_unit(units, kind), wanted, len(units))
    return _interval(value, _resampled(rows, alpha, n_resamples, seed), wanted, len(units))


def _interval_parts(units: list[list[Any]]) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    # Σ_{i≠j} (xᵢ − xⱼ)² = 2(m Σx² − (Σx)²): per unit and over all, so three sums per unit are enough.
    try:
        numbers = [np.sort(np.asarray(unit, dtype=np.float64)) for unit in units]
    except (TypeError, ValueError):
        raise ValueError("ratings: interval data must be numbers") from None
    if not all(np.isfinite(unit).all() for unit in numbers):
        raise ValueError("ratings: must be finite")
    centre = float(np.sort(np.concatenate(numbers)).mean())
    shifted = [unit - centre for unit in numbers]
    rows = np.array(
        [
            (2.0 * (x.size * (x**2).sum() - x.sum() ** 2) / (x.size - 1), x.size, x.sum(), (x**2).sum())
            for x in shifted
        ]
    )

    def alpha(sums: FloatArray) -> FloatArray:
        observed, n, total, squares = sums.T
        return _one_minus_ratio(observed / n, 2.0 * (n * squares - total**2) / (n * (n - 1.0)))

    return rows, alpha


def _category_parts(
    units: list[list[Any]], *, ordinal: bool
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    known = _ranked({label for unit in units for label in unit}, None)
    rank = {label: position for position, label in enumerate(known)}
    size = len(known)
    rows = np.empty((len(units), size * size))
    for position, unit in enumerate(units):
        counts = np.bincount([rank[label] for label in unit], minlength=size).astype(np.float64)
        pairs = np.outer(counts, counts) - np.diag(counts)
        rows[position] = (pairs / (len(unit) - 1)).ravel()

    def alpha(sums: FloatArray) -> FloatArray:
        coincidences = sums.reshape(-1, size, size)
        totals = coincidences.sum(axis=2)
        n = totals.sum(axis=1)
        if ordinal:
            # δ²(c, k) = (n_c/2 + the ratings between + n_k/2)²: differences of mid-ranks.
            ranks = np.cumsum(totals, axis=1) - totals / 2.0
            distance = (ranks[:, :, None] - ranks[:, None, :]) ** 2
        else:
            distance = np.broadcast_to(1.0 - np.eye(size), coincidences.shape)
        observed = (coincidences * distance).sum(axis=(1, 2)) / n
        expected = np.einsum("ri,rj,rij->r", totals, totals, distance) / (n * (n - 1.0))
        return _one_minus_ratio(observed, expected)

    return rows, alpha


def _units(ratings: Sequence[Sequence[Any]] | npt.NDArray[Any]) -> list[list[Any]]:
    table = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in ratings]
    if len(table) < 2:
        raise ValueError("ratings: at least 2 raters are needed")
    if len({len(row) for row in table}) != 1:
        raise ValueError("ratings: every rater needs one entry per unit (None for a missing one)")
    columns = [[x for x in column if x is not None and x == x] for column in zip(*table, strict=True)]
    return [column for column in columns if len(column) >= 2]


def _checked_labels(labels: Sequence[Any] | npt.NDArray[Any], name: str) -> list[Any]:
    listed: list[Any] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if not listed:
        raise ValueError(f"{name}: must not be empty")
    if any(label is None or label != label for label in listed):
        raise ValueError(f"{name}: ratings must not be missing")
    return listed


def _ranked(found: set[Any], labels: Sequence[Any] | None) -> list[Any]:
    if labels is None:
        try:
            return sorted(found)
        except TypeError:
            return sorted(found, key=lambda label: (type(label).__name__, str(label)))
    unknown = found - set(labels)
    if unknown:
        raise ValueError(f"labels: {sorted(map(str, unknown))} occur and are not listed")
    return list(labels)


def _unseen(value: float, worst: float, level: float, n: int) -> Interval:
    """The interval of raters who agree on all n items: a share of 1 − (α/2)^(1/n) of the worst items goes unseen.

    `worst` is the disagreement of such an item over the one expected by chance.
    """
    unseen = 1.0 - ((1.0 - level) / 2.0) ** (1.0 / n)
    return Interval(
        value=value,
        ci_lower=max(-1.0, 1.0 - unseen * worst),
        ci_upper=1.0,
        confidence_level=level,
        method="constant",
        n=n,
    )


def _worst_unit(units: list[list[Any]], kind: str) -> float:
    """The disagreement of the two values farthest apart over the one expected by chance, when every unit agrees."""
    known = _ranked({label for unit in units for label in unit}, None)
    counts = np.array([float(sum(unit.count(label) for unit in units)) for label in known])
    if kind == "interval":
        places = np.array(known, dtype=np.float64)
    elif kind == "ordinal":
        places = np.cumsum(counts) - counts / 2.0
    else:
        distance = 1.0 - np.eye(len(known))
    if kind != "nominal":
        distance = np.subtract.outer(places, places) ** 2
    total = float(counts.sum())
    return float(distance.max() * total * (total - 1.0) / (counts @ distance @ counts))


def _canonical(rows: FloatArray) -> FloatArray:
    return rows[np.lexsort(rows.T[::-1])]


def _resampled(
    rows: FloatArray, statistic: Callable[[FloatArray], FloatArray], n_resamples: int, seed: int
) -> FloatArray:
    count = checked_count(n_resamples, name="n_resamples", at_least=1)
    rng = np.random.default_rng(checked_count(seed, name="seed"))
    distinct, repeats = np.unique(rows, axis=0, return_counts=True)
    n = rows.shape[0]
    out = np.empty(count)
    step = max(1, _CELLS // max(distinct.shape))
    for start in range(0, count, step):
        stop = min(start + step, count)
        drawn = rng.multinomial(n, repeats / n, size=stop - start)
        out[start:stop] = statistic(drawn @ distinct)
    return out


def _one_minus_ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    # Where chance itself leaves no room for disagreement the coefficient is undefined, not 0 and not 1.
    defined = expected > 1e-12
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), np.nan)


def _defined(value: float, name: str, coefficient: str) -> float:
    if value != value:
        raise ValueError(f"{name}: all ratings are the same, so {coefficient} is undefined")
    return value


def _interval(value: float, draws: FloatArray, level: float, n: int) -> Interval:
    usable = draws[np.isfinite(draws)]
    lower, upper = np.quantile(usable, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    if upper - lower <= 1e-9:
        # Every item is like the others: what was not seen may agree wholly or not at all.
        lower, upper = constant_ends(value, n, (1.0 - level) / 2.0, low=-1.0, high=1.0)
        return Interval(
            value=value, ci_lower=lower, ci_upper=upper, confidence_level=level, method="constant", n=n
        )
    return Interval(
        value=value,
        ci_lower=float(min(lower, value)),
        ci_upper=float(max(upper, value)),
        confidence_level=level,
        method="percentile/items",
        n=n,
    )
