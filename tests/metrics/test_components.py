"""Variance by items, repeats and judge: hand arithmetic, known truth, and what less of it costs."""

from typing import Any

import numpy as np
import pytest

from evenhand.metrics import VarianceComponents, variance_components, variance_split, ways_to_reduce


def test_a_balanced_table_by_hand() -> None:
    """Two items, two answers, two judgements each.

    Judge: each answer's judgements differ by 2, so each has Σ(y − ȳ)² = 2; 4 · 2/(8 − 4) = 2.
    Repeats: answer means 1, 5 | 11, 17; around item means 3 and 14: 2·(4 + 4 + 9 + 9)/(4 − 2) = 26 = σ²_j + 2σ²_r.
    Items: 4·(5.5² + 5.5²)/(2 − 1) = 242 = σ²_j + 2σ²_r + 4σ²_i.
    """
    found = variance_components([[[0, 2], [4, 6]], [[10, 12], [16, 18]]])
    assert found.judge == pytest.approx(2)
    assert found.repeats == pytest.approx((26 - 2) / 2)
    assert found.items == pytest.approx((242 - 26) / 4)
    assert found.total == pytest.approx(2 + 12 + 54)
    # 54/10 + 12/(10·3) + 2/(10·3·4)
    assert found.variance_of_mean(items=10, repeats=3, judgements=4) == pytest.approx(5.4 + 0.4 + 1 / 60)


def test_an_unbalanced_table_by_hand() -> None:
    """Item a has answers (0, 2) and (5); item b has (3).

    N = 4, b = 3, a = 2. Judge: 2/(4 − 3) = 2. Item a: mean 7/3; repeats: 2·(1 − 7/3)² + (5 − 7/3)² = 32/3 over 1;
    k₁ = 4 − (4 + 1)/3 − 1 = 4/3; σ²_r = (32/3 − 2)/(4/3) = 6.5. Items: grand mean 2.5;
    3·(7/3 − 2.5)² + 0.25 = 1/3; k₂ = (5/3 + 1) − 6/4 = 7/6: σ²_i = (1/3 − 2 − 7/6 · 6.5)/k₃ < 0, so 0.
    """
    found = variance_components({"a": [[0, 2], [5]], "b": [[3]]})
    assert found.judge == pytest.approx(2)
    assert found.repeats == pytest.approx(6.5)
    assert found.items == 0.0


def test_the_truth_is_found_on_average() -> None:
    """Unequal numbers everywhere; true variances 1, 0.49 and 0.25. The mean of 200 estimates is off by 0.06 at most."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        scores = [
            [
                rng.normal(item + answer, 0.5, rng.integers(1, 4)).tolist()
                for answer in rng.normal(0, 0.7, rng.integers(1, 5))
            ]
            for item in rng.normal(0, 1, 30)
        ]
        one = variance_components(scores)
        found.append([one.items, one.repeats or 0.0, one.judge or 0.0])
    assert np.mean(found, axis=0) == pytest.approx([1.0, 0.49, 0.25], abs=0.06)


def test_what_was_not_repeated_is_not_told_apart() -> None:
    once = variance_components([[[0.0], [1.0]], [[1.0], [1.0]], [[0.0]]])
    assert once.judge is None
    split = variance_split([[0.0, 1.0], [1.0, 1.0], [0.0]])
    assert once.repeats == pytest.approx(split.within)
    assert once.items == pytest.approx(split.between)
    single = variance_components([[[0.0]], [[1.0]], [[1.0]]])
    assert (single.judge, single.repeats) == (None, None)
    assert single.items == pytest.approx(1 / 3)  # the sample variance of 0, 1, 1
    judged_twice = variance_components([[[0.0, 1.0]], [[1.0, 1.0]]])
    assert judged_twice.repeats is None
    assert judged_twice.judge == pytest.approx(0.25)  # ½ over 4 − 2


def test_order_and_labels_do_not_matter() -> None:
    one = variance_components({"x": [[0.1, 0.7], [0.3]], "y": [[0.2]], "z": [[0.9], [0.4, 0.5]]})
    two = variance_components([[[0.4, 0.5], [0.9]], [[0.3], [0.7, 0.1]], [[0.2]]])
    assert one == two


def test_what_a_smaller_error_costs() -> None:
    """Variances 0.1, 0.2 and 0.05 with 100 items × 2 answers × 1 judgement: 0.001 + 0.001 + 0.00025 = 0.00225.

    A tenth less error is 0.81 · 0.00225 = 0.0018225. Items: 100/0.81 = 123.5. Repeats: (0.00125 · 2)/(0.0018225 −
    0.001) = 3.04. Judgements: 0.002 stays whatever is done.
    """
    parts = VarianceComponents(items=0.1, repeats=0.2, judge=0.05)
    items, repeats, judge = ways_to_reduce(parts, items=100, repeats=2, answer_cost=0.01, judge_cost=0.001)
    assert (items.lever, items.now, items.needed) == ("items", 100, 124)
    assert items.extra_cost == pytest.approx(24 * 2 * 0.011)
    assert items.share == pytest.approx(1.0)
    assert (repeats.lever, repeats.now, repeats.needed) == ("repeats", 2, 4)
    assert repeats.extra_cost == pytest.approx(200 * 0.011)
    assert repeats.share == pytest.approx(0.00125 / 0.00225)
    assert (judge.lever, judge.now, judge.needed, judge.extra_cost) == ("judgements", 1, None, None)
    assert judge.share == pytest.approx(0.00025 / 0.00225)


def test_a_noisy_judge_is_asked_again() -> None:
    """Judge 0.8 of a variance of 1: (0.8/n + 0.2) ≤ 0.81 needs 1.31 judgements; only judgements are paid for."""
    parts = VarianceComponents(items=0.1, repeats=0.1, judge=0.8)
    _, _, judge = ways_to_reduce(parts, items=50, item_cost=3.0, answer_cost=1.0, judge_cost=0.5)
    assert judge.needed == 2
    assert judge.extra_cost == pytest.approx(50 * 0.5)
    halved = ways_to_reduce(parts, items=50, by=0.5)
    # a quarter of the variance: items 200; repeats 0.9/(0.25 − 0.1) = 6; judgements: 0.2 stays, 0.8/0.05 = 16
    assert [one.needed for one in halved] == [200, 6, 16]
    assert [one.extra_cost for one in halved] == [0.0, 0.0, 0.0]


def test_parts_that_are_not_known_are_not_promised() -> None:
    items, repeats, judge = ways_to_reduce(VarianceComponents(items=1.0, repeats=None, judge=None), items=81)
    assert items.needed == 100  # 81/0.81, exactly
    assert (repeats.share, repeats.needed, judge.share, judge.needed) == (None, None, None, None)
    still = ways_to_reduce(VarianceComponents(items=0.0, repeats=0.0, judge=0.0), items=3)
    assert [one.needed for one in still] == [None, None, None]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([[[1.0]]], "at least 2 items"),
        ([[[1.0]], []], "at least one answer"),
        ([[[1.0]], [[]]], "must not be empty"),
        ([[[1.0]], [[float("nan")]]], "finite"),
    ],
)
def test_bad_scores(scores: list[list[list[float]]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        variance_components(scores)


@pytest.mark.parametrize(
    "options", [{"items": 0}, {"repeats": 0}, {"by": 1.0}, {"by": 0.0}, {"answer_cost": -1.0}]
)
def test_bad_options(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=name):
        ways_to_reduce(VarianceComponents(items=1.0, repeats=1.0, judge=1.0), **{"items": 5, **options})
