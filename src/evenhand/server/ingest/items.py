"""Dataset items on their way in."""

from msgspec import Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.server.http.fields import json_text, object_text
from evenhand.store.datasets import ItemText


class ItemCreate(Struct, frozen=True, kw_only=True):
    """An item to be added."""

    input: Raw = field(default_factory=Raw)
    """Any JSON but null; required."""
    expected_output: Raw = field(default_factory=Raw)
    """Any JSON."""
    metadata: Raw = field(default_factory=Raw)
    """A JSON object."""


def item_text(body: ItemCreate) -> ItemText:
    """The item as it will be stored; `INVALID_REQUEST` without an input."""
    given = json_text(body.input, "input")
    if given is None:
        raise Refusal("INVALID_REQUEST", "'input' is required and cannot be null.", {"field": "input"})
    return ItemText(
        input=given,
        expected_output=json_text(body.expected_output, "expected_output"),
        metadata=object_text(body.metadata, "metadata"),
    )
