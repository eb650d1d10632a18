"""What SimpleQA's and HealthBench's authors report, worked out by hand from their rules."""

from typing import Any

import pytest

from evenhand.evaluation.aggregate import Aggregator
from evenhand.results.records import SampleResult


def scores(samples: list[tuple[float, dict[str, Any]]]) -> dict[str, float | None]:
    aggregator = Aggregator()
    for place, (reward, details) in enumerate(samples):
        aggregator.add(
            SampleResult(
                problem_idx=place,
                reward=reward,
                status="scored",
                scoring_details=details,
                metadata={"category": "c"},
            )
        )
    found = aggregator.summary("b", len(samples)).benchmark
    assert isinstance(found.categories, list)
    assert found.categories[0].mean_reward == found.scores["mean_reward"].value
    return {name: metric.value for name, metric in found.scores.items()}


def test_simpleqa_tells_attempted_from_not_attempted() -> None:
    grades = ["CORRECT"] * 3 + ["INCORRECT"] * 2 + ["NOT_ATTEMPTED"] * 5
    found = scores([(float(grade == "CORRECT"), {"label": grade}) for grade in grades])
    assert found["mean_reward"] == found["correct"] == pytest.approx(0.3)
    assert found["incorrect"] == pytest.approx(0.2)
    assert found["not_attempted"] == pytest.approx(0.5)
    assert found["attempted"] == pytest.approx(0.5)
    assert found["accuracy_given_attempted"] == pytest.approx(0.6)
    # The harmonic mean of 0.6 and 0.3.
    assert found["f1"] == pytest.approx(0.4)


def test_simpleqa_without_an_attempt_has_accuracy_and_f1_of_nothing() -> None:
    found = scores([(0.0, {"label": "NOT_ATTEMPTED"})] * 3)
    assert (found["accuracy_given_attempted"], found["f1"], found["attempted"]) == (0.0, 0.0, 0.0)


def test_other_labels_have_no_such_metrics() -> None:
    assert "f1" not in scores([(1.0, {"label": "GOOD"}), (0.0, {"label": "CORRECT"})])


@pytest.mark.parametrize(
    ("rewards", "mean"), [((-0.5, -0.25, 0.1), 0.0), ((-0.5, 1.0, 1.0), 0.5), ((0.2, 0.4, 0.9), 0.5)]
)
def test_healthbench_cuts_the_mean_and_not_the_samples(rewards: tuple[float, ...], mean: float) -> None:
    found = scores([(reward, {"earned_points": 1.0, "possible_points": 2.0}) for reward in rewards])
    assert found["mean_reward"] == pytest.approx(mean)


def test_rewards_of_other_scorers_are_not_cut() -> None:
    assert scores([(-2.0, {}), (-1.0, {})])["mean_reward"] == -1.5
