"""Scorers that find the answer by its form."""

import json
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


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("1{,}234", "1234"),
        (r"1\,234", "1234"),
        (r"32,\!349", "32349"),
        ("1 234", "1234"),
        ("1\u2009234", "1234"),
        ("1\u00a0234\u00a0567.5", "1234567.5"),
        ("1'234", "1234"),
        ("-1 234", "-1234"),
        ("1.234,56 €", "1234.56"),
        ("1.234.567", "1234567"),
        ("₹12,34,567", "1234567"),
        ("１，２３４", "1234"),
        ("١٬٢٣٤٫٥", "1234.5"),
        ("－５", "-5"),
        ("–5", "-5"),
        (r"3 \times 10^8", "300000000"),
        ("3×10⁸", "300000000"),
        ("1.5 x 10^{-3}", "0.0015"),
        ("10^6", "1000000"),
        # Numbers beside each other are not one.
        ("1, 2, 3", "3"),
        ("1 10 100", "100"),
        ("10 100 1000", "1000"),
        ("in 1990 234 people", "234"),
        ("5. 300", "300"),
        ("0 500", "500"),
        ("10–15", "15"),
        ("2^10", "10"),
        ("1.000", "1"),
        ("5 100/200", "5.5"),
    ],
)
def test_thousands_and_powers_of_ten(response: str, value: str) -> None:
    assert numeric(response, value)
    assert numeric(f"It is {response} now.", value)


@pytest.mark.parametrize(
    "part", ["12,34,", "1 234", "1{,}234", "3 x 10^", "1.234.", " 123", "answer is 5 = "]
)
def test_no_spelling_of_numbers_takes_quadratic_time(part: str) -> None:
    def find(size: int) -> None:
        for which in ("last", "first", "answer"):
            numeric_match(ScorerInput(response=part * (size // len(part)), target="1"), which=which)

    assert grows_no_faster_than_linearly(find, 100_000)


@pytest.mark.parametrize(
    ("response", "target", "correct"),
    [
        ("It is 3/4", "0.75", True),
        ("It is 3/4", "4", False),
        ("4", "3/4", False),
        ("It is 5 1/2 cups", "5.5", True),
        ("5½", "5.5", True),
        ("It is ½", "0.5", True),
        ("-1/2", "-0.5", True),
        ("-2 1/4", "-2.25", True),
        (r"\frac{3}{4}", "0.75", True),
        (r"5\tfrac{1}{2}", "5.5", True),
        ("1/3", "1/3", True),
        ("2/6", "1/3", True),
        ("0.3333333", "1/3", False),
        ("6/3 = 2", "2", True),
        ("1/2 or 7", "7", True),
        ("7 or 1/2", "7", False),
        ("on 5/6/2024", "2024", True),
        ("20 / 4", "4", True),
        ("1/0", "0", True),
        ("1.5/2", "2", True),
        ("1/2.5", "2.5", True),
        ("a/b 3", "3", True),
    ],
)
def test_fractions_and_mixed_numbers(response: str, target: Any, correct: bool) -> None:
    assert numeric(response, target) is correct


@pytest.mark.parametrize(
    ("response", "which", "extracted"),
    [
        ("The answer is 42. I am 100% sure", "answer", "42"),
        ("The answer is 42. I am 100% sure", "last", "100"),
        ("12 and 42. I am 100% sure", "first", "12"),
        (r"So \boxed{42}. I am 100% sure.", "answer", "42"),
        ("7 steps.\n#### 42\n(3 of them easy)", "answer", "42"),
        ("Answer: 41\nNo, wait.\n**Answer:** $1,042.", "answer", "1042"),
        ("The answer is 20 + 22 = 42 apples", "answer", "42"),
        ("The answer is unclear; I count 42", "answer", "42"),
        ("no marker, 42", "answer", "42"),
        ("The answer is x = 42 (for n=3)", "answer", "42"),
        ("Answer: 42 since n = 3", "answer", "42"),
        ("The answer is 42. Because n = 3", "answer", "42"),
        ("Answer: for n=3, x = 42", "answer", "42"),
        (r"\boxed{x = 42} as 6 * 7 = 42 and 1 = 1", "answer", "42"),
        ("The answer to question 3 is 42", "answer", "42"),
        ("The answer would be 42 km (26 miles)", "answer", "42"),
        ("The answer is 1 234", "answer", "1234"),
        ("The answer is: -3", "answer", "-3"),
        ("The answer is 5 1/2 of 6", "answer", "5 1/2"),
        ("3/4 of 12", "first", "3/4"),
        ("½ of 12", "first", "1/2"),
        ("nothing", "first", None),
        ("nothing", "answer", None),
    ],
)
def test_which_number_counts(response: str, which: Any, extracted: str | None) -> None:
    sample = ScorerInput(response=response, target="1")
    assert numeric_match(sample, which=which)["extracted"] == extracted


def test_per_cent_is_a_hundredth_when_asked_for() -> None:
    half = ScorerInput(response="It is 50%", target="0.5")
    assert numeric_match(half)["correct"] is False
    assert numeric_match(half, percent=True) == {"correct": True, "extracted": "50%"}
    assert numeric_match(ScorerInput(response="0.5", target="50 percent"), percent=True)["correct"] is True
    assert numeric_match(ScorerInput(response="50%", target="50%"), percent=True)["correct"] is True
    assert numeric_match(ScorerInput(response="50", target="50%"), percent=True)["correct"] is False
    assert numeric_tolerance(half, percent=True)["correct"] is True


def test_an_unknown_choice_of_number_is_refused() -> None:
    unknown: Any = "middle"
    with pytest.raises(OptionError, match="which"):
        numeric_match.configure(which=unknown)


def test_without_a_number_nothing_is_extracted() -> None:
    sample = ScorerInput(response="no digits", target="0")
    assert numeric_match(sample) == {"correct": False, "extracted": None}


def test_numeric_match_agrees_with_all_graded_solutions(shared_data: Path) -> None:
    """5,276 solutions that four models gave to GSM8K, graded by its authors."""
    with (shared_data / "gsm8k_model_solutions.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(row) for row in file]
    assert len(rows) == 5276
    every: tuple[Any, ...] = ("last", "answer")
    for which in every:
        differing = [
            row
            for row in rows
            if numeric_match(ScorerInput(response=row["solution"], target=row["target"]), which=which)[
                "correct"
            ]
            != row["is_correct"]
        ]
        assert differing == [], which


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
        (r"Answer: \frac{1}{2}x", r"\frac{1}{2x}", False),
        (r"Answer: \frac{a}{b}c", r"\frac{a}{bc}", False),
        (r"Answer: \frac{1}{2}5", "1/25", False),
        (r"Answer: \sqrt51", r"\sqrt{51}", False),
        (r"Answer: 1\\2", "12", False),
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
