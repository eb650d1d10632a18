"""A target without a number is a fault of the data, and never a wrong answer."""

import pytest

from evenhand.core.outcome import Scored, Unscored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput


@pytest.mark.parametrize("name", ["numeric_match", "numeric_tolerance"])
def test_a_target_without_a_number_leaves_the_sample_unscored(name: str) -> None:
    outcome = score_sample(get_scorer(name), ScorerInput(response="5", target="abc"))
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "target_without_number"


@pytest.mark.parametrize("name", ["numeric_match", "numeric_tolerance"])
def test_a_response_without_a_number_is_still_wrong(name: str) -> None:
    outcome = score_sample(get_scorer(name), ScorerInput(response="no digits", target="0"))
    assert isinstance(outcome, Scored)
    assert outcome.value == 0.0
