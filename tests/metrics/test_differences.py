"""Intervals of paired differences, non-inferiority and effect sizes."""

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import (
    cohens_d_paired,
    matched_odds_ratio,
    non_inferiority,
    paired_difference,
    unpaired_difference,
    win_rate,
)


def test_passes_and_failures_get_the_adjusted_wald_interval() -> None:
    """Bonett and Price's formula with w = 7, l = 1, n = 21."""
    base = [1.0] * 1 + [0.0] * 7 + [1.0] * 7 + [0.0] * 6
    candidate = [0.0] * 1 + [1.0] * 7 + [1.0] * 7 + [0.0] * 6
    wins, losses = 8 / 23, 2 / 23
    half = 1.959963984540054 * ((wins + losses - (wins - losses) ** 2) / 23) ** 0.5
    result = paired_difference(base, candidate)
    assert result.value == pytest.approx(6 / 21)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((wins - losses - half, wins - losses + half))
    assert result.method == "bonett_price"


def test_equal_arms_are_not_certain_to_be_equal() -> None:
    same = [1.0] * 18 + [0.0] * 2
    assert paired_difference(same, same).ci_lower < -0.1
    graded = list(np.linspace(0, 1, 20))
    assert paired_difference(graded, graded).ci_lower < -0.1
    assert paired_difference(same, same, groups=[i // 2 for i in range(20)]).ci_lower < -0.05
    assert not non_inferiority(np.zeros(20), 0.05).established
    assert non_inferiority(np.zeros(2000), 0.05).established


def test_without_a_scale_non_inferiority_is_a_one_sided_t_test_against_the_margin() -> None:
    differences = [-0.04, 0.03, -0.02, 0.08, -0.01, -0.03, 0.02, -0.05, 0.04, -0.01]
    assert scipy.stats.skew(differences) > 0  # negative skewness would be corrected for, see below
    expected = scipy.stats.ttest_1samp(differences, -0.05, alternative="greater")
    result = non_inferiority(differences, 0.05, scale=None)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.ci_lower == pytest.approx(expected.confidence_interval(0.95).low)
    assert result.established is (result.p_value < 0.05)


def test_non_inferiority_and_its_p_value_decide_alike() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(12), 5)
    for _ in range(50):
        differences = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=60)
        for codes in (None, groups):
            result = non_inferiority(differences, 0.08, groups=codes)
            assert result.established is (result.p_value < 0.05)


def test_cohens_d_inverts_the_noncentral_t() -> None:
    rng = np.random.default_rng(8)
    base = rng.normal(size=30)
    candidate = base + rng.normal(0.4, 1.0, size=30)
    result = cohens_d_paired(base, candidate)
    t = scipy.stats.ttest_rel(candidate, base).statistic
    assert result.value == pytest.approx(t / 30**0.5)
    assert scipy.stats.nct(29, result.ci_lower * 30**0.5).sf(t) == pytest.approx(0.025, abs=1e-6)
    assert scipy.stats.nct(29, result.ci_upper * 30**0.5).cdf(t) == pytest.approx(0.025, abs=1e-6)
    swapped = cohens_d_paired(candidate, base)
    assert (swapped.ci_lower, swapped.ci_upper) == pytest.approx((-result.ci_upper, -result.ci_lower))


def test_odds_and_win_rates() -> None:
    odds = matched_odds_ratio(10, 20)
    chance = scipy.stats.binomtest(20, 30).proportion_ci(0.95, method="exact")
    assert odds.value == 2.0
    assert (odds.ci_lower, odds.ci_upper) == pytest.approx(
        (chance.low / (1 - chance.low), chance.high / (1 - chance.high))
    )
    assert win_rate([1, 2, 3, 4], [2, 2, 2, 5]).value == 0.625


