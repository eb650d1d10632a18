"""Comparing lists, JSON values and tool calls."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.scoring.definition import scorer
from evenhand.scoring.json_text import find_json
from evenhand.scoring.normal import normalize_text, text_of
from evenhand.scoring.types import ScorerInput

MAX_DIFFERENCES = 20
"""How many differences are reported."""

_BULLET = re.compile(r"^\s*(?:[-–—+*•·]|\(?\d{1,3}[.)]|\(?[A-Za-z]\))\s+")
_SEPARATOR = re.compile(r"[\n;,]")
# Where other signs cut the text, a comma between thousands does not.
_BESIDE_THOUSANDS = re.compile(r"[\n;]|,(?!(?<=\d,)\d{3}(?!\d))")
_OTHER_SIGN = re.compile(r"[\n;]|,\s")
_JOINING = frozenset(("and", "or", "&"))
_MISSING = object()


@scorer(version="4", needs_target=True)
def list_match(sample: ScorerInput, ordered: bool = False, partial: bool = False) -> dict[str, Any]:
    """The items of the response are the target's, in any order unless `ordered`; `partial` rewards with their F1.

    Items come from a JSON array, a bulleted list, or text cut at commas, semicolons and line breaks; "x, y and z" are
    three items unless "y and z" is an item of the other side.
    """
    read, wanted = _read(sample.response), _read(sample.target)
    expected = _normal(wanted.parted(set(_normal(read.items))))
    found = _normal(read.parted(set(expected) | set(_normal(wanted.items))))
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


class _Items(NamedTuple):
    """What was read as a list; `sentence` when it was cut from text in which the last two may be joined by "and"."""

    items: list[Any]
    sentence: bool = False

    def parted(self, kept: set[str]) -> list[Any]:
        """The items, with "y and z" at the end as two of them unless it is one of those to be `kept`."""
        filled = [item for item in self.items if not isinstance(item, str) or item.strip()]
        if not self.sentence or not filled:
            return filled
        words = filled[-1].split()
        if len(filled) > 1 and len(words) > 1 and words[0].lower() in _JOINING:
            words = words[1:]
        joined = [place for place, word in enumerate(words) if word.lower() in _JOINING]
        last = " ".join(words)
        if len(joined) != 1 or not 0 < joined[0] < len(words) - 1 or normalize_text(last) in kept:
            return [*filled[:-1], last]
        return [*filled[:-1], " ".join(words[: joined[0]]), " ".join(words[joined[0] + 1 :])]


def _read(value: Any) -> _Items:
    if isinstance(value, str):
        return _parsed_list(value)
    return _Items(list(value) if isinstance(value, list | tuple) else [value])


def _normal(items: list[Any]) -> list[str]:
    texts = (normalize_text(item if isinstance(item, str) else _spelled(item)) for item in items)
    return [text for text in texts if text]


def _spelled(item: Any) -> str:
    try:
        return text_of(item)
    except (ValueError, TypeError):
        return repr(item)


def _parsed_list(text: str) -> _Items:
    try:
        value = decode(text)
        if isinstance(value, list):
            return _Items(value)
    except InputError:
        pass
    lines = text.splitlines()
    bulleted = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]
    if len(bulleted) > 1 or (bulleted and len(lines) == 1):
        return _Items(bulleted)
    embedded = find_json(text).value
    if isinstance(embedded, list):
        return _Items(embedded)
    separator = _BESIDE_THOUSANDS if _OTHER_SIGN.search(text.strip()) else _SEPARATOR
    return _Items(separator.split(text), sentence=True)
