"""Reads the docstrings under the fields of our types, for the generated documentation."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_args, get_origin

import msgspec


@cache
def field_texts(wanted: type[msgspec.Struct]) -> dict[str, str]:
    """Field to sentence, inherited fields included; those of types whose source is not at hand are missing."""
    found: dict[str, str] = {}
    for cls in reversed(wanted.__mro__):
        if issubclass(cls, msgspec.Struct) and cls is not msgspec.Struct:
            found |= dict(_own_texts(cls))
    return found


def _own_texts(cls: type) -> Iterator[tuple[str, str]]:
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):
        return
    assert isinstance(definition, ast.ClassDef)
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield field.target.id, " ".join(after.value.value.split())


def structs_in(wanted: Iterable[Any]) -> set[type[msgspec.Struct]]:
    """The Structs among the types, and those that their fields are made of."""
    found: set[type[msgspec.Struct]] = set()
    waiting = list(wanted)
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        plain = get_origin(one) or one
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and plain not in found:
            found.add(plain)
            waiting += [field.type for field in msgspec.structs.fields(plain)]
    return found
