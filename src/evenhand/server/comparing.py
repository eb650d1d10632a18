"""Two experiments on one dataset: counts from exact means, statistics from `metrics`."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import ExperimentComparison, ItemComparison, ScorerComparison
from evenhand.metrics.paired import mcnemar, paired_difference, permutation_test
from evenhand.metrics.power import minimum_detectable_effect
from evenhand.metrics.quantiles import t_cdf
from evenhand.server.summaries import exact_mean_of
from evenhand.store.connection import Connection
from evenhand.store.experiments import get_experiment
from evenhand.store.projects import Scope
from evenhand.store.totals import ItemTotals, ScorerTotals, item_totals, scorer_totals

MOST_PERMUTED = 2_000
"""With more pairs than this the t-test takes over: it agrees there, and costs nothing."""

Items = dict[str, dict[str, ItemTotals]]


class Side(Struct, frozen=True, kw_only=True):
    """What is kept about one of the experiments."""

    experiment_id: str
    """Which."""
    totals: dict[str, ScorerTotals]
    """By scorer."""
    items: Items
    """By scorer, then by item."""


def read_sides(
    connection: Connection, base_id: str, other_id: str, scorer_name: str | None, *, scope: Scope
) -> tuple[Side, Side]:
    base = get_experiment(connection, base_id, scope=scope)
    other = get_experiment(connection, other_id, scope=scope)
    if base.dataset_id != other.dataset_id:
        raise Refusal(
            "INCOMPATIBLE_EXPERIMENTS",
            "The experiments are on different datasets.",
            {"dataset_ids": [base.dataset_id, other.dataset_id]},
        )
    names = None if scorer_name is None else [scorer_name]
    sides = []
    for experiment_id in (base_id, other_id):
        totals = scorer_totals(connection, [experiment_id], names)
        items = item_totals(connection, experiment_id, scorer_name)
        by_name = {name: found for (_, name), found in totals.items()}
        sides.append(Side(experiment_id=experiment_id, totals=by_name, items=items))
    return sides[0], sides[1]


def compare(sides: tuple[Side, Side], *, per_item: bool) -> ExperimentComparison:
    base, other = sides
    comparisons: list[ScorerComparison] = []
    results: list[ItemComparison] = []
    for name in sorted({*base.totals, *other.totals}):
        before, after = base.items.get(name, {}), other.items.get(name, {})
        comparisons.append(
            _scorer(
                name,
                base.totals.get(name, ScorerTotals()),
                other.totals.get(name, ScorerTotals()),
                before,
                after,
            )
        )
        if per_item:
            results += [
                _item(name, item_id, before.get(item_id), after.get(item_id))
                for item_id in sorted({*before, *after})
            ]
    return ExperimentComparison(
        base_experiment_id=base.experiment_id,
        compare_experiment_id=other.experiment_id,
        scorer_comparisons=comparisons,
        per_item_results=results,
    )


def item_score(item: ItemTotals | None) -> Fraction | str | None:
    """The exact mean of an item's numbers, or its newest label."""
    if item is None:
        return None
    return Fraction(item.total) / item.score_count if item.score_count else item.label


def _shown(score: Fraction | str | None) -> float | str | None:
    return float(score) if isinstance(score, Fraction) else score


def _item(name: str, item_id: str, before: ItemTotals | None, after: ItemTotals | None) -> ItemComparison:
    base, other = item_score(before), item_score(after)
    both = isinstance(base, Fraction) and isinstance(other, Fraction)
    return ItemComparison(
        dataset_item_id=item_id,
        scorer_name=name,
        base_score=_shown(base),
        compare_score=_shown(other),
        delta=float(other - base) if both else None,  # type: ignore[operator]  # both are fractions
    )


def _scorer(
    name: str,
    base: ScorerTotals,
    other: ScorerTotals,
    before: dict[str, ItemTotals],
    after: dict[str, ItemTotals],
) -> ScorerComparison:
    base_mean, other_mean = exact_mean_of(base), exact_mean_of(other)
    improved = regressed = unchanged = 0
    pairs: list[tuple[Fraction, Fraction]] = []
    for item_id in sorted(before.keys() & after.keys()):
        first, second = item_score(before[item_id]), item_score(after[item_id])
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            pairs.append((first, second))
            improved += second > first
            regressed += second < first
        unchanged += first == second
    return ScorerComparison(
        scorer_name=name,
        base_mean=None if base_mean is None else float(base_mean),
        compare_mean=None if other_mean is None else float(other_mean),
        delta=None if base_mean is None or other_mean is None else float(other_mean - base_mean),
        improved_count=improved,
        regressed_count=regressed,
        unchanged_count=unchanged,
        only_in_base=len(before.keys() - after.keys()),
        only_in_compare=len(after.keys() - before.keys()),
        **_statistics(pairs),
    )


def _statistics(pairs: Sequence[tuple[Fraction, Fraction]]) -> dict[str, Any]:
    """Interval, test and minimum detectable effect of the paired differences; null below two pairs."""
    empty: dict[str, Any] = dict.fromkeys(
        (
            "paired_delta",
            "ci_lower",
            "ci_upper",
            "confidence_level",
            "p_value",
            "test",
            "minimum_detectable_effect",
        )
    )
    found = {**empty, "paired_count": len(pairs)}
    if len(pairs) < 2:
        return found
    base = np.array([float(first) for first, _ in pairs])
    other = np.array([float(second) for _, second in pairs])
    # Differences of the exact means: 0.3 − 0.1 is 0.2 here.
    differences = np.array([float(second - first) for first, second in pairs])
    interval = paired_difference(base, other)
    p_value, test = _test(base, other, differences)
    alike = bool((differences == differences[0]).all())
    deviation = float(differences.std(ddof=1))
    return found | {
        "paired_delta": float(sum((b - a for a, b in pairs), Fraction(0)) / len(pairs)),
        "ci_lower": max(interval.ci_lower, -1.0),
        "ci_upper": min(interval.ci_upper, 1.0),
        "confidence_level": interval.confidence_level,
        "p_value": p_value,
        "test": test,
        # Differences that are all alike have no spread to estimate from; 0 would promise to show anything.
        "minimum_detectable_effect": None if alike else minimum_detectable_effect(deviation, len(pairs)),
    }


def _test(base: Any, other: Any, differences: Any) -> tuple[float, str]:
    if np.isin(base, (0.0, 1.0)).all() and np.isin(other, (0.0, 1.0)).all():
        result = mcnemar(int((differences < 0).sum()), int((differences > 0).sum()))
        return result.p_value, "mcnemar_exact"
    if not differences.any():
        return 1.0, "permutation"
    if differences.size <= MOST_PERMUTED:
        return permutation_test(differences).p_value, "permutation"
    error = float(differences.std(ddof=1)) / differences.size**0.5
    if error == 0.0:
        return 0.0, "paired_t"
    statistic = float(differences.mean()) / error
    return min(1.0, 2.0 * t_cdf(-abs(statistic), differences.size - 1)), "paired_t"
