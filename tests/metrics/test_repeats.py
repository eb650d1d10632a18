"""Several attempts per problem, against the textbook formulas."""

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import (
    mean_interval,
    pass_at_k,
    pass_at_k_interval,
    pass_hat_k,
    pass_hat_k_interval,
    problem_pass_at_k_interval,
    problem_pass_hat_k_interval,
    repeats_interval,
    variance_split,
)


def test_variance_split_as_published() -> None:
    """Snedecor and Cochran (Statistical Methods), calcium in four turnip leaves, four determinations each:
    within 0.0066, between 0.0724."""
    leaves = [
        [3.28, 3.09, 3.03, 3.03],
        [3.52, 3.48, 3.38, 3.38],
        [2.88, 2.80, 2.81, 2.76],
        [3.34, 3.38, 3.23, 3.26],
    ]
    split = variance_split(leaves)
    assert split.within == pytest.approx(0.0066, abs=5e-5)
    assert split.between == pytest.approx(0.0724, abs=5e-5)
    assert split.total == split.within + split.between


def test_variance_split_finds_what_was_put_in_with_unequal_repeats() -> None:
    rng = np.random.default_rng(3)
    values = {i: rng.normal(rng.normal(0, 0.5), 0.3, size=int(rng.integers(1, 8))) for i in range(4000)}
    split = variance_split(values)
    assert split.within == pytest.approx(0.09, rel=0.05)
    assert split.between == pytest.approx(0.25, rel=0.08)


def test_repeats_interval_is_the_stratified_mean() -> None:
    values = [[0.1, 0.4, 0.3], [0.9, 0.8], [0.5, 0.9, 0.7, 0.2]]
    parts = [np.var(v, ddof=1) / len(v) / 9 for v in values]
    df = sum(parts) ** 2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, values, strict=True))
    result = repeats_interval(values)
    assert result.value == pytest.approx(np.mean([np.mean(v) for v in values]))
    assert result.ci_upper - result.value == pytest.approx(scipy.stats.t(df).ppf(0.975) * sum(parts) ** 0.5)
    assert (result.n, result.n_groups) == (9, 3)


def test_fixed_problems_are_more_certain_than_sampled_ones() -> None:
    rng = np.random.default_rng(1)
    chances = rng.choice([0.05, 0.95], size=40)
    values = (rng.random((40, 10)) < chances[:, None]).astype(float)
    fixed = repeats_interval(list(values))
    sampled = mean_interval(values.ravel(), groups=np.repeat(np.arange(40), 10))
    assert fixed.value == pytest.approx(sampled.value)
    assert fixed.ci_upper - fixed.ci_lower < 0.5 * (sampled.ci_upper - sampled.ci_lower)


def test_flawless_repeats_are_not_certain() -> None:
    result = repeats_interval([[1, 1, 1]] * 10)
    assert result.ci_lower == pytest.approx(0.025 ** (1 / 30))
    assert result.method == "repeats_clopper_pearson"


def test_pass_at_k_over_problems_is_the_mean_of_the_unbiased_estimates() -> None:
    counts = [(5, 0), (8, 4), (5, 5), (10, 4), (5, 1), (9, 6), (5, 3)]
    for interval, estimate in ((pass_at_k_interval, pass_at_k), (pass_hat_k_interval, pass_hat_k)):
        values = [estimate(n, c, 2) for n, c in counts]
        assert interval(counts, 2) == mean_interval(values)
        assert interval(counts, 2).value == pytest.approx(np.mean(values))
    values = [c / n for n, c in counts]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    result = pass_at_k_interval(counts, 1)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((expected.low, expected.high))


def test_one_problem_has_its_own_interval() -> None:
    chance = scipy.stats.binomtest(3, 8).proportion_ci(0.95, method="exact")
    at, hat = problem_pass_at_k_interval(8, 3, 4), problem_pass_hat_k_interval(8, 3, 4)
    assert (at.ci_lower, at.ci_upper) == pytest.approx(
        (1 - (1 - chance.low) ** 4, 1 - (1 - chance.high) ** 4)
    )
    assert (hat.ci_lower, hat.ci_upper) == pytest.approx((chance.low**4, chance.high**4))
    assert pass_at_k_interval([(8, 3)], 4) == at


def test_bad_repeats_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^counts: problem 1: k:"):
        pass_at_k_interval([(5, 2), (3, 1)], 4)
    with pytest.raises(ValueError, match=r"^counts:"):
        pass_at_k_interval([], 1)
    with pytest.raises(ValueError, match=r"^values_by_problem:"):
        repeats_interval([[1.0], [0.0]])
    with pytest.raises(ValueError, match=r"^values_by_problem:"):
        variance_split([[1.0, 0.5]])
    with pytest.raises(ValueError, match=r"^values_by_problem:"):
        variance_split([[1.0, float("nan")], [1.0, 0.5]])
    with pytest.raises(ValueError, match=r"^values_by_problem:"):
        repeats_interval([[], [1.0, 0.5]])
