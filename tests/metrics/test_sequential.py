"""Anytime-valid inference: the capital by hand, and error rates under looking after every sample."""

import numpy as np
import pytest

from evenhand.metrics import confidence_sequence, mean_interval, paired_sequential_test


def test_the_capital_by_hand() -> None:
    """d = (1, 1, −1): bets are fixed before each value, from the values before it.

    Bet 1: mean 0 → 0. Bet 2: (1/3)/((1 + 2)/3) = 1/3, capital 4/3. Bet 3: (2/4)/((2 + 2)/4) = 1/2, capital
    4/3 · 1/2 = 2/3.
    """
    result = paired_sequential_test([1, 1, -1], alternative="greater")
    assert result.e_value == pytest.approx(2 / 3)
    assert result.p_values == pytest.approx([1.0, 0.75, 0.75])
    assert result.decided_at is None


def test_the_error_rate_holds_under_looking_after_every_pair() -> None:
    """2,000 experiments of 400 pairs with no difference: at most 5 % ever decide. The t-test looked at as
    often decides in about a third of them."""
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(2000):
        differences = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=400)
        decided += paired_sequential_test(differences).decided_at is not None
    assert decided / 2000 <= 0.05
    sums = np.cumsum(rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(2000, 400)), axis=1)
    t = np.arange(1, 401)
    naive = (np.abs(sums[:, 20:]) > 1.96 * np.sqrt(0.2 * t[20:])).any(axis=1).mean()
    assert naive > 0.25


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(2)
    differences = rng.choice([-1.0, 0.0, 1.0], p=[0.02, 0.83, 0.15], size=600)
    result = paired_sequential_test(differences)
    assert result.decided_at is not None
    assert result.decided_at < 300
    assert paired_sequential_test(differences, alternative="less").decided_at is None


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_the_whole_sequence_covers(p: float) -> None:
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(300):
        sequence = confidence_sequence((rng.random(200) < p).astype(float))
        lower, upper = np.array(sequence.ci_lower), np.array(sequence.ci_upper)
        missed += not ((lower <= p) & (p <= upper)).all()
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper) <= 0).all()
    assert missed / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_the_price_of_looking_is_modest() -> None:
    values = (np.random.default_rng(4).random(2000) < 0.7).astype(float)
    sequence = confidence_sequence(values, every=500)
    fixed = mean_interval(values)
    assert len(sequence.value) == 4
    assert sequence.ci_upper[-1] - sequence.ci_lower[-1] < 2.5 * (fixed.ci_upper - fixed.ci_lower)


def test_bounds_scale() -> None:
    values = np.random.default_rng(5).random(50)
    plain = confidence_sequence(values)
    scaled = confidence_sequence(1 + 4 * values, bounds=(1, 5))
    assert scaled.ci_lower == pytest.approx([1 + 4 * x for x in plain.ci_lower])


def test_values_out_of_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^values:"):
        confidence_sequence([0.5, 1.5])
    with pytest.raises(ValueError, match=r"^bounds:"):
        confidence_sequence([0.5], bounds=(1, 0))
    with pytest.raises(ValueError, match=r"^differences:"):
        paired_sequential_test([2.0])
    with pytest.raises(ValueError, match=r"^bounds:"):
        paired_sequential_test([0.5], bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"^differences:"):
        paired_sequential_test([])
