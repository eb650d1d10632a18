r"""Numbers in text, read exactly.

A number is ASCII or other decimal digits, with optional thousands separators, a fraction, an exponent, and a sign.
Thousands are grouped in threes by commas, also in LaTeX's spellings (1{,}234, 1\,234), apostrophes or spaces, as
1.234,56 and 1.234.567 where that can be nothing else, and in India's way (12,34,567). A minus belongs to the number
when it touches it (a currency sign may stand between) and no letter, digit or closing bracket stands before it: "20-22"
ends in 22, "= -22" in -22. Two whole numbers with nothing but a slash between them are a fraction (3/4, \frac{3}{4}),
with a whole number before it a mixed one (5 1/2, 5½); three are a date and no fraction. 3 × 10^8 is one number.
"""

import re
import unicodedata
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, NamedTuple

_MINUS = "-\u2212\u2013"
_SIGN = rf"(?:(?<![\w)\]}}])[{_MINUS}+][$€£¥]?)?"
_PLAIN = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|(?<![\d,])\d{1,2}(?:,\d{2}){1,6},\d{3}(?![\d,])|\d+)(?:\.\d+)?|(?<!\d)\.\d+)"
# 1.234,56 and 1.234.567: what no English number is.
_DOTTED = r"(?<![\d.,])\d{1,3}(?:(?:\.\d{3})+,\d{1,2}|(?:\.\d{3}){2,}(?:,\d{1,2})?)(?![\d.,]*\d)"
_NUMBER = re.compile(rf"{_SIGN}(?:{_DOTTED}|{_PLAIN}(?:[eE][-+\u2212]?\d+)?)")
# Thousands with other separators than commas; one kind in one number, and no further number beside it.
_SPACE = " \u00a0\u2007\u2009\u202f"
_BETWEEN = rf"\{{\s?,\s?\}}|,?\\[,!;: ]|\\?~|['\u2019]|[{_SPACE}]"
_GROUPED = re.compile(
    rf"(?<![\w.,/'\u2019])(?<!\d[{_SPACE}]){_SIGN}[1-9]\d{{0,2}}(?P<between>{_BETWEEN})\d{{3}}(?:(?P=between)\d{{3}})*"
    rf"(?:\.\d+)?(?![\w/]|[{_SPACE}.,]\d)"
)
_GROUPING = re.compile(_BETWEEN)
_LAST_GROUP = re.compile(r"\d{3}(?:\.\d+)?")
_BEFORE_GROUP = frozenset("}\\,!;:~'\u2019" + _SPACE)
_RAISED = "\u207a\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_POWER_OF_TEN = re.compile(
    rf"(?:(?P<front>{_SIGN}(?<![\d.,]){_PLAIN})\s?(?:[×·*x]|\\times|\\cdot)\s?|(?<![\w.,]))10"
    rf"(?:\s?\^\s?[{{(]?(?P<power>[{_MINUS}+]?\d{{1,3}})[)}}]?|(?P<raised>[{_RAISED}]{{1,4}}))"
)
_LOWERED = str.maketrans(_RAISED, "+-0123456789")
# Spellings of other scripts, one character for one.
_ELSEWHERE = re.compile("[\u066a-\u066c\uff0b\uff0c\uff0d\uff0e\uff05\ufe63\u2010\u2011]")
_HERE = str.maketrans(
    {"\u066a": "%", "\u066b": ".", "\u066c": ",", "\uff0b": "+", "\uff0d": "-", "\uff05": "%", "\ufe63": "-"}
    | {"\u2010": "-", "\u2011": "-"}
)
_FULL_WIDTH = re.compile("(?<=[\uff10-\uff19])[\uff0c\uff0e](?=[\uff10-\uff19])")
# The last digit, and the last character before it that cannot be part of a number: greedy, so both are found from
# the end without looking at every number on the way.
_TO_LAST_DIGIT = re.compile(r"(?s).*\d")
_TO_LAST_BREAK = re.compile(r"(?s).*[^-\d.,eE+\u2212\u2013$€£¥]")
_EXTRA = str.maketrans(
    {",": None, "$": None, "€": None, "£": None, "¥": None, "+": None, "\u2212": "-", "\u2013": "-"}
)
_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
# Whole numbers of a fraction have at most so many digits, so that looking for one around a number stays cheap.
_MOST_DIGITS = 15
_WHOLE = rf"(?<![\w.,/])(?P<sign>(?<![\w)\]}}])[{_MINUS}])?(?:(?P<whole>\d{{1,{_MOST_DIGITS}}})(?:[ \t]+|\s*(?=\\|[{_VULGAR}])))?"
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
    text = _western(text)
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
    text = _western(text)
    plain, match = _NUMBER.search(text), _FRACTION.search(text)
    fraction = _fraction(match) if match else None
    if match and fraction and (plain is None or match.start() <= plain.start()):
        return _hundredth(fraction, text, match.end()) if percent else fraction
    if plain is None:
        return None
    longer = _POWER_OF_TEN.match(text, plain.start()) or _GROUPED.match(text, plain.start())
    found = _longer(longer) if longer else _decimal(plain.group())
    end = (longer or plain).end()
    return _hundredth(found, text, end) if found and percent else found


def _last_plain(text: str) -> tuple[Quantity | None, int, int] | None:
    """The last number that is no fraction, and where it stands; None where there is no digit."""
    digit = _TO_LAST_DIGIT.match(text)
    if digit is None:
        return None
    end = digit.end()
    stop = _TO_LAST_BREAK.match(text, 0, end)
    start = stop.end() if stop else 0
    spelled = _NUMBER.findall(text, start, end)[-1]
    start = end - len(spelled)
    longer = _longer_before(text, start, end, spelled)
    if longer is not None:
        return _longer(longer), longer.start(), longer.end()
    return _decimal(spelled), start, end


def _longer_before(text: str, start: int, end: int, spelled: str) -> re.Match[str] | None:
    """The number with thousands, or times a power of ten, whose last digits stand here."""
    before, after = text[start - 1 : start], text[end : end + 1]
    raised = before in ("^", "{", "(", " ") and "^" in text[max(0, start - 4) : start]
    if before and before in _BEFORE_GROUP and _LAST_GROUP.fullmatch(spelled):
        pattern = _GROUPED
    elif raised or (after and after in _RAISED and spelled.endswith("10")):
        pattern = _POWER_OF_TEN
    else:
        return None
    near = pattern.finditer(text, max(0, start - _REACH))
    return next((match for match in near if match.start() < end <= match.end()), None)


def _longer(match: re.Match[str]) -> Quantity | None:
    if match.re is _GROUPED:
        return _decimal(_GROUPING.sub("", match.group()))
    power = (match["power"] or match["raised"].translate(_LOWERED)).translate(_EXTRA)
    front = (match["front"] or "1").translate(_EXTRA)
    try:
        return _decimal(f"{front}e{int(power)}")
    except ValueError:  # signs without a digit, or within the digits
        return None


def _western(text: str) -> str:
    """The text with the signs of other scripts' numbers as those of ASCII, each at its place."""
    if text.isascii() or not _ELSEWHERE.search(text):
        return text
    text = _FULL_WIDTH.sub(lambda match: "," if match.group() == "\uff0c" else ".", text)
    return text.translate(_HERE)


def _decimal(spelled: str) -> Quantity | None:
    if spelled.count(".") > 1 or 0 <= spelled.find(".") < spelled.find(","):
        spelled = spelled.replace(".", "").replace(",", ".")
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
