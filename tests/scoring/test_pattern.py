"""Scorers that find the answer by its form."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import grows_no_faster_than_linearly

from evenhand.core.errors import OptionError
from evenhand.scoring.math_text import normalize_math
from evenhand.scoring.pattern import (
    answer_line,
    multichoice_regex,
    numeric_match,
    numeric_tolerance,
    regex_match,
)
from evenhand.scoring.quantity import last_number
from evenhand.scoring.types import ScorerInput


def numeric(response: str, target: Any) -> bool:
    return bool(numeric_match(ScorerInput(response=response, target=target))["correct"])


def line(response: str, target: Any) -> bool:
    return bool(answer_line(ScorerInput(response=response, target=target))["correct"])


@pytest.mark.parametrize(
    ("response", "target", "correct"),
    [
        ("100", "10", False),
        ("10", "100", False),
        ("42.0", "42", True),
        ("no digits", "0", False),
        ("1e3", "1,000", True),
        ("1,000", "1000", True),
        ("0", "0", True),
        ("−0.5", "-.5", True),
        ("20-22", "22", True),
        ("it is -22", "-22", True),
        ("it is -22", "22", False),
        ("-$1,234.50.", "-1234.5", True),
        ("(x) - 3", "3", True),
        ("2, 3 and 4.", "4", True),
        ("1.5E-3 m", "0.0015", True),
        ("version 1.2.3", "3", True),
        ("50%", 50, True),
        ("half of it is 0.50", 0.5, True),
        ("٤٢", "42", True),
        ("1", True, False),
        ("5", "five", False),
        ("1e999999999999999999999", "1", False),
        ("9" * 5000, "9" * 5000, True),
        ("9" * 5000, "9" * 4999 + "8", False),
    ],
)
def test_numeric_match(response: str, target: Any, correct: bool) -> None:
    assert numeric(response, target) is correct


def test_without_a_number_nothing_is_extracted() -> None:
    sample = ScorerInput(response="no digits", target="0")
    assert numeric_match(sample) == {"correct": False, "extracted": None}


def test_numeric_match_agrees_with_all_graded_solutions(shared_data: Path) -> None:
    """5,276 solutions that four models gave to GSM8K, graded by its authors."""
    with (shared_data / "gsm8k_model_solutions.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(row) for row in file]
    assert len(rows) == 5276
    differing = [r for r in rows if numeric(r["solution"], r["target"]) != r["is_correct"]]
    assert differing == []


@given(
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(alphabet="abc xyz\n"),
    st.text(alphabet="abc xyz.\n"),
)
def test_a_number_is_found_wherever_it_stands(number: Decimal, before: str, after: str) -> None:
    found = last_number(f"{before} {number} {after}")
    assert found is not None
    assert found.value == number


@given(st.text(alphabet="0123456789.,eE+-−$ x(\n"))
def test_the_search_from_the_end_finds_what_a_search_from_the_start_finds(text: str) -> None:
    from evenhand.scoring import quantity

    every = quantity._NUMBER.findall(text)
    found = last_number(text)
    if not every:
        assert found is None
    else:
        assert found is not None
        assert found.text == every[-1].translate(quantity._EXTRA)


@given(st.text(), st.text())
def test_pattern_scorers_never_raise(response: str, target: str) -> None:
    sample = ScorerInput(response=response, target=target)
    for score in (multichoice_regex, answer_line, numeric_match, numeric_tolerance):
        assert isinstance(score(sample)["correct"], bool)


@pytest.mark.parametrize(("part", "end"), [("1", ""), ("1,111", ""), ("e", "1"), ("-", "1"), (".", "")])
def test_long_numbers_take_no_quadratic_time(part: str, end: str) -> None:
    assert grows_no_faster_than_linearly(lambda size: numeric(part * (size // len(part)) + end, "1"), 10**6)


@pytest.mark.parametrize(
    ("response", "target", "extracted", "correct"),
    [
        ("Answer: A\nNo wait.\nAnswer: b", "B", "B", True),
        ("answer :  c", "C", "C", True),
        ("Answer: D", "(D)", "D", True),
        ("The answer is B", "B", None, False),
        ("", "", None, False),
        ("Answer: E", "E", None, False),
    ],
)
def test_multichoice(response: str, target: str, extracted: str | None, correct: bool) -> None:
    result = multichoice_regex(ScorerInput(response=response, target=target))
    assert result == {"correct": correct, "extracted": extracted}


@given(st.text(alphabet="aAnNsSwWeErR: \nBbCcDd"))
def test_multichoice_takes_the_last_match_of_its_pattern(text: str) -> None:
    every = re.findall(r"(?i)Answer\s*:\s*([A-D])", text)
    extracted = multichoice_regex(ScorerInput(response=text, target="A"))["extracted"]
    assert extracted == (every[-1].upper() if every else None)


def test_multichoice_with_a_pattern_of_the_callers() -> None:
    sample = ScorerInput(response="So (j) is right", target="J")
    assert multichoice_regex(sample, pattern=r"\(([a-j])\)") == {"correct": True, "extracted": "J"}
    assert multichoice_regex(sample, pattern=r"right|wrong")["extracted"] == "RIGHT"
    with pytest.raises(OptionError, match="invalid pattern"):
        multichoice_regex(sample, pattern="(")


@pytest.mark.parametrize(
    ("response", "target", "correct"),
    [
        ("Answer: 42", "42", True),
        ("Answer: 41\nAnswer: 42", "42", True),
        ("Answer: 1,000", "1000", True),
        ("Answer: $18.", "18", True),
        ("Answer: 50%", "50", True),
        (r"Answer: \boxed{7}", "7", True),
        (r"Answer: $\frac{1}{2}$", "1/2", True),
        (r"Answer: \dfrac{\sqrt{3}}{2}", r"\frac{\sqrt{3}}{2}", True),
        (r"Answer: \frac{1}{2}", "0.5", True),
        ("Answer: 0.50", "0.5", True),
        ("Answer: x + 1", "x+1", True),
        ("**Answer:** Paris", "paris", True),
        ("Answer:\n  12", "12", True),
        ("Answer: 90^\\circ", "90", True),
        ("Answer: 43", "42", False),
        ("Answer: 1/0", "5", False),
        ("42", "42", False),
        ("Answer:", "", False),
    ],
)
def test_answer_line(response: str, target: str, correct: bool) -> None:
    assert line(response, target) is correct


@given(st.text())
def test_math_normalisation_is_idempotent(text: str) -> None:
    once = normalize_math(text)
    assert normalize_math(once) == once


@given(st.text(alphabet="0123456789./\\frac{}$% ,-boxed"), st.text(alphabet="0123456789./\\frac{}$% ,-boxed"))
def test_answer_line_does_not_care_which_side_is_which(first: str, second: str) -> None:
    from evenhand.scoring.math_text import same_math_text

    assert same_math_text(first, second) == same_math_text(second, first)


def test_tolerance() -> None:
    sample = ScorerInput(response="about 3.1416", target="3.14159265")
    assert numeric_tolerance(sample, rel=1e-3)["correct"] is True
    assert numeric_tolerance(sample, rel=1e-9)["correct"] is False
    assert numeric_tolerance(sample, abs=0.001, rel=0.0)["correct"] is True
    # 0.3 - 0.2 is exactly 0.1 here, as in decimal arithmetic and not as in binary floating point.
    assert numeric_tolerance(ScorerInput(response="0.3", target="0.2"), abs=0.1, rel=0)["correct"] is True
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="'abs'"):
            numeric_tolerance(sample, abs=bad)


def test_regex_match() -> None:
    sample = ScorerInput(response="Order ID: ABC-12345")
    assert regex_match(sample, pattern=r"[A-Z]+-(\d+)") == {"correct": True, "extracted": "12345"}
    assert regex_match(sample, pattern="abc", flags="i")["extracted"] == "ABC"
    assert regex_match(sample, pattern="xyz") == {"correct": False, "extracted": None}
