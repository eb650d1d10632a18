"""What decides a scorer's grades, as data: two scores are comparable when the fingerprints of their scorers are equal.

A scorer of this package is told by its name, version and options: its version is raised when its grades change; that
of a built-in benchmark by the scorers that it calls, too. A scorer of a user's own is told by the text of its function as well, without its decorators (a benchmark's prompt
stands in one), and by the fingerprints of the scorers that it calls: a user's function that calls `fuzzy_match`
grades differently when `fuzzy_match` does.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from evenhand.scoring.definition import Scorer

MAX_DEPTH = 5
"""How many calls deep scorers and functions of the user's are looked for."""


def fingerprint(scorer: Scorer[..., Any], *, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Name, version, options; of a user's scorer also its text and what it calls."""
    function = inspect.unwrap(scorer)
    found: dict[str, Any] = dict(scorer.identity)
    if not _is_ours(function):
        found["text"] = source_text(function)
    if not str(function.__module__).startswith("evenhand.scoring."):
        found["calls"] = list(_called(function, depth))
    return found


def source_text(function: Any) -> str:
    """A function's text without decorators, comments and layout; its name where there is no text."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a lambda within a longer expression
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
    return ast.unparse(tree)


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "evenhand"


def _called(function: Any, depth: int) -> Iterator[Any]:
    """The scorers and the user's own functions that the function names, sorted by name."""
    if depth <= 0 or not isinstance(function, FunctionType):
        return
    closure = inspect.getclosurevars(function)
    named = {**closure.globals, **closure.nonlocals}
    for name in sorted({*named, *used_names(function.__code__)}):
        value = named.get(name)
        if isinstance(value, Scorer):
            yield [name, fingerprint(value, depth=depth - 1)]
        elif isinstance(value, FunctionType) and value is not function and not _is_ours(value):
            if value.__module__ == function.__module__:
                yield [name, source_text(value), list(_called(value, depth - 1))]
        elif value is None:
            # `evenhand.fuzzy_match(sample)`: the name is an attribute of a module that the function uses.
            for module in closure.globals.values():
                if inspect.ismodule(module) and isinstance(scorer := getattr(module, name, None), Scorer):
                    yield [name, fingerprint(scorer, depth=depth - 1)]
                    break


def used_names(code: CodeType) -> set[str]:
    """Every name that the code and the functions inside it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= used_names(constant)
    return names
