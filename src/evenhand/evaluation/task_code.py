"""What decides a task's answers, as far as its code tells.

A run is resumed, and a cached answer taken, only while this is the same. It holds the text of the function, of the
user's own functions and classes that it uses, in whatever module, and the texts and numbers that it takes from its module
(a prompt, a temperature). Not seen: the state of objects, files, installed packages, and what is found only by running.
"""

import inspect
import sys
import sysconfig
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from evenhand.scoring.definition import Scorer
from evenhand.scoring.fingerprint import fingerprint, source_text, used_names

MAX_PARTS = 1000
"""So many functions and classes are looked at, at most."""
_PLACES = tuple(
    str(Path(path).resolve())
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)


def task_fingerprint(function: Any) -> dict[str, Any]:
    """The name of the function, its text, and the text of what it uses."""
    bound: list[Any] = []
    while isinstance(function, partial):
        named = {key: _shown(value) for key, value in function.keywords.items()}
        bound.append([[_shown(value) for value in function.args], named])
        function = function.func
    shown = _code_of(function)
    parts: dict[str, Any] = {}
    _collect(shown, parts)
    found = {"name": getattr(shown, "__qualname__", repr(shown)), "parts": parts}
    return {**found, "bound": bound} if bound else found


def _shown(value: Any) -> str:
    """A bound argument; of an object only its type, for its address is another one in the next process."""
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__qualname__


def _code_of(value: Any) -> Any:
    """The function or class behind something that can be called."""
    shown = inspect.unwrap(value)
    shown = getattr(shown, "__func__", shown)
    return shown if isinstance(shown, FunctionType | type) else type(shown)


def _collect(code: Any, parts: dict[str, Any]) -> None:
    name = f"{code.__module__}.{code.__qualname__}".removeprefix("__main__.")
    if name in parts or len(parts) >= MAX_PARTS:
        return
    parts[name] = source_text(code)
    functions = [code] if isinstance(code, FunctionType) else _methods(code)
    for function in functions:
        closure = inspect.getclosurevars(function)
        names = used_names(function.__code__)
        for key, value in sorted({**closure.globals, **closure.nonlocals}.items()):
            if isinstance(value, ModuleType):
                for attribute in sorted(names):
                    _take(f"{key}.{attribute}", vars(value).get(attribute), parts, name)
            elif isinstance(value, str) or key in closure.globals:
                _take(key, value, parts, name)


def _methods(kind: type) -> list[FunctionType]:
    found = [getattr(one, "__func__", one) for one in vars(kind).values()]
    return [one for one in found if isinstance(one, FunctionType)]


def _take(key: str, value: Any, parts: dict[str, Any], user: str) -> None:
    if isinstance(value, str | int | float):
        parts.setdefault(f"{user}: {key}", repr(value))
    elif isinstance(value, Scorer):
        parts.setdefault(f"{user}: {key}", fingerprint(value))
    elif callable(value) and not isinstance(value, ModuleType):
        try:
            code = _code_of(value)
        except ValueError:  # wrappers in a circle
            return
        if _is_the_users(code):
            _collect(code, parts)


def _is_the_users(code: Any) -> bool:
    module = sys.modules.get(code.__module__)
    file = getattr(module, "__file__", None)
    if module is None or str(code.__module__).partition(".")[0] == "evenhand":
        return False
    return file is None or not str(Path(file).resolve()).startswith(_PLACES)
