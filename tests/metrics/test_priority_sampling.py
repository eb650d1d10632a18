"""Means from a weighted sample: unbiased, covering, and exact once everything is labelled."""

import numpy as np
import pytest

from evenhand.core.objects.reviews import label_weight
from evenhand.metrics.priority_sampling import corrected_by_sample


def world(rng: np.random.Generator, items: int, labels: int) -> tuple[float, float, bool]:
    """One data set with a biased judge: estimate, truth, covered."""
    chance = rng.beta(2, 2, items)
    human = (rng.random(items) < chance).astype(float)
    judge = np.clip(chance + 0.15 + rng.normal(0, 0.1, items), 0, 1)
    weights = [label_weight(value) for value in judge]
    ranks = rng.random(items) / weights
    said: list[float | None] = [None] * items
    for position in np.argsort(ranks)[:labels]:
        said[position] = human[position]
    found = corrected_by_sample(list(judge), said, ranks=list(ranks), weights=weights)
    return found.value, human.mean(), found.contains(human.mean())


def test_unbiased_and_covering() -> None:
    """400 data sets: the judge alone is off by about +0.14; the estimate's mean error is below its own noise."""
    rng = np.random.default_rng(7)
    drawn = [world(rng, 300, 60) for _ in range(400)]
    errors = np.array([value - truth for value, truth, _ in drawn])
    assert abs(errors.mean()) < 3 * errors.std() / 20
    assert np.mean([covered for *_, covered in drawn]) > 0.92


def test_all_labelled_is_the_labels_mean() -> None:
    found = corrected_by_sample([0.2, 0.9, 0.4], [1, 0, 1], ranks=[0.1, 0.3, 0.2], weights=[1, 1, 1])
    assert found.value == pytest.approx(2 / 3)
    assert found.ci_lower == pytest.approx(2 / 3)
    assert found.ci_upper == pytest.approx(2 / 3)


def test_by_hand() -> None:
    """Ranks 0.1, 0.2 | 0.4: t = 0.4, weights 1 and 2: chances 0.4 and 0.8.
    Mean of the judge 0.5; corrections (1 − 0.5)/0.4 and (0 − 0.5)/0.8 sum to 0.625; over 4 items 0.15625."""
    found = corrected_by_sample(
        [0.5] * 4, [1, 0, None, None], ranks=[0.1, 0.2, 0.4, 0.9], weights=[1, 2, 1, 1]
    )
    assert found.value == pytest.approx(0.5 + 0.625 / 4)


def test_a_label_behind_a_gap_is_not_part_of_the_sample() -> None:
    both = [0.3, 0.6, 0.2, 0.8]
    ranks, weights = [0.1, 0.2, 0.3, 0.4], [1.0] * 4
    without = corrected_by_sample(both, [1, 0, None, None], ranks=ranks, weights=weights)
    beyond = corrected_by_sample(both, [1, 0, None, 1], ranks=ranks, weights=weights)
    assert beyond.value == pytest.approx(without.value)


def test_perfect_agreement_is_no_certainty() -> None:
    found = corrected_by_sample(
        [1.0] * 50, [1.0] * 10 + [None] * 40, ranks=[n / 50 for n in range(50)], weights=[1.0] * 50
    )
    assert found.ci_lower < 0.8


def test_too_few_labels() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        corrected_by_sample([0.5, 0.5], [1, None], ranks=[0.1, 0.2], weights=[1, 1])
