"""Unions of intervals, also written as inequalities, and ratios."""

import re
from collections.abc import Callable
from fractions import Fraction

MAX_LENGTH = 300
"""Longer texts are neither."""

_LESS = r"(?:<|\\lt(?![a-z])|\\leq?(?:slant)?(?![a-z])|≤)"
_MORE = r"(?:>|\\gt(?![a-z])|\\geq?(?:slant)?(?![a-z])|≥)"
_OR = re.compile(r"\s*(?:\\text\s*\{\s*or\s*\}|\bor\b|\\cup(?![a-z])|∪|\\lor(?![a-z])|∨)\s*")
_MEMBER = re.compile(r"^\s*[a-zA-Z]\s*(?:\\in(?![a-z])|∈)\s*")
_INTERVAL = re.compile(r"(?:\\left\s*)?([(\[])([^,()\[\]]+),([^,()\[\]]+?)(?:\\right\s*)?([)\]])")
_BETWEEN = re.compile(rf"([^<>≤≥]+?)({_LESS})\s*([a-zA-Z])\s*({_LESS})([^<>≤≥]+)")
_BOUND = re.compile(rf"\s*([a-zA-Z])\s*({_LESS}|{_MORE})([^<>≤≥]+)")
_TURNED = re.compile(rf"([^<>≤≥]+?)({_LESS}|{_MORE})\s*([a-zA-Z])\s*")
_STRICT = ("<", ">", "\\lt", "\\gt")
_NUMBER = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*")

Interval = tuple[str, str, str, str]
"""The opening bracket, both ends, the closing bracket."""


def same_regions(first: str, second: str, same: Callable[[str, str], bool]) -> bool:
    """Whether both are unions of the same intervals; False also when one of them is no union of two or more."""
    if max(len(first), len(second)) > MAX_LENGTH or not (_OR.search(first) and _OR.search(second)):
        return False
    one, other = _intervals(first), _intervals(second)
    if one is None or other is None or len(one) != len(other) or one == other:
        return one is not None and one == other
    left = list(other)
    for interval in one:
        found = next((candidate for candidate in left if _same_interval(interval, candidate, same)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _same_interval(one: Interval, other: Interval, same: Callable[[str, str], bool]) -> bool:
    return one[0] == other[0] and one[3] == other[3] and same(one[1], other[1]) and same(one[2], other[2])


def _intervals(text: str) -> list[Interval] | None:
    parts = [_interval(part) for part in _OR.split(_MEMBER.sub("", text.strip()))]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def _interval(text: str) -> Interval | None:
    text = text.strip().strip("$").strip()
    if match := _INTERVAL.fullmatch(text):
        return match[1], match[2].strip(), match[3].strip(), match[4]
    if match := _BETWEEN.fullmatch(text):
        opening, closing = _bracket(match[2], "(["), _bracket(match[4], ")]")
        return opening, match[1].strip(), match[5].strip(), closing
    if match := _BOUND.fullmatch(text):
        return _half(match[2], match[3].strip(), below=re.fullmatch(_LESS, match[2]) is not None)
    if match := _TURNED.fullmatch(text):
        return _half(match[2], match[1].strip(), below=re.fullmatch(_MORE, match[2]) is not None)
    return None


def _half(sign: str, bound: str, *, below: bool) -> Interval:
    if below:
        return "(", r"-\infty", bound, _bracket(sign, ")]")
    return _bracket(sign, "(["), bound, r"\infty", ")"


def _bracket(sign: str, kinds: str) -> str:
    return kinds[0] if sign in _STRICT else kinds[1]


def same_ratio(first: str, second: str, same: Callable[[str, str], bool]) -> bool | None:
    """Whether two ratios (1:2:3) are the same, part by part or in proportion; None when neither is one."""
    one, other = first.split(":"), second.split(":")
    if len(one) == 1 == len(other) or not all(part.strip() for part in one + other):
        return None
    if len(one) != len(other):
        return None if {len(one), len(other)} == {1, 2} else False
    numbers = [_number(part) for part in one + other]
    if None not in numbers and all(numbers):  # 12:00 is a time
        values = [number for number in numbers if number is not None]
        mine, theirs = values[: len(one)], values[len(one) :]
        pairs = zip(mine, theirs, strict=True)
        return all(a * theirs[0] == b * mine[0] for a, b in pairs)
    return all(same(a, b) for a, b in zip(one, other, strict=True))


def _number(text: str) -> Fraction | None:
    match = _NUMBER.fullmatch(text)
    return Fraction(match[1]) if match else None
