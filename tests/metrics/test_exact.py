"""Exact decimals: what a person reads is what is compared."""

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.metrics.exact import as_fraction, compare_exactly, exact_mean, exact_sum


def test_five_scores_of_0_8_reach_a_threshold_of_0_8() -> None:
    assert compare_exactly(exact_mean([0.8] * 5), ">=", 0.8)


def test_every_constant_column_reaches_its_own_value() -> None:
    """A naive float mean falls below for 28 % of these."""
    missed = 0
    for cents in range(1, 100):
        for n in range(2, 30):
            value = cents / 100
            missed += sum([value] * n) / n < value
            assert compare_exactly(exact_mean([value] * n), ">=", value)
    assert missed > 0.25 * 99 * 28


def test_text_numbers_and_numpy_are_the_same_value() -> None:
    expected = Fraction(1, 10)
    values = (0.1, "0.1", " 1e-1 ", Decimal("0.1"), np.float64(0.1), Fraction(1, 10))
    assert all(as_fraction(value) == expected for value in values)
    assert as_fraction(True) == 1
    assert as_fraction(np.int64(3)) == 3  # type: ignore[arg-type]


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000))
)
def test_sums_are_exact_in_any_order(values: list[Decimal]) -> None:
    expected = sum((Fraction(value) for value in values), Fraction(0))
    shuffled = values[:]
    random.Random(1).shuffle(shuffled)
    assert exact_sum(values) == exact_sum(shuffled) == expected


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "NaN", "x", "", "1e999999999", None])
def test_what_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="value"):
        as_fraction(bad)  # type: ignore[arg-type]


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="comparison"):
        compare_exactly(1, "~", 1)
    with pytest.raises(ValueError, match="values"):
        exact_mean([])


@pytest.mark.parametrize(("spelling", "expected"), [(">=", True), ("gt", False), ("<=", True), ("ne", False)])
def test_comparisons(spelling: str, expected: bool) -> None:
    assert compare_exactly(0.30000000000000004, spelling, 0.3) is (spelling in (">=", "gt", "ne"))
    assert compare_exactly("0.30", spelling, 0.3) is expected
