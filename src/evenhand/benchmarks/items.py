"""Rows that are items of a task: `input`, `expected`, `metadata`, under the names that datasets give them."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from evenhand.core.errors import InputError

INPUT_FIELDS = ("input", "question", "prompt", "query", "problem")
"""Where the input is looked for: the first that is there."""
EXPECTED_FIELDS = ("expected", "expected_output", "expected_answer", "answer", "target", "reference")
"""Likewise what is expected. A row without any of them has nothing that is expected."""
METADATA_FIELD = "metadata"


class Item(Struct, frozen=True, kw_only=True):
    """One row."""

    input: Any
    """What the task is given."""
    expected: Any = None
    """What it should come to; None when the row does not say."""
    metadata: dict[str, Any]
    """The row's `metadata` and all its other fields."""


def is_conversation(value: Any) -> bool:
    """Whether an input is a list of messages, which a chat model is sent as they are."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, Mapping) and {"role", "content"} <= turn.keys() for turn in value)
    )


def read_item(row: Mapping[str, Any]) -> Item:
    """The item of a row; `InputError` when it has no input."""
    name = next((name for name in INPUT_FIELDS if name in row), None)
    if name is None:
        has = ", ".join(map(str, row))[:200] or "none"
        raise InputError(f"the row has no input; its fields: {has}; looked for: {', '.join(INPUT_FIELDS)}")
    if row[name] is None:
        raise InputError("the input is null", field=name)
    expected = next((name for name in EXPECTED_FIELDS if name in row), None)
    own = row.get(METADATA_FIELD)
    metadata = {
        str(key): value
        for key, value in row.items()
        if key not in (name, expected) and not (key == METADATA_FIELD and isinstance(own, Mapping))
    }
    if isinstance(own, Mapping):
        metadata.update({str(key): value for key, value in own.items()})
    return Item(input=row[name], expected=None if expected is None else row[expected], metadata=metadata)
