"""Finding the answer in a response by its form, and comparing that."""

import math
import re
from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Any, Literal

from evenhand.core.errors import OptionError
from evenhand.scoring.bounded_regex import compile_bounded
from evenhand.scoring.choice import choice_reader
from evenhand.scoring.definition import scorer
from evenhand.scoring.math_text import same_math_text
from evenhand.scoring.normal import text_of
from evenhand.scoring.quantity import Quantity, close, first_number, last_number, number_of
from evenhand.scoring.types import ScorerInput

NO_NUMBER = {"correct": False, "extracted": None, "unscored": "target_without_number"}
"""A target that holds no number is a fault of the data: the sample is unscored, not wrong."""
CHOICE_PATTERN = r"(?i)Answer\s*:\s*([A-D])"
"""What `multichoice_regex` looks for unless told otherwise, in the many spellings that `choice` reads."""
CHOICE_LETTERS = "ABCD"
"""The letters of the choices unless told otherwise."""

# Markdown stars and underscores around the word or the answer are not part of it.
_LAST_ANSWER = re.compile(r"(?is).*answer[\s*_]*:[\s*_]*([^\n]*)")
_LAST_STATED = re.compile(
    r"(?is).*(?:\banswer(?:[\s*_]*(?::|=)|\b[^.\n:=]{0,40}?\b(?:is|was|equals|would\s+be|comes\s+to)\b)|####|\\boxed)"
    r"[\s*_:]*([^\n]*)"
)
_SENTENCE_END = re.compile(r"(?<=[\w%)$}*])[.!?](?=\s|$)")
# Where the answer ends and what it holds for, or why, begins.
_ASIDE = re.compile(
    r"(?i)[(\[;]|,?\s\b(?:since|because|as|for|when|where|with|if|given|assuming|after|which)\b"
)
_DIGIT = re.compile(r"\d")
_FRAME = " \t\r*_`"


@scorer(version="2", needs_target=True)
def multichoice_regex(
    sample: ScorerInput, pattern: str = CHOICE_PATTERN, letters: str = CHOICE_LETTERS
) -> dict[str, Any]:
    """The letter of the last "Answer: X" is the target's; X is one of `letters`, in any usual spelling.

    With a `pattern` of the caller's, the letter is the first group of its last match.
    """
    if pattern == CHOICE_PATTERN:
        extracted = choice_reader(letters).read(sample.response)
    elif letters != CHOICE_LETTERS:
        raise OptionError("give 'pattern' or 'letters', not both: the pattern says which letters it takes")
    else:
        found = compile_bounded(pattern).last(sample.response)
        extracted = _first_group(found).upper() if found else None
    target = text_of(sample.target).strip().strip("().").upper()
    return {"correct": extracted is not None and extracted == target, "extracted": extracted}


@scorer(version="3", needs_target=True)
def answer_line(sample: ScorerInput) -> dict[str, Any]:
    """The text after the last "Answer:" equals the target in mathematical spelling, or as a number."""
    extracted = stated_answer(sample.response)
    if extracted is None:
        return {"correct": False, "extracted": None}
    return {
        "correct": bool(extracted) and same_math_text(extracted, text_of(sample.target)),
        "extracted": extracted,
    }


def stated_answer(response: str) -> str | None:
    """The line after the last "Answer:", without Markdown; None when there is no "Answer:"."""
    match = _LAST_ANSWER.match(response)
    return match.group(1).strip(_FRAME) if match else None


@scorer(version="2", needs_target=True)
def numeric_match(
    sample: ScorerInput, which: Literal["last", "first", "answer"] = "last", percent: bool = False
) -> dict[str, Any]:
    r"""The last number in the response equals the target as a number: 42.0 is 42, 3/4 is 0.75, and 100 is not 10.

    `which` may be `first`, or `answer`: the number after the last "answer is", "Answer:" or "####", or in the last
    \boxed{}, else the last number. With `percent`, 50% is 0.5.
    """
    return _against_target(sample, eq, which, percent)


@scorer(version="2", needs_target=True)
def numeric_tolerance(
    sample: ScorerInput,
    abs: float = 0.0,  # noqa: A002  the contract's names
    rel: float = 1e-6,
    which: Literal["last", "first", "answer"] = "last",
    percent: bool = False,
) -> dict[str, Any]:
    """The last number in the response is within `abs`, or within `rel` times the target, of the target.

    `which` and `percent` are those of `numeric_match`.
    """
    for name, limit in (("abs", abs), ("rel", rel)):
        if not (math.isfinite(limit) and limit >= 0):
            raise OptionError(f"option '{name}' must be a number from 0 up, not {limit}")
    return _against_target(sample, partial(close, absolute=abs, relative=rel), which, percent)


def _against_target(
    sample: ScorerInput, same: Callable[[Any, Any], bool], which: str, percent: bool
) -> dict[str, Any]:
    expected = number_of(sample.target, percent=percent)
    if expected is None:
        return dict(NO_NUMBER)
    found = _NUMBERS[which](sample.response, percent=percent)
    if found is None:
        return {"correct": False, "extracted": None}
    return {"correct": same(found.value, expected.value), "extracted": found.text}


def answered_number(text: str, *, percent: bool = False) -> Quantity | None:
    r"""The number after the last "answer is", "Answer:" or "####", or in the last \boxed{}; else the last number."""
    stated = _LAST_STATED.match(text)
    if stated:
        found = _in_statement(stated.group(1), percent=percent)
        if found is not None:
            return found
    return last_number(text, percent=percent)


def _in_statement(line: str, *, percent: bool) -> Quantity | None:
    """The number that a line states: of a sentence its first one, of a calculation its result."""
    digit = _DIGIT.search(line)
    if digit is None:
        return first_number(line, percent=percent)
    sentence = _SENTENCE_END.search(line, digit.start())
    statement = line[: sentence.start()] if sentence else line
    aside = _ASIDE.search(statement, digit.end())
    if aside:
        statement = statement[: aside.start()]
    result = statement.rpartition("=")[2]
    return first_number(result, percent=percent) or first_number(statement, percent=percent)


_NUMBERS: dict[str, Callable[..., Quantity | None]] = {
    "last": last_number,
    "first": first_number,
    "answer": answered_number,
}


@scorer
def regex_match(sample: ScorerInput, pattern: str, flags: str = "") -> dict[str, Any]:
    """The pattern matches somewhere in the response; `flags` are letters of i, m, s, x."""
    found = compile_bounded(pattern, flags).last(sample.response)
    return {"correct": found is not None, "extracted": _first_group(found) if found else None}


def _first_group(found: tuple[str | None, ...]) -> str:
    """The first group that took part in the match, else the whole match."""
    return next((group for group in found[1:] if group is not None), found[0] or "")
