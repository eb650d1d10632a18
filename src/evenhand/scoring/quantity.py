"""Numbers in text, read exactly.

The rule for a response: its last number counts. A number is ASCII or other decimal digits, with optional
thousands commas in groups of three, a fraction, an exponent, and a sign. A minus belongs to the number when it
touches it (a currency sign may stand between) and no letter, digit or closing bracket stands before it: "20-22"
ends in 22, "= -22" in -22.
"""

import re
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, NamedTuple

_SIGN = r"(?:(?<![\w)\]])[-+\u2212][$€£¥]?)?"
_NUMBER = re.compile(
    rf"{_SIGN}(?:(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)(?:\.\d+)?|(?<!\d)\.\d+)(?:[eE][-+\u2212]?\d+)?"
)
# The last digit, and the last character before it that cannot be part of a number: greedy, so both are found from
# the end without looking at every number on the way.
_TO_LAST_DIGIT = re.compile(r"(?s).*\d")
_TO_LAST_BREAK = re.compile(r"(?s).*[^\d.,eE+\-\u2212$€£¥]")
_EXTRA = str.maketrans({",": None, "$": None, "€": None, "£": None, "¥": None, "+": None, "\u2212": "-"})


class Quantity(NamedTuple):
    """A number and its plain spelling."""

    text: str
    value: Decimal


def last_number(text: str) -> Quantity | None:
    """The last number in `text`, or None."""
    digit = _TO_LAST_DIGIT.match(text)
    if digit is None:
        return None
    end = digit.end()
    stop = _TO_LAST_BREAK.match(text, 0, end)
    start = stop.end() if stop else 0
    spelled = _NUMBER.findall(text, start, end)[-1].translate(_EXTRA)
    try:
        return Quantity(spelled, Decimal(spelled))
    except DecimalException:  # an exponent past what any number type holds
        return None


def number_of(value: Any) -> Quantity | None:
    """A target as a number: numbers as they are, text by its last number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float | Decimal):
        try:
            number = Decimal(str(value))
        except ValueError:  # an integer of more digits than Python will print
            return None
        return Quantity(str(value), number) if number.is_finite() else None
    return last_number(value) if isinstance(value, str) else None


def close(found: Decimal, expected: Decimal, *, absolute: float, relative: float) -> bool:
    """Whether |found - expected| <= max(absolute, relative * |expected|), in exact arithmetic."""
    if found == expected:
        return True
    if max(abs(found.adjusted()), abs(expected.adjusted())) > 1000:
        # Beyond any tolerance worth stating; the exact fractions would be numbers of that many digits.
        return False
    difference = abs(Fraction(found) - Fraction(expected))
    return difference <= max(Fraction(absolute), Fraction(relative) * abs(Fraction(expected)))
