"""Comparing lists, JSON values and tool calls."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.scoring.definition import scorer
from evenhand.scoring.json_text import find_json
from evenhand.scoring.normal import normalize_text, text_of
from evenhand.scoring.types import ScorerInput

MAX_DIFFERENCES = 20
"""How many differences are reported."""

_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,3}[.)])\s+")
_SEPARATOR = re.compile(r"[\n;,]")
_MISSING = object()


@scorer(version="2", needs_target=True)
def list_match(sample: ScorerInput, ordered: bool = False, partial: bool = False) -> dict[str, Any]:
    """The items of the response are the target's, in any order unless `ordered`; `partial` rewards with their F1.

    Items come from a JSON array, a bulleted list, or text cut at commas, semicolons and line breaks.
    """
    found, expected = _items(sample.response), _items(sample.target)
    shared = (Counter(found) & Counter(expected)).total()
    precision = shared / len(found) if found else 0.0
    recall = shared / len(expected) if expected else 0.0
    f1 = 2 * precision * recall / (precision + recall) if shared else float(not found and not expected)
    correct = found == expected if ordered else Counter(found) == Counter(expected)
    result = {"correct": correct, "extracted": found, "precision": precision, "recall": recall, "f1": f1}
    return {"reward": f1, **result} if partial else result


@scorer(needs_target=True)
def json_diff(sample: ScorerInput) -> dict[str, Any]:
    """The share of the target's JSON values that the response's JSON has at the same place, and what differs.

    A value that the target does not have counts against the response as much as a missing one.
    """
    found, problem = find_json(sample.response)
    if problem is not None:
        return {"reward": 0.0, "correct": False, "extracted": None, "problem": f"invalid JSON: {problem}"}
    expected = json_target(sample.target)
    same, differences = 0, []
    for path, left, right in _leaves(expected, found, ""):
        if left is not _MISSING and right is not _MISSING and same_json(left, right):
            same += 1
        else:
            differences.append((path, left, right))
    shown = [
        {
            "path": path or "/",
            **({} if a is _MISSING else {"expected": a}),
            **({} if b is _MISSING else {"found": b}),
        }
        for path, a, b in differences[:MAX_DIFFERENCES]
    ]
    return {
        "reward": same / (same + len(differences)),
        "correct": not differences,
        "extracted": found,
        "differences": shown,
        "different": len(differences),
    }


def json_target(target: Any) -> Any:
    """A target as a JSON value: text is read as JSON when it is JSON."""
    if isinstance(target, str):
        try:
            return decode(target)
        except InputError:
            return target
    return target


def same_json(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, true is not 1, the order of keys does not count."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same_json(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_json, first, second))
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    return (numbers or type(first) is type(second)) and bool(first == second)


def _leaves(left: Any, right: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Every place of either value with what each has there; empty containers are places too."""
    if isinstance(left, dict) and isinstance(right, dict) and (left or right):
        for key in {**left, **right}:
            escaped = str(key).replace("~", "~0").replace("/", "~1")
            yield from _leaves(left.get(key, _MISSING), right.get(key, _MISSING), f"{path}/{escaped}")
    elif isinstance(left, list) and isinstance(right, list) and (left or right):
        for index in range(max(len(left), len(right))):
            yield from _leaves(
                left[index] if index < len(left) else _MISSING,
                right[index] if index < len(right) else _MISSING,
                f"{path}/{index}",
            )
    else:
        yield path, left, right


def _items(value: Any) -> list[str]:
    if isinstance(value, str):
        value = _parsed_list(value)
    elif not isinstance(value, list | tuple):
        value = [value]
    items = (normalize_text(item if isinstance(item, str) else _spelled(item)) for item in value)
    return [item for item in items if item]


def _spelled(item: Any) -> str:
    try:
        return text_of(item)
    except (ValueError, TypeError):
        return repr(item)


def _parsed_list(text: str) -> list[Any]:
    try:
        value = decode(text)
        if isinstance(value, list):
            return value
    except InputError:
        pass
    lines = text.splitlines()
    bulleted = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]
    if len(bulleted) > 1 or (bulleted and len(lines) == 1):
        return bulleted
    embedded = find_json(text).value
    return embedded if isinstance(embedded, list) else _SEPARATOR.split(text)
