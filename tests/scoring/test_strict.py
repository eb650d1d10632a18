"""The strict scorers: every acceptance criterion of the scoring specification, and hostile values."""

import math
from typing import Any

import pytest

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.scoring.apply import check_options, score_sample
from evenhand.scoring.registry import get_scorer, get_wire_scorer
from evenhand.scoring.types import ScorerInput

PARTS = [{"type": "text", "text": "Paris"}]
"""A chat message's content: JSON as any other here."""


def run_rule(name: str, output: Any, expected: Any, options: dict[str, Any]) -> Outcome:
    """Score as the service does: by the contract's name, with JSON options and a JSON output."""
    scorer = get_wire_scorer(name).configure_from_json(options)
    check_options(scorer)
    return score_sample(scorer, ScorerInput(response=output, target=expected))


def value(outcome: Outcome) -> float | str:
    assert isinstance(outcome, Scored), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("rule", "output", "expected", "config", "score"),
    [
        ("exact_match", "Paris", "paris", {"case_sensitive": False, "strip_whitespace": True}, 1.0),
        ("exact_match", "  Paris  ", "paris", {"case_sensitive": False, "strip_whitespace": True}, 1.0),
        ("exact_match", "  Paris  ", "Paris", {}, 1.0),
        ("exact_match", "  Paris  ", "Paris", {"strip_whitespace": False}, 0.0),
        ("exact_match", "Paris", "paris", {}, 0.0),
        ("exact_match", "Paris.", "Paris", {}, 0.0),
        ("exact_match", "STRASSE", "straße", {"case_sensitive": False}, 1.0),
        ("exact_match", {"b": 1, "a": [1, 2]}, {"a": [1, 2], "b": 1}, {}, 1.0),
        ("exact_match", {"a": 1.0}, {"a": 1}, {}, 1.0),
        ("exact_match", {"a": True}, {"a": 1}, {}, 0.0),
        ("exact_match", [1, 2], [2, 1], {}, 0.0),
        ("exact_match", PARTS, PARTS, {}, 1.0),
        ("exact_match", PARTS, "Paris", {}, 0.0),
        ("exact_match", '{"a":1}', {"a": 1}, {}, 1.0),
        ("exact_match", "42", 42, {}, 1.0),
        ("exact_match", "", "", {}, 1.0),
        ("exact_match", "x\x00\ud800", "x\x00\ud800", {}, 1.0),
        ("contains", "The capital of France is Paris, a beautiful city", "Paris", {}, 1.0),
        ("contains", "The capital of France is paris", "Paris", {"case_sensitive": True}, 0.0),
        ("contains", "The capital of France is paris", "Paris", {"case_sensitive": False}, 1.0),
        ("contains", {"city": "Paris"}, "Paris", {}, 1.0),
        ("regex", "Order ID: ABC-12345", None, {"pattern": r"[A-Z]+-\d+"}, 1.0),
        ("regex", "Order confirmed", None, {"pattern": r"[A-Z]+-\d+"}, 0.0),
        ("regex", "order id: abc-1", None, {"pattern": r"[A-Z]+-\d+", "flags": "i"}, 1.0),
        ("regex", "a\nb", None, {"pattern": "a.b", "flags": "s"}, 1.0),
        ("regex", "a\nb", None, {"pattern": "^b$", "flags": "m"}, 1.0),
        ("regex", {"id": 12}, None, {"pattern": r'"id":\d+'}, 1.0),
    ],
)
def test_scores(rule: str, output: Any, expected: Any, config: dict[str, Any], score: float) -> None:
    assert value(run_rule(rule, output, expected, config)) == score


@pytest.mark.parametrize("rule", ["exact_match", "contains"])
def test_without_an_expected_output_there_is_no_score_and_no_error(rule: str) -> None:
    outcome = run_rule(rule, "x", None, {})
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "no_expected_output"
    assert isinstance(run_rule(rule, None, "x", {}), Unscored)


@pytest.mark.parametrize(
    ("rule", "config", "message"),
    [
        ("regex", {"pattern": "[invalid"}, "invalid pattern: unterminated character set at position 0"),
        ("regex", {}, "needs the option 'pattern'"),
        ("regex", {"pattern": 3}, "option 'pattern': expected `str`, got `int`"),
        ("regex", {"pattern": "a", "flags": "q"}, "unknown flag 'q'"),
        ("regex", {"pattern": "a" * 1001}, "1,001 characters"),
        ("regex", {"pattern": "(" * 500 + ")" * 500}, "invalid pattern"),
        ("exact_match", {"case_sensitive": "no"}, "option 'case_sensitive': expected `bool`, got `str`"),
        ("contains", {"case": True}, "no option 'case'; its options: case_sensitive"),
    ],
)
def test_a_bad_configuration_is_an_option_error(rule: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        run_rule(rule, "x", "x", config)
    assert message in str(caught.value)


def test_the_contract_and_the_library_call_two_scorers_by_one_name() -> None:
    assert get_wire_scorer("exact_match") is get_scorer("strict_match")
    assert get_wire_scorer("normalized_match") is get_scorer("normalized_match") is get_scorer("exact_match")
    assert value(run_rule("exact_match", "Paris.", "paris", {})) == 0.0
    assert value(run_rule("normalized_match", "Paris.", "paris", {})) == 1.0


def test_other_accepted_answers_do_not_stand_in_for_the_expected_output() -> None:
    sample = ScorerInput(response="", target=None, metadata={"correct_answers": ["x"]})
    for name in ("strict_match", "contains"):
        outcome = score_sample(get_scorer(name), sample)
        assert isinstance(outcome, Unscored)
        assert outcome.reason == "no_expected_output"


@pytest.mark.parametrize("target", [{"a": math.nan}, {"a": "\ud800"}, {"a": object()}])
def test_a_target_that_json_cannot_carry_fails_and_is_no_zero(target: Any) -> None:
    outcome = score_sample(get_scorer("strict_match"), ScorerInput(response="x", target=target))
    assert isinstance(outcome, Failed)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a|a)+$", "(?:a+)+$|ü", r"(\w+\s?)+$"])
@pytest.mark.parametrize("text", ["a" * 40 + "!", "é" + "a" * 40 + "!\n"])
def test_a_catastrophic_pattern_costs_little_or_is_cut_off(pattern: str, text: str) -> None:
    outcome = run_rule("regex", text, None, {"pattern": pattern})  # uncut it would take hours
    if isinstance(outcome, Failed):
        assert outcome.error == "scorer_timeout"
        assert "timed out" in outcome.message
    else:
        assert value(outcome) == 0.0


def test_look_around_runs_and_is_cut_off() -> None:
    assert value(run_rule("regex", "price 12€", None, {"pattern": r"\d+(?=€)"})) == 1.0
    assert value(run_rule("regex", "abab", None, {"pattern": r"(ab)\1"})) == 1.0
    # Uncut it would take hours.
    outcome = run_rule("regex", "a" * 5000, None, {"pattern": r"(?=.*.*.*.*=.*x)a"})
    assert isinstance(outcome, Failed)
    assert outcome.error == "scorer_timeout"


def test_a_text_past_the_limit_fails_with_a_reason() -> None:
    outcome = run_rule("regex", "a" * 1_000_001, None, {"pattern": "a"})
    assert isinstance(outcome, Failed)
    assert outcome.error == "response_too_long"
