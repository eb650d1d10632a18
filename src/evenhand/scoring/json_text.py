"""Finding the JSON in a response: the whole of it, a fenced block, or a value within prose."""

import re
from typing import Any, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.core.sample import response_text

MAX_TEXT = 4_000_000
"""How many characters are searched for JSON."""

_FENCE = re.compile(r"```([^\n`]*)\n(.*?)```", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_PAIRS = {"}": "{", "]": "["}


class Found(NamedTuple):
    """What was found: a value, or the reason why there is none."""

    value: Any
    problem: str | None


def find_json(text: str) -> Found:
    """The JSON value of a response.

    The whole text when it is JSON; else the last fenced block that is (blocks marked json first); else the last
    object in the text that is, else the last array.
    """
    readable = response_text(text)
    if readable is None:
        return Found(None, "there is no response")
    text = readable
    if len(text) > MAX_TEXT:
        return Found(
            None, f"the response has {len(text):,} characters; at most {MAX_TEXT:,} are searched for JSON"
        )
    try:
        return Found(decode(text), None)
    except InputError as error:
        problem = error.reason.removeprefix("invalid JSON: ")
    if "{" not in text and "[" not in text and "```" not in text:
        return Found(None, "there is no JSON in the response")
    for part in _fenced(text) + _within_prose(text):
        try:
            return Found(decode(part), None)
        except InputError as error:
            if part.lstrip()[:1] in ("{", "["):
                problem = error.reason.removeprefix("invalid JSON: ")
    return Found(None, problem)


def extract_json(text: str) -> Any:
    """The JSON value of a response, wherever it stands in it; None when there is none."""
    return find_json(text).value


def _fenced(text: str) -> list[str]:
    blocks = [(match.group(1).strip().lower(), match.group(2)) for match in _FENCE.finditer(text)]
    marked = [body for label, body in blocks if label.startswith("json")]
    others = [body for label, body in blocks if not label.startswith("json")]
    return marked[::-1] + others[::-1]


def _within_prose(text: str) -> list[str]:
    """Outermost balanced objects from the last to the first, then arrays likewise."""
    regions: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    position = 0
    while match := _TOKEN.search(text, position):
        position = match.end()
        found = match.group()
        if found in _PAIRS.values():
            opened.append((found, match.start()))
        elif found in _PAIRS:
            # A bracket that nothing opened is prose, and so is one opened by the wrong kind.
            if opened and opened[-1][0] == _PAIRS[found]:
                start = opened.pop()[1]
                while regions and regions[-1][0] > start:
                    regions.pop()
                regions.append((start, position))
        elif not opened:
            # Quotation marks outside brackets do not begin a JSON string.
            position = match.start() + 1
    parts = [text[start:end] for start, end in regions]
    return [p for p in reversed(parts) if p[0] == "{"] + [p for p in reversed(parts) if p[0] == "["]
