"""Comparing the tool calls of a response with the expected ones."""

from collections.abc import Mapping
from typing import Any, Literal

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.scoring.definition import scorer
from evenhand.scoring.json_text import find_json
from evenhand.scoring.structure import json_target, same_json
from evenhand.scoring.types import ScorerInput

Call = tuple[str, Any]


@scorer(needs_target=True, version="2")
def tool_call_match(
    sample: ScorerInput,
    ordered: bool = True,
    arguments: Literal["exact", "subset", "ignore"] = "exact",
    extra: bool = False,
) -> dict[str, Any]:
    """The calls in the response are the target's: the same names with the same arguments.

    Calls come from `metadata["tool_calls"]`, else from JSON in the response: `{"name", "arguments"}`, OpenAI's
    `{"function": {"name", "arguments"}}`, or lists of these. `arguments="subset"` lets calls have more arguments
    than expected, `extra` lets there be more calls. The reward is the share of matched calls over all of them. An
    empty list as target expects no call; a target that is neither is unscored.
    """
    given = sample.metadata.get("tool_calls") if sample.metadata else None
    found = _calls(given if given is not None else find_json(sample.response).value)
    wanted = json_target(sample.target)
    expected = _calls(wanted)
    if not expected and wanted not in ([], {"tool_calls": []}):
        return {"unscored": "target_without_calls"}
    matched = _in_order(expected, found, arguments) if ordered else _any_order(expected, found, arguments)
    surplus = 0 if extra else len(found) - matched
    total = len(expected) + surplus
    return {
        "reward": matched / total if total else 1.0,
        "correct": matched == len(expected) and surplus == 0,
        "extracted": [{"name": name, "arguments": values} for name, values in found],
        "matched": matched,
        "expected": len(expected),
    }


def _calls(value: Any) -> list[Call]:
    """The calls that a JSON value stands for; what is no call is left out."""
    if isinstance(value, Mapping) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    entries = value if isinstance(value, list | tuple) else [value]
    calls = []
    for entry in entries:
        if isinstance(entry, Mapping):
            inner = entry.get("function")
            body = inner if isinstance(inner, Mapping) else entry
            name = body.get("name") or (inner if isinstance(inner, str) else None)
            if isinstance(name, str):
                calls.append((name, _arguments(body)))
    return calls


def _arguments(body: Mapping[str, Any]) -> Any:
    for key in ("arguments", "args", "parameters", "input"):
        if key in body:
            values = body[key]
            break
    else:
        return {}
    if isinstance(values, str):  # OpenAI sends arguments as JSON text
        try:
            return decode(values)
        except InputError:
            return values
    return {} if values is None else values


def _same(expected: Call, found: Call, arguments: str) -> bool:
    if expected[0] != found[0]:
        return False
    left, right = expected[1], found[1]
    if arguments == "ignore":
        return True
    if arguments == "subset" and isinstance(left, dict) and isinstance(right, dict):
        return all(key in right and same_json(value, right[key]) for key, value in left.items())
    return same_json(left, right)


def _in_order(expected: list[Call], found: list[Call], arguments: str) -> int:
    """The longest run of expected calls that stand in the found ones in that order."""
    row = [0] * (len(found) + 1)
    for wanted in expected[:1000]:
        previous = row[:]
        for index, call in enumerate(found[:1000], 1):
            longer = previous[index - 1] + 1 if _same(wanted, call, arguments) else 0
            row[index] = max(previous[index], row[index - 1], longer)
    return row[min(len(found), 1000)]


def _any_order(expected: list[Call], found: list[Call], arguments: str) -> int:
    """How many expected calls can be paired with different found ones: a maximum matching, by augmenting paths."""
    partners: dict[int, int] = {}

    def place(wanted: int, tried: set[int]) -> bool:
        for index, call in enumerate(found[:200]):
            if index not in tried and _same(expected[wanted], call, arguments):
                tried.add(index)
                if index not in partners or place(partners[index], tried):
                    partners[index] = wanted
                    return True
        return False

    return sum(place(wanted, set()) for wanted in range(min(len(expected), 200)))
