"""From samples to pass rates: which problems count for which k."""

import pytest

from evenhand.evaluation.aggregate import Aggregator
from evenhand.results.records import SampleResult


def _summary(rewards: dict[int, list[float | None]], repeats: int) -> dict[str, float | None]:
    aggregator = Aggregator()
    for problem, values in rewards.items():
        for repeat, reward in enumerate(values):
            status = "failed" if reward is None else "scored"
            aggregator.add(
                SampleResult(problem_idx=problem, repeat=repeat, reward=reward, status=status)  # type: ignore[arg-type]
            )
    found = aggregator.summary("b", len(rewards) * repeats).benchmark.scores
    return {name: value.value for name, value in found.items()}


def test_a_problem_counts_for_k_only_with_k_scored_attempts() -> None:
    """Problem 0: 1 of 4; problem 1: 2 of 2, two attempts failed; problem 2: 0 of 1, three failed.

    pass@1 = (¼ + 1 + 0)/3. pass@2: 1 − C(3,2)/C(4,2) = ½ and 1, so ¾; problem 2 has one attempt. pass@4: problem 0
    alone, 1. pass^2: C(1,2) = 0 and 1, so ½; pass^4: 0.
    """
    found = _summary(
        {0: [1.0, 0.0, 0.0, 0.0], 1: [1.0, None, 1.0, None], 2: [None, 0.0, None, None]}, repeats=4
    )
    assert found["pass@1"] == pytest.approx(1.25 / 3)
    assert found["pass@2"] == pytest.approx(0.75)
    assert found["pass@4"] == pytest.approx(1.0)
    assert found["pass^2"] == pytest.approx(0.5)
    assert found["pass^4"] == pytest.approx(0.0)
    assert "pass^1" not in found


def test_exactly_k_attempts_are_enough() -> None:
    found = _summary({0: [1.0, 0.0, None], 1: [0.0, 1.0, None]}, repeats=3)
    assert found["pass@2"] == pytest.approx(1.0)  # 1 − C(1,2)/C(2,2) in both
    assert found["pass^2"] == pytest.approx(0.0)
    assert "pass@3" not in found  # no problem has three


def test_no_pass_rate_from_problems_without_enough_attempts() -> None:
    """Every problem lost one of two attempts: pass@1 is there, pass@2 is not."""
    found = _summary({0: [1.0, None], 1: [None, 0.0]}, repeats=2)
    assert found["pass@1"] == pytest.approx(0.5)
    assert "pass@2" not in found
    assert "pass^2" not in found


def test_graded_rewards_have_no_pass_rate() -> None:
    found = _summary({0: [1.0, 0.5], 1: [0.0, 0.25]}, repeats=2)
    assert found["mean_reward"] == pytest.approx(0.4375)
    assert not any(name.startswith("pass") for name in found)
