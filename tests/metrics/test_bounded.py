"""The bound for rare, large drops: against closed forms, against drawn shares, and its error rate."""

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.metrics.bounded import lower_mean_bound, p_mean_at_most, with_lowest
from evenhand.metrics.clusters import GroupTotals
from evenhand.metrics.differences import p_at_most
from evenhand.metrics.paired import non_inferiority
from evenhand.metrics.power import flip_minimum_detectable_effect


def test_values_of_zero_and_one_have_the_exact_binomial_test() -> None:
    """Gaffke 2005: for a share it is Clopper and Pearson's test, P(X ≥ x | n, μ)."""
    for x, n, target in ((19, 59, 0.2), (1, 3, 0.5), (5, 5, 0.7), (0, 10, 0.1), (400, 1000, 0.37)):
        values = np.repeat([1.0, 0.0], [x, n - x])
        weighted = with_lowest(GroupTotals(sums=values, sizes=np.ones(n)), 0.0)
        assert p_mean_at_most(weighted, target) == pytest.approx(binom.sf(x - 1, n, target), rel=1e-7)


@pytest.mark.parametrize("n", [2, 20, 59, 1000])
def test_equal_values_have_the_rule_of_three(n: int) -> None:
    """No change in n: 1 − α^(1/n) of them may be lost unseen."""
    assert non_inferiority(np.zeros(n), 0.05).ci_lower == pytest.approx(-(1 - 0.05 ** (1 / n)), rel=1e-7)
    assert non_inferiority(np.zeros(n), 0.05).p_value == pytest.approx(0.95**n, rel=1e-7)
    assert non_inferiority(np.full(n, -1.0), 0.05).ci_lower == -1.0


@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_the_p_value_is_the_share_of_drawn_weights(n: int) -> None:
    """200,000 draws of Dirichlet(1, …, 1): at most 0.0011 off per standard error."""
    rng = np.random.default_rng(n)
    values = np.append(np.clip(rng.normal(0, 0.3, n), -1, 1), -1.0)
    hits = 0
    for _ in range(20):
        draws = rng.exponential(size=(10_000, n + 1))
        hits += int(((draws * (values + 0.05)).sum(axis=1) <= 0).sum())
    p = p_at_most(values[:-1], -0.05, groups=None, scale=1.0)
    assert p == pytest.approx(hits / 200_000, abs=0.005)


def test_bound_and_p_value_belong_together() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 7, 30, 500):
        values = np.round(rng.normal(0, 0.3, n).clip(-1, 1), 2).astype(np.float64)
        weighted = with_lowest(GroupTotals(sums=values, sizes=np.ones(n)), -1.0)
        for alpha in (0.001, 0.025, 0.05, 0.4):
            assert p_mean_at_most(weighted, lower_mean_bound(weighted, alpha)) == pytest.approx(
                alpha, rel=1e-6
            )


def test_large_samples_have_the_normal_bound() -> None:
    values = np.round(np.random.default_rng(2).normal(0, 0.2, 5_000).clip(-1, 1), 3)
    normal = values.mean() - 1.6449 * values.std() / 5_000**0.5
    assert non_inferiority(values, 0.05).ci_lower == pytest.approx(normal, abs=5e-4)


def test_scale_order_and_single_clusters_change_nothing() -> None:
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(0, 0.2, 40).clip(-1, 1), 2)
    one = non_inferiority(values, 0.05)
    assert non_inferiority(values[::-1], 0.05).ci_lower == pytest.approx(one.ci_lower, rel=1e-9)
    assert non_inferiority(values, 0.05, groups=list(range(40))).p_value == one.p_value
    assert non_inferiority(values * 5, 0.25, scale=5.0).p_value == pytest.approx(one.p_value, rel=1e-7)
    assert non_inferiority(np.repeat(values, 3), 0.05, groups=np.repeat(np.arange(40), 3)).p_value == (
        pytest.approx(one.p_value, rel=1e-7)
    )


@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("size", [1.0, 0.5, 0.25])
def test_rare_drops_at_the_limit_are_seldom_ruled_out(n: int, size: float) -> None:
    """Noise of two points, and drops of `size` in 5 points of the whole: 5 % plus three standard errors of 300 trials."""
    rng = np.random.default_rng(n)
    wrong = 0
    for _ in range(300):
        values = np.where(rng.random(n) < 0.05 / size, -size, np.clip(rng.normal(0, 0.02, n), -0.1, 0.1))
        wrong += p_at_most(values, -0.05, groups=None, scale=1.0) <= 0.05
    assert wrong / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_few_problems_show_no_drop_by_sign_flips() -> None:
    """2^−4 is above 5 %: four problems never do. Of five all must fall: Φ(1.708)^5 = 0.8."""
    assert flip_minimum_detectable_effect(0.2, 4, 4) is None
    assert flip_minimum_detectable_effect(0.2, 50, 4) is None
    assert flip_minimum_detectable_effect(0.2, 5, 5) == pytest.approx(0.2 * 1.7075, abs=1e-3)
    found = [flip_minimum_detectable_effect(0.2, n, n) for n in range(5, 40)]
    assert all(one is not None for one in found)
    assert sorted(found, key=lambda one: -(one or 0)) == found
