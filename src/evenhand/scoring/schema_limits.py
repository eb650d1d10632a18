"""What a JSON Schema may be, and whether validating with it is sure to be quick."""

from typing import Any

from evenhand.core.errors import InputError, OptionError
from evenhand.core.jsontext import checked_finite, decode, encode

MAX_BYTES = 65_536
"""How large a schema may be."""
MAX_DEPTH = 32
"""How deep a schema may nest, counted in objects and arrays."""
MAX_NODES = 2_000
"""How many objects and arrays a schema may hold."""
MAX_EXPANDED = 10_000
"""How many nodes a schema may have with every reference written out, to be validated in this process."""

_REFERENCES = {"$dynamicRef", "$recursiveRef"}


def check_limits(schema: Any) -> dict[str, Any] | bool:
    """A plain copy of the schema; `OptionError` when it is none or too large."""
    if not isinstance(schema, dict | bool):
        raise OptionError(f"a JSON schema is an object or a truth value, not {type(schema).__name__}")
    try:
        data = encode(checked_finite(schema))
    except (ValueError, TypeError, RecursionError) as error:
        raise OptionError(f"invalid JSON schema: {error}") from None
    if len(data) > MAX_BYTES:
        raise OptionError(f"the JSON schema has {len(data):,} bytes; at most {MAX_BYTES:,} are allowed")
    nodes = data.count(b"{") + data.count(b"[")
    if nodes > MAX_NODES:
        raise OptionError(f"the JSON schema has {nodes:,} nodes; at most {MAX_NODES:,} are allowed")
    try:
        plain = decode(data, max_depth=MAX_DEPTH)
    except InputError as error:
        raise OptionError(f"the JSON schema: {error.reason}") from None
    assert isinstance(plain, dict | bool)
    return plain


def expanded_size(schema: dict[str, Any] | bool) -> int | None:
    """How many nodes the schema has with its references written out; None when that has no end or is unknown."""
    if isinstance(schema, bool):
        return 1
    sizes: dict[str, int | None] = {}

    def size(node: Any) -> int | None:
        if not isinstance(node, dict | list):
            return 0
        total = 1
        if isinstance(node, dict):
            if not _REFERENCES.isdisjoint(node) or ("$id" in node and node is not schema):
                return None
            reference = node.get("$ref")
            if isinstance(reference, str):
                target = referenced(reference)
                if target is None:
                    return None
                total += target
        for child in node.values() if isinstance(node, dict) else node:
            part = size(child)
            if part is None:
                return None
            total += part
        return total

    def referenced(reference: str) -> int | None:
        if reference not in sizes:
            sizes[reference] = None  # met again on the way down: a cycle
            found = _at_pointer(schema, reference)
            sizes[reference] = None if found is None else size(found)
        return sizes[reference]

    return size(schema)


def _at_pointer(schema: dict[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        return None
    node: Any = schema
    for token in reference[2:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, dict) else None
    return node


def node_count(value: Any) -> int:
    """How many values an instance holds."""
    count = 0
    stack = [value]
    while stack:
        item = stack.pop()
        count += 1
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return count
