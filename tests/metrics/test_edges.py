"""Constants and edges that no other test would miss: defaults, thresholds, the first and the last of a series."""

import inspect
import math

import numpy as np
import pytest

from evenhand import metrics
from evenhand.metrics import (
    bootstrap_ci,
    mean_interval,
    paired_sequential_test,
    required_repeats,
    rogan_gladen,
)
from evenhand.metrics.bootstrap import _median_without
from evenhand.metrics.resampling import FEW_VALUES
from evenhand.metrics.types import VarianceSplit

DEFAULTS = {
    "alpha": 0.05,
    "power": 0.8,
    "confidence_level": 0.95,
    "seed": 0,
    "n_resamples": 10_000,
    "scale": 1.0,
    "by": 0.1,
    "alternative": "two-sided",
}


@pytest.mark.parametrize("name", sorted(name for name in dir(metrics) if not name.startswith("_")))
def test_defaults_are_the_documented_ones(name: str) -> None:
    function = getattr(metrics, name)
    if inspect.isclass(function) or not callable(function):
        return
    for option, parameter in inspect.signature(function).parameters.items():
        if option in DEFAULTS and parameter.default is not inspect.Parameter.empty:
            assert parameter.default == DEFAULTS[option], option


def test_defaults_reach_the_computation() -> None:
    split = VarianceSplit(within=0.2, between=0.01, total=0.21, n_problems=10, n_values=20)
    assert required_repeats(0.1, split, items=40) == required_repeats(
        0.1, split, items=40, power=0.8, alpha=0.05, alternative="two-sided"
    )


def test_scores_beyond_one_are_no_shares() -> None:
    """Lopsided scores get the interval of a share only if all lie from 0 to 1; 1.05 does not."""
    inside = mean_interval([1.0] * 19 + [0.25])
    beyond = mean_interval([1.05] * 19 + [0.25])
    below = mean_interval([-0.05] + [0.9] * 19)
    assert inside.method.startswith("effective_")
    assert (beyond.method, below.method) == ("t", "t")


def test_the_sequential_test_decides_at_the_first_crossing() -> None:
    """`decided_at` counts from 1: the p-value there is at most alpha, the one before is not."""
    found = paired_sequential_test([1.0] * 60)
    assert found.decided_at is not None
    assert found.p_values[found.decided_at - 1] <= 0.05 < found.p_values[found.decided_at - 2]
    assert found.n == len(found.p_values) == 60
    never = paired_sequential_test([1.0, -1.0] * 10)
    assert never.decided_at is None
    assert never.p_values == sorted(never.p_values, reverse=True)


@pytest.mark.parametrize(("values", "counted"), [(FEW_VALUES, True), (FEW_VALUES + 1, False)])
def test_few_different_values_are_counted(values: int, counted: bool) -> None:
    """Up to 16 different values the counts are drawn; the ends are the same within Monte Carlo error."""
    assert FEW_VALUES == 16
    data = np.tile(np.arange(values, dtype=float) ** 1.5, 6)
    found = bootstrap_ci(data)
    assert ("nomial" in found.method) == counted
    half = 1.96 * data.std() / math.sqrt(data.size)
    assert (found.ci_lower, found.ci_upper) == pytest.approx(
        (data.mean() - half, data.mean() + half), abs=0.2 * half
    )


def test_a_corrected_share_ends_at_one() -> None:
    """A perfect judge that passed all: the interval is cut at 1, and one answer is enough to ask."""
    labels = {"true_positives": 20, "false_negatives": 0, "true_negatives": 20, "false_positives": 0}
    found = rogan_gladen(positives=50, n=50, **labels)
    assert (found.value, found.ci_upper) == (1.0, 1.0)
    assert rogan_gladen(positives=0, n=50, **labels).ci_lower == 0.0
    assert rogan_gladen(positives=1, n=1, **labels).value == 1.0


@pytest.mark.parametrize("size", [3, 4, 7, 8])
def test_medians_without_one_value(size: int) -> None:
    """What the acceleration of a BCa interval of a median is made of, against leaving each value out."""
    ordered = np.sort(np.random.default_rng(size).normal(size=size))
    for index in range(size):
        assert _median_without(ordered, index) == float(np.median(np.delete(ordered, index)))
