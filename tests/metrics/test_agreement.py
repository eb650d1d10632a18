"""Agreement coefficients, against the published examples and the textbook definitions."""

import itertools
import random

import numpy as np
import pytest

from evenhand.metrics import cohen_kappa, fleiss_kappa, krippendorff_alpha

# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]

# Fleiss (1971): ten of his subjects, five categories, fourteen raters (the table reprinted in many textbooks).
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_as_published(level: str, published: float) -> None:
    result = krippendorff_alpha(OBSERVERS, level=level)
    assert result.value == pytest.approx(published, abs=5e-4)
    assert result.ci_lower < published < result.ci_upper
    assert result.n == 11  # the twelfth unit has one rating


def test_fleiss_as_published() -> None:
    assert fleiss_kappa(FLEISS).value == pytest.approx(0.210, abs=5e-4)


def test_cohen_by_hand() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7, expected 0.5, κ = 0.4."""
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    result = cohen_kappa(a, b)
    assert result.value == pytest.approx(0.4)
    # The large-sample standard error of Fleiss, Cohen and Everitt (1969) for this table is 0.1269.
    assert (result.ci_upper - result.ci_lower) / (2 * 1.96) == pytest.approx(0.1269, rel=0.06)


@pytest.mark.parametrize(("weights", "power"), [("linear", 1), ("quadratic", 2)])
def test_weighted_kappa_by_its_definition(weights: str, power: int) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(1, 6, 200)
    b = np.clip(a + rng.integers(-1, 3, 200), 1, 5)
    observed = np.mean(np.abs(a - b) ** power)
    expected = np.mean([abs(int(x) - int(y)) ** power for x, y in itertools.product(a, b)])
    assert cohen_kappa(a, b, weights=weights).value == pytest.approx(1 - observed / expected)


def test_quadratic_kappa_needs_the_order_of_the_labels() -> None:
    a, b = ["low", "mid", "high", "mid", "low"], ["low", "high", "high", "mid", "mid"]
    ranks = {"low": 0, "mid": 1, "high": 2}
    expected = cohen_kappa([ranks[x] for x in a], [ranks[x] for x in b], weights="quadratic")
    assert cohen_kappa(a, b, weights="quadratic", labels=["low", "mid", "high"]) == expected


def test_alpha_of_two_full_raters_is_near_kappa() -> None:
    """For nominal data and two raters α differs from Scott's π by the factor (n − 1)/n only."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 500)
    b = np.where(rng.random(500) < 0.7, a, rng.integers(0, 3, 500))
    n = 1000
    shares = np.bincount(np.concatenate((a, b))) / n
    pi = 1 - (a != b).mean() / (1 - (shares**2).sum())
    assert 1 - krippendorff_alpha(np.array([a, b])).value == pytest.approx((1 - pi) * (n - 1) / n)


def test_order_of_items_does_not_matter() -> None:
    rows = FLEISS[:]
    random.Random(3).shuffle(rows)
    assert fleiss_kappa(rows) == fleiss_kappa(FLEISS)
    columns = list(zip(*OBSERVERS, strict=True))
    random.Random(4).shuffle(columns)
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(list(zip(*columns, strict=True)), level=level) == krippendorff_alpha(
            OBSERVERS, level=level
        )


@pytest.mark.parametrize(("n", "lower"), [(10, 0.3830), (30, 0.7686), (1_000, 0.9926)])
def test_agreement_on_every_item_is_no_certainty(n: int, lower: float) -> None:
    """Half passes, half failures: chance disagrees on half, so κ = 1 − (1 − 0.025^(1/n))/0.5 goes unseen."""
    found = cohen_kappa([0, 1] * (n // 2), [0, 1] * (n // 2))
    assert (found.value, found.ci_upper) == (1.0, 1.0)
    assert found.ci_lower == pytest.approx(2 * 0.025 ** (1 / n) - 1)
    assert found.ci_lower == pytest.approx(lower, abs=1e-4)


def test_agreement_on_rare_labels_proves_less() -> None:
    few = cohen_kappa([0] * 27 + [1] * 3, [0] * 27 + [1] * 3)
    half = cohen_kappa([0] * 15 + [1] * 15, [0] * 15 + [1] * 15)
    assert few.ci_lower < half.ci_lower


def test_undefined_agreement_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a: .*undefined"):
        cohen_kappa([1, 1, 1], [1, 1, 1])
    with pytest.raises(ValueError, match=r"^table: .*undefined"):
        fleiss_kappa([[3, 0], [3, 0]])
    with pytest.raises(ValueError, match=r"^ratings: .*undefined"):
        krippendorff_alpha([[1, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"^b:"):
        cohen_kappa([1, 2], [1])
    with pytest.raises(ValueError, match=r"^a:"):
        cohen_kappa([], [])
    with pytest.raises(ValueError, match=r"^table:"):
        fleiss_kappa([[3, 0], [2, 0]])
    with pytest.raises(ValueError, match=r"^weights:"):
        cohen_kappa([1, 2], [1, 2], weights="cubic")
    with pytest.raises(ValueError, match=r"^level:"):
        krippendorff_alpha([[1, 2], [1, 2]], level="ratio")
    with pytest.raises(ValueError, match=r"^ratings:"):
        krippendorff_alpha([[1, None], [None, 2]])


def test_perfect_agreement_of_many_raters_is_no_certainty() -> None:
    """20 items, all agreed, half of them in each of two classes: chance disagreement 1/2, so the worst item counts double.

    A share of 1 − 0.025^(1/20) = 0.1684 of such items would go unseen: 1 − 2 × 0.1684. Krippendorff's chance is that
    of 60 ratings without replacement: 60·59/(2·30·30) = 1.9667 times.
    """
    unseen = 1 - 0.025 ** (1 / 20)
    fleiss = fleiss_kappa([[3, 0]] * 10 + [[0, 3]] * 10)
    assert (fleiss.value, fleiss.ci_upper, fleiss.method) == (1.0, 1.0, "constant")
    assert fleiss.ci_lower == pytest.approx(1 - 2 * unseen)
    ratings = [[0] * 10 + [1] * 10] * 3
    for level in ("nominal", "ordinal", "interval"):
        alpha = krippendorff_alpha(ratings, level=level)
        assert (alpha.value, alpha.ci_upper) == (1.0, 1.0)
        assert alpha.ci_lower == pytest.approx(1 - unseen * 60 * 59 / (2 * 30 * 30))


def test_items_that_are_all_alike_do_not_make_alpha_certain() -> None:
    """Two raters who disagree on every unit in the same way: no resample differs, and ten units are no proof."""
    found = krippendorff_alpha([["a"] * 10, ["b"] * 10])
    assert found.ci_lower < found.value < found.ci_upper
    assert found.method == "constant"
    many = krippendorff_alpha([["a"] * 1_000, ["b"] * 1_000])
    assert many.ci_upper - many.ci_lower < found.ci_upper - found.ci_lower