def test_unpaired_arms_as_published() -> None:
    """Newcombe (1998), Statistics in Medicine 17:873, table II, example (a), method 10: 56/70 − 48/80 gives 0.0524 to 0.3339."""
    base, candidate = np.repeat([1.0, 0.0], [48, 32]), np.repeat([1.0, 0.0], [56, 14])
    result = unpaired_difference(base, candidate)
    assert result.value == pytest.approx(0.2)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_unpaired_arms_of_graded_scores_are_near_welch() -> None:
    rng = np.random.default_rng(6)
    base, candidate = rng.normal(0, 1, 80), rng.normal(0.3, 2, 60)
    expected = scipy.stats.ttest_ind(candidate, base, equal_var=False).confidence_interval()
    result = unpaired_difference(base, candidate)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((expected.low, expected.high), abs=0.02)
    assert unpaired_difference(candidate, base).ci_lower == pytest.approx(-result.ci_upper)
    with pytest.raises(ValueError, match=r"^candidate_groups:"):
        unpaired_difference(base, candidate, candidate_groups=[1, 2])


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^margin:"):
        non_inferiority([0.1, 0.2], -0.05)
    with pytest.raises(ValueError, match=r"^differences:"):
        non_inferiority([], 0.05)
    with pytest.raises(ValueError, match=r"^differences:"):
        non_inferiority([0.1, float("inf")], 0.05)
    with pytest.raises(ValueError, match=r"^candidate:"):
        cohens_d_paired([1.0, 2.0], [2.0, 3.0])
    with pytest.raises(ValueError, match=r"^losses:"):
        matched_odds_ratio(0, 3)
    with pytest.raises(ValueError, match=r"^method:"):
        paired_difference([1.0, 2.0], [2.0, 3.0], statistic="median", method="t")


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1]])
def test_equal_gains_on_few_problems_prove_nothing(groups: list[int] | None) -> None:
    """Four times +0.3: with probability 0.05 a share of 1 − 0.05^(1/n) that falls to −1 goes unseen."""
    gains = [0.3] * 4
    n = 4 if groups is None else 2
    found = non_inferiority(gains, 0.01, groups=groups)
    assert found.ci_lower == pytest.approx(0.3 * 0.05 ** (1 / n) - (1 - 0.05 ** (1 / n)))
    assert not found.established
    # Within ±1 a mean of −0.01 allows a share of 0.99/1.3 of +0.3 at most.
    assert found.p_value == pytest.approx((0.99 / 1.3) ** n)
    interval = paired_difference([0.0] * 4, gains, groups=groups)
    assert interval.ci_lower < 0.0 < interval.ci_upper
    assert interval.method.endswith("constant")


@pytest.mark.parametrize("groups", [None, [n // 3 for n in range(24)]])
@pytest.mark.parametrize(
    "differences",
    [[0.0] * 24, [0.25] * 24, [-1.0, 1.0, 0.0] * 8, [0.5, -1.0] + [0.0] * 22, [0.5, -0.25, 0.0] * 8],
)
def test_the_scale_of_the_scores_changes_nothing_but_the_unit(
    differences: list[float], groups: list[int] | None
) -> None:
    """Scores from 0 to 128 instead of from 0 to 1: every end 128 times as far, the same p-value."""
    large = [128.0 * value for value in differences]
    zeros = [0.0] * 24
    one = paired_difference(zeros, differences, groups=groups)
    many = paired_difference(zeros, large, groups=groups, scale=128.0)
    assert many.method == one.method
    assert [many.value, many.ci_lower, many.ci_upper] == pytest.approx(
        [128.0 * one.value, 128.0 * one.ci_lower, 128.0 * one.ci_upper]
    )
    small = non_inferiority(differences, 0.125, groups=groups)
    wide = non_inferiority(large, 16.0, groups=groups, scale=128.0)
    assert (wide.ci_lower, wide.p_value) == pytest.approx((128.0 * small.ci_lower, small.p_value))


def test_without_a_known_scale_nothing_is_added_to_the_differences() -> None:
    few = [0.001] + [0.0] * 99
    assert paired_difference([0.0] * 100, few).method == "bonett_price"
    found = paired_difference([0.0] * 100, few, scale=None)
    # Student's t of one 0.001 in a hundred: mean 1e-5, standard error 1e-5.
    assert found.method == "t"
    assert found.standard_error == pytest.approx(1e-5)


def test_equal_gains_on_many_problems_do() -> None:
    assert non_inferiority([0.3] * 200, 0.01).established
    assert non_inferiority([-0.3] * 200, 0.01).p_value == 1.0
