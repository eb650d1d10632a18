"""An experiment in numbers, from the aggregates that the store keeps."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from msgspec import Raw

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import (
    ExperimentSummary,
    ScorerSummary,
    ScorerVersion,
    ThresholdResult,
)
from evenhand.metrics.exact import as_fraction, compare_exactly
from evenhand.metrics.kept import KeptGroups, kept_interval
from evenhand.metrics.repeats import pass_at_k, pass_hat_k
from evenhand.store.summaries import KeptScorer, KeptSummary
from evenhand.store.totals import ScorerTotals
from evenhand.store.versions import Versions, mixed_options, mixed_versions, why_mixed

Estimate = Callable[[int, int, int], float]
"""An unbiased estimate for k tries from n tries with c passes: f(n, c, k)."""
MOST_TRIES = 64
"""pass@k is given for k up to this."""


def summarise(kept: KeptSummary) -> ExperimentSummary:
    return ExperimentSummary(
        experiment_id=kept.experiment.id,
        status=kept.experiment.status,
        run_count=kept.experiment.run_count,
        dataset_item_count=kept.item_count,
        scores_by_scorer={name: _scorer(name, scorer) for name, scorer in kept.scorers.items()},
    )


def exact_mean_of(totals: ScorerTotals) -> Fraction | None:
    """The exact mean of the numbers."""
    return None if totals.score_count == 0 else Fraction(totals.total) / totals.score_count


def _scorer(name: str, kept: KeptScorer) -> ScorerSummary:
    totals = kept.totals
    mean = exact_mean_of(totals)
    # Numbers from 0 to 1 that equal their squares are zeros and ones.
    binary = totals.total == totals.squares
    groups = [
        KeptGroups(
            size=size, passes=passes, count=c.items, total=Fraction(c.total), squares=Fraction(c.squares)
        )
        for (size, passes), c in kept.clusters.items()
        if c.items
    ]
    interval = kept_interval(groups, binary=binary)
    tries = min((group.size for group in groups), default=0)
    repeats = binary and any(group.size > 1 for group in groups)
    ks = list(range(1, min(tries, MOST_TRIES) + 1)) if repeats else []
    return ScorerSummary(
        scorer_name=name,
        scored_run_count=totals.run_count,
        score_count=totals.score_count + totals.label_count,
        mean=None if mean is None else float(mean),
        min=totals.minimum,
        max=totals.maximum,
        distribution=kept.labels or None,
        std=_std(totals),
        # Scores are from 0 to 1, and so is their mean: Student's t does not know.
        ci_lower=None if interval is None else max(interval.ci_lower, 0.0),
        ci_upper=None if interval is None else min(interval.ci_upper, 1.0),
        confidence_level=None if interval is None else interval.confidence_level,
        ci_method=None if interval is None else interval.method,
        pass_at_k={str(k): _over_items(groups, k, pass_at_k) for k in ks} or None,
        pass_hat_k={str(k): _over_items(groups, k, pass_hat_k) for k in ks} or None,
        versions=_versions(kept),
        mixed_versions=mixed_versions(totals, kept.versions) is not None,
        mixed=why_mixed(totals, kept.versions),
    )


def _versions(kept: KeptScorer) -> list[ScorerVersion]:
    """One entry for each version, and one for the scores of which no version is known beside them."""
    found = [
        ScorerVersion(
            canonical_name=key.canonical_name,
            version=key.version,
            score_count=totals.score_count + totals.label_count,
            mean=float(Fraction(totals.total) / totals.score_count) if totals.score_count else None,
            options=Raw(totals.options.encode()),
            options_differ=bool(totals.options_differ),
        )
        for key, totals in kept.versions.items()
    ]
    numbers = kept.totals.score_count - sum(totals.score_count for totals in kept.versions.values())
    labels = kept.totals.label_count - sum(totals.label_count for totals in kept.versions.values())
    if found and numbers + labels:
        rest = Fraction(kept.totals.total) - sum(Fraction(totals.total) for totals in kept.versions.values())
        found.append(
            ScorerVersion(
                canonical_name=None,
                version=None,
                score_count=numbers + labels,
                mean=float(rest / numbers) if numbers else None,
                options=None,
                options_differ=False,
            )
        )
    return found


def _over_items(groups: list[KeptGroups], k: int, estimate: Estimate) -> float:
    items = sum(group.count for group in groups)
    return sum(group.count * estimate(group.size, group.passes, k) for group in groups) / items


def _std(totals: ScorerTotals) -> float | None:
    n = totals.score_count
    if n < 2:
        return None
    total, squares = Fraction(totals.total), Fraction(totals.squares)
    return math.sqrt((squares - total * total / n) / (n - 1))


def evaluate_threshold(
    totals: ScorerTotals,
    versions: Versions,
    *,
    scorer_name: str,
    metric: Literal["mean", "min", "max"],
    threshold: float,
    comparison: str,
    force: bool = False,
) -> ThresholdResult:
    """Compare as exact decimals, so that a mean of 0.80 reaches 0.80.

    Scores of several versions decide nothing unless by `force`. Several options are a caveat only: a pattern may rightly
    be another one for each item.
    """
    if totals.label_count:
        raise Refusal(
            "UNSUPPORTED_THRESHOLD_TYPE",
            f"'{scorer_name[:100]}' gives labels; a threshold needs numbers.",
            {"scorer_name": scorer_name},
        )
    mixed = mixed_versions(totals, versions)
    if mixed is not None and not force:
        raise Refusal(
            "MIXED_SCORER_VERSIONS",
            f"Under '{scorer_name[:100]}' there are {mixed}: they are no single measure. Score the runs again in a new "
            'experiment or under another name, or send "force": true.',
            {"scorer_name": scorer_name, "mixed": mixed, "versions": [version.shown for version in versions]},
        )
    actual = _metric(totals, metric)
    passed = actual is not None and compare_exactly(actual, comparison, threshold)
    return ThresholdResult(
        passed=passed,
        actual_value=None if actual is None else float(actual),
        threshold=threshold,
        scorer_name=scorer_name,
        metric=metric,
        gap=None if actual is None else float(actual - as_fraction(threshold)),
        caveats=_caveats(mixed, mixed_options(versions)),
    )


def _caveats(versions: str | None, options: str | None) -> list[str]:
    found = [] if versions is None else [f"decided by force over {versions}"]
    return found if options is None else [*found, f"decided over {options}"]


def _metric(totals: ScorerTotals, metric: Literal["mean", "min", "max"]) -> Fraction | None:
    if totals.score_count == 0:
        return None
    if metric == "mean":
        return exact_mean_of(totals)
    value = totals.minimum if metric == "min" else totals.maximum
    return None if value is None else as_fraction(value)
