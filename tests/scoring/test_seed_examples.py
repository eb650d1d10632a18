"""Every printed example of the scoring primitives, word for word."""

from evenhand import (
    ScorerInput,
    answer_line,
    exact_match,
    fuzzy_match,
    multichoice_regex,
    numeric_match,
)
from evenhand.scoring import validate_json_schema


def test_exact_match() -> None:
    s = ScorerInput(response="  Paris.  ", target="paris")
    assert exact_match(s) == {"correct": True}


def test_multichoice_regex() -> None:
    s = ScorerInput(response="The answer is B because...\nAnswer: B", target="B")
    assert multichoice_regex(s) == {"correct": True, "extracted": "B"}
    assert multichoice_regex(s, pattern=r"(?i)Answer\s*:\s*([A-J])") == {"correct": True, "extracted": "B"}


def test_answer_line() -> None:
    s = ScorerInput(response="Step 1: ...\nAnswer: 42", target="42")
    assert answer_line(s) == {"correct": True, "extracted": "42"}


def test_numeric_match() -> None:
    s = ScorerInput(response="The total is 20 + 22 = 42", target="42")
    assert numeric_match(s) == {"correct": True, "extracted": "42"}


def test_fuzzy_match() -> None:
    s = ScorerInput(
        response="The capital is Canberra.",
        target="Canberra",
        metadata={"correct_answers": ["Canberra", "canberra"]},
    )
    assert fuzzy_match(s) == {"correct": True, "extracted": "The capital is Canberra."}


def test_validate_json_schema() -> None:
    response_text = '{"answer": "42"}'
    result = validate_json_schema(response_text, schema={"type": "object", "required": ["answer"]})
    assert result == {"valid": True, "extracted": {"answer": "42"}, "score": 1.0}
