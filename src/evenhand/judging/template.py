"""Templates with `{{name}}` places, filled in a single pass."""

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def places(template: str) -> set[str]:
    """The names that a template asks for."""
    return set(_PLACE.findall(template))


def render(template: str, values: Mapping[str, str]) -> str:
    """`template` with its places filled; unknown names stay as they are.

    One pass: a value that itself holds `{{output}}` is text, and is not filled again.
    """
    return _PLACE.sub(lambda match: values.get(match.group(1), match.group(0)), template)
