"""Paired comparison: McNemar, sign, sign-flip and the difference with its interval."""

import itertools

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import mcnemar, paired_difference, permutation_test, sign_test


def test_mcnemar_is_the_exact_binomial_test() -> None:
    for losses, wins in itertools.product(range(8), range(8)):
        if losses + wins:
            for side in ("two-sided", "less", "greater"):
                expected = scipy.stats.binomtest(wins, losses + wins, alternative=side).pvalue
                assert mcnemar(losses, wins, alternative=side).p_value == pytest.approx(expected)


def test_mid_p_as_published() -> None:
    """Fagerland, Lydersen and Laake (2013), table 1 (airway responsiveness): b = 1, c = 7 gives exact 0.0703, mid-p 0.0391."""
    assert mcnemar(1, 7).p_value == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar(1, 7, mid_p=True).p_value == pytest.approx(0.0391, abs=5e-5)


def test_no_discordant_pair_is_no_evidence() -> None:
    assert mcnemar(0, 0).p_value == 1.0
    assert mcnemar(0, 0, mid_p=True).p_value == 1.0


def test_the_sign_test_leaves_zeros_out() -> None:
    result = sign_test([0.1, 0.2, 0.0, -0.1, 0.5, 0.0, 0.3])
    assert result.p_value == pytest.approx(scipy.stats.binomtest(4, 5).pvalue)
    assert (result.statistic, result.n) == (4.0, 7)


@pytest.mark.parametrize("side", ["two-sided", "less", "greater"])
def test_sign_flips_are_enumerated_when_few(side: str) -> None:
    """Against the definition, in exact arithmetic on tenths."""
    tenths = [3, -1, 4, 1, -5, 9, 2, 6, 0]
    observed = sum(tenths)

    def counts(total: int) -> bool:
        if side == "two-sided":
            return abs(total) >= abs(observed)
        return total >= observed if side == "greater" else total <= observed

    patterns = list(itertools.product((-1, 1), repeat=len(tenths)))
    share = sum(counts(sum(s * d for s, d in zip(signs, tenths, strict=True))) for signs in patterns) / len(
        patterns
    )
    result = permutation_test([d / 10 for d in tenths], alternative=side)  # type: ignore[arg-type]
    assert result.p_value == pytest.approx(share)
    assert result.monte_carlo_error is None


def test_whole_problems_are_flipped() -> None:
    """Four problems with five repeats each have 2⁴ patterns, not 2²⁰: the smallest two-sided p-value is 1/8."""
    differences = [0.1] * 20
    groups = np.repeat(["a", "b", "c", "d"], 5)
    assert permutation_test(differences, groups=groups).p_value == pytest.approx(1 / 8)
    assert permutation_test(differences).p_value < 0.001


def test_the_paired_difference_is_students_t_of_the_differences() -> None:
    base, candidate = [0.1, 0.5, 0.9, 0.4], [0.2, 0.4, 1.0, 0.9]
    expected = scipy.stats.ttest_rel(candidate, base).confidence_interval()
    result = paired_difference(base, candidate)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((expected.low, expected.high))


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="candidate"):
        paired_difference([1, 0, 1], [1, 0])
