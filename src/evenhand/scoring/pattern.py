"""Finding the answer in a response by its form, and comparing that."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from operator import eq
from typing import Any

from evenhand.core.errors import OptionError
from evenhand.scoring.bounded_regex import compile_bounded
from evenhand.scoring.definition import scorer
from evenhand.scoring.math_text import same_math_text
from evenhand.scoring.normal import text_of
from evenhand.scoring.quantity import close, last_number, number_of
from evenhand.scoring.types import ScorerInput

NO_NUMBER = {"correct": False, "extracted": None, "unscored": "target_without_number"}
"""A target that holds no number is a fault of the data: the sample is unscored, not wrong."""
CHOICE_PATTERN = r"(?i)Answer\s*:\s*([A-D])"
"""What `multichoice_regex` looks for unless told otherwise."""

# Greedy up to the last one, so that earlier answers are not even looked at.
_LAST_CHOICE = re.compile(r"(?is).*Answer\s*:\s*([A-D])")
# Markdown stars and underscores around the word or the answer are not part of it.
_LAST_ANSWER = re.compile(r"(?is).*answer[\s*_]*:[\s*_]*([^\n]*)")
_FRAME = " \t\r*_`"


@scorer(needs_target=True)
def multichoice_regex(sample: ScorerInput, pattern: str = CHOICE_PATTERN) -> dict[str, Any]:
    """The letter in the last match of `pattern` (its first group) is the target's."""
    if pattern == CHOICE_PATTERN:
        match = _LAST_CHOICE.match(sample.response)
        extracted = match.group(1).upper() if match else None
    else:
        found = compile_bounded(pattern).last(sample.response)
        extracted = _first_group(found).upper() if found else None
    target = text_of(sample.target).strip().strip("().").upper()
    return {"correct": extracted is not None and extracted == target, "extracted": extracted}


@scorer(needs_target=True)
def answer_line(sample: ScorerInput) -> dict[str, Any]:
    """The text after the last "Answer:" equals the target in mathematical spelling, or as a number."""
    match = _LAST_ANSWER.match(sample.response)
    if match is None:
        return {"correct": False, "extracted": None}
    extracted = match.group(1).strip(_FRAME)
    return {
        "correct": bool(extracted) and same_math_text(extracted, text_of(sample.target)),
        "extracted": extracted,
    }


@scorer(needs_target=True)
def numeric_match(sample: ScorerInput) -> dict[str, Any]:
    """The last number in the response equals the target as a number: 42.0 is 42, and 100 is not 10."""
    return _last_number_against_target(sample, eq)


@scorer(needs_target=True)
def numeric_tolerance(sample: ScorerInput, abs: float = 0.0, rel: float = 1e-6) -> dict[str, Any]:  # noqa: A002  the contract's names
    """The last number in the response is within `abs`, or within `rel` times the target, of the target."""
    for name, limit in (("abs", abs), ("rel", rel)):
        if not (math.isfinite(limit) and limit >= 0):
            raise OptionError(f"option '{name}' must be a number from 0 up, not {limit}")
    return _last_number_against_target(sample, partial(close, absolute=abs, relative=rel))


def _last_number_against_target(
    sample: ScorerInput, same: Callable[[Decimal, Decimal], bool]
) -> dict[str, Any]:
    expected = number_of(sample.target)
    if expected is None:
        return dict(NO_NUMBER)
    found = last_number(sample.response)
    if found is None:
        return {"correct": False, "extracted": None}
    return {"correct": same(found.value, expected.value), "extracted": found.text}


@scorer
def regex_match(sample: ScorerInput, pattern: str, flags: str = "") -> dict[str, Any]:
    """The pattern matches somewhere in the response; `flags` are letters of i, m, s, x."""
    found = compile_bounded(pattern, flags).last(sample.response)
    return {"correct": found is not None, "extracted": _first_group(found) if found else None}


def _first_group(found: tuple[str | None, ...]) -> str:
    """The first group that took part in the match, else the whole match."""
    return next((group for group in found[1:] if group is not None), found[0] or "")
