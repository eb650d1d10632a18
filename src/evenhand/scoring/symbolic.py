"""Equality of mathematical answers."""

import re
from typing import Any

from evenhand.scoring.algebra_worker import equal_apart
from evenhand.scoring.definition import scorer
from evenhand.scoring.math_text import normalize_math, same_math_text
from evenhand.scoring.normal import text_of
from evenhand.scoring.types import ScorerInput

MAX_PARTS = 20
"""How many parts a tuple, set or list may have."""

_LAST_ANSWER = re.compile(r"(?is).*answer[\s*_]*(?::|is)[\s*_]*([^\n]*)")
_NAMED = re.compile(r"\s*[a-zA-Z](?:\([a-z]\))?\s*=(?!=)")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@scorer(needs_target=True)
def math_equal(sample: ScorerInput) -> dict[str, Any]:
    r"""The answer equals the target as mathematics: 1/2 is 0.5, (x+1)^2 is x^2+2x+1, \frac{\sqrt{2}}{2} is 1/\sqrt{2}.

    The answer is the last \boxed{...}, else the text after the last "Answer:", else the whole response. Tuples
    are compared part by part, sets in any order. What is no expression is compared as text.
    """
    extracted = find_answer(sample.response)
    return {
        "correct": bool(extracted) and same_math(extracted, text_of(sample.target)),
        "extracted": extracted,
    }


def find_answer(response: str) -> str:
    """The answer within a response."""
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed.strip()
    match = _LAST_ANSWER.match(response)
    answer = match.group(1) if match else response
    return answer.strip().strip("*_`$").strip().rstrip(".").strip("*_`$").strip()


def last_boxed(text: str) -> str | None:
    r"""What stands in the last \boxed{...}, with its inner braces; None when there is none or it never ends."""
    start = text.rfind("\\boxed")
    opening = text.find("{", start) if start >= 0 else -1
    if opening < 0:
        return None
    depth = 0
    for position in range(opening, min(len(text), opening + 10_000)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return text[opening + 1 : position]
    return None


def same_math(first: str, second: str) -> bool:
    """Whether two answers are equal as text, as numbers, as tuples or sets, or as expressions."""
    if same_math_text(first, second):
        return True
    first, second = _unnamed(first, second)
    one, other = _parts(first), _parts(second)
    if one is None and other is None:
        return equal_apart(first, second) is True
    if one is None or other is None or one[0] != other[0] or len(one[1]) != len(other[1]):
        return False
    if one[0] == "{}":
        return _same_set(one[1], other[1])
    return all(map(same_math, one[1], other[1]))


def _unnamed(first: str, second: str) -> tuple[str, str]:
    """Without a leading "x =", unless only that tells them apart."""
    one, other = _NAMED.match(first), _NAMED.match(second)
    if one and other and normalize_math(one.group()) != normalize_math(other.group()):
        return first, second
    return first[one.end() :] if one else first, second[other.end() :] if other else second


def _parts(text: str) -> tuple[str, list[str]] | None:
    r"""Brackets and parts of a tuple, an interval, a set (\{..\}) or a bare list; None for a single expression."""
    text = re.sub(r"\\(?:left|right)(?![a-z])|[$]", "", text).strip().rstrip(".")
    brackets = ""
    if text.startswith("\\{") and text.endswith("\\}"):
        brackets, text = "{}", text[2:-2]
    elif text[:1] in _BRACKETS and text[-1:] in ")]}" and _encloses(text):
        brackets, inner = text[0] + text[-1], text[1:-1]
        if "," not in inner:
            return None
        text = inner
    parts = _split(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text) if not brackets else text)
    if brackets != "{}" and len(parts) < 2:
        return None
    if len(parts) > MAX_PARTS or not all(parts):
        return None
    return brackets, parts


def _encloses(text: str) -> bool:
    """Whether the first bracket is closed by the last character only."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _same_set(first: list[str], second: list[str]) -> bool:
    left = list(second)
    for item in first:
        match = next((other for other in left if same_math(item, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left
