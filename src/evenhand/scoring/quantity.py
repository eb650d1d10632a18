r"""Numbers in text, read exactly.

A number is ASCII or other decimal digits, with optional thousands commas in groups of three, a fraction, an exponent,
and a sign. A minus belongs to the number when it touches it (a currency sign may stand between) and no letter, digit
or closing bracket stands before it: "20-22" ends in 22, "= -22" in -22. Two whole numbers with nothing but a slash
between them are a fraction (3/4, \frac{3}{4}), with a whole number before it a mixed one (5 1/2, 5½); three are
a date and no fraction.
"""

import re
import unicodedata
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
_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
# Whole numbers of a fraction have at most so many digits, so that looking for one around a number stays cheap.
_MOST_DIGITS = 15
_WHOLE = rf"(?<![\w.,/])(?P<sign>(?<![\w)\]])[-\u2212])?(?:(?P<whole>\d{{1,{_MOST_DIGITS}}})(?:[ \t]+|\s*(?=\\|[{_VULGAR}])))?"
_FRACTION = re.compile(
    rf"{_WHOLE}(?:(?P<top>\d{{1,{_MOST_DIGITS}}})[/\u2044](?P<bottom>\d{{1,{_MOST_DIGITS}}})(?![\d/\u2044]|[.,]\d)"
    rf"|\\[dt]?frac\s*\{{\s*(?P<frac_top>\d{{1,{_MOST_DIGITS}}})\s*\}}\s*\{{\s*(?P<frac_bottom>\d{{1,{_MOST_DIGITS}}})\s*\}}"
    rf"|(?P<vulgar>[{_VULGAR}]))"
)
_MAY_BE_FRACTION = re.compile(rf"\d[/\u2044]\d|\}}\s*\{{\s*\d|[{_VULGAR}]")
_PER_CENT = re.compile(r"\s*(?:\\?%|per\s?cent\b|percent\b|pct\b)", re.IGNORECASE)
# How far before and after a number the rest of its fraction may stand.
_REACH = 3 * _MOST_DIGITS + 20


class Quantity(NamedTuple):
    """A number and its plain spelling."""

    text: str
    value: Decimal | Fraction


def last_number(text: str, *, percent: bool = False) -> Quantity | None:
    """The last number in `text`, or None; with `percent` a number before a per cent sign is a hundredth of it."""
    found = _last_plain(text)
    digit = found[0] if found else None
    vulgar = max(map(text.rfind, _VULGAR)) if not text.isascii() else -1
    start, end = found[1:] if found else (0, 0)
    if vulgar >= end or _MAY_BE_FRACTION.search(text, max(0, start - _REACH), end + 1):
        near = max(0, (vulgar if vulgar >= end else start) - _REACH)
        for match in list(_FRACTION.finditer(text, near))[::-1]:
            fraction = _fraction(match)
            # The last number is the fraction's own last part, or stands before it.
            if fraction is not None and match.end() >= end:
                return _hundredth(fraction, text, match.end()) if percent else fraction
            if match.end() < end:
                break
    if digit is None:
        return None
    return _hundredth(digit, text, end) if percent else digit


def first_number(text: str, *, percent: bool = False) -> Quantity | None:
    """The first number in `text`, or None."""
    plain, match = _NUMBER.search(text), _FRACTION.search(text)
    fraction = _fraction(match) if match else None
    if match and fraction and (plain is None or match.start() <= plain.start()):
        return _hundredth(fraction, text, match.end()) if percent else fraction
    found = _decimal(plain.group()) if plain else None
    return _hundredth(found, text, plain.end()) if plain and found and percent else found


def _last_plain(text: str) -> tuple[Quantity | None, int, int] | None:
    """The last number that is no fraction, and where it stands; None where there is no digit."""
    digit = _TO_LAST_DIGIT.match(text)
    if digit is None:
        return None
    end = digit.end()
    stop = _TO_LAST_BREAK.match(text, 0, end)
    start = stop.end() if stop else 0
    spelled = _NUMBER.findall(text, start, end)[-1]
    return _decimal(spelled), end - len(spelled), end


def _decimal(spelled: str) -> Quantity | None:
    spelled = spelled.translate(_EXTRA)
    try:
        return Quantity(spelled, Decimal(spelled))
    except DecimalException:  # an exponent past what any number type holds
        return None


def _fraction(match: re.Match[str]) -> Quantity | None:
    if match["vulgar"]:
        top, bottom = unicodedata.normalize("NFKC", match["vulgar"]).split("\u2044")
    else:
        top, bottom = match["top"] or match["frac_top"], match["bottom"] or match["frac_bottom"]
    if not int(bottom):
        return None
    minus = "-" if match["sign"] else ""
    whole = int(match["whole"] or 0)
    value = whole + Fraction(int(top), int(bottom))
    spelled = f"{minus}{match['whole']} {top}/{bottom}" if match["whole"] else f"{minus}{top}/{bottom}"
    return Quantity(spelled, -value if minus else value)


def _hundredth(found: Quantity, text: str, end: int) -> Quantity:
    if not _PER_CENT.match(text, end):
        return found
    value = found.value / 100 if isinstance(found.value, Fraction) else found.value.scaleb(-2)
    return Quantity(f"{found.text}%", value)


def number_of(value: Any, *, percent: bool = False) -> Quantity | None:
    """A target as a number: numbers as they are, text by its last number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float | Decimal):
        try:
            number = Decimal(str(value))
        except ValueError:  # an integer of more digits than Python will print
            return None
        return Quantity(str(value), number) if number.is_finite() else None
    return last_number(value, percent=percent) if isinstance(value, str) else None


def close(
    found: Decimal | Fraction, expected: Decimal | Fraction, *, absolute: float, relative: float
) -> bool:
    """Whether |found - expected| <= max(absolute, relative * |expected|), in exact arithmetic."""
    if found == expected:
        return True
    decimals = [value for value in (found, expected) if isinstance(value, Decimal)]
    if any(abs(value.adjusted()) > 1000 for value in decimals):
        # Beyond any tolerance worth stating; the exact fractions would be numbers of that many digits.
        return False
    difference = abs(Fraction(found) - Fraction(expected))
    return difference <= max(Fraction(absolute), Fraction(relative) * abs(Fraction(expected)))
