"""Functions of the user's, named on the command line as `FILE.py:NAME`."""

import importlib.util
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError, MissingFile, OptionError, UnknownName


def load_name(text: str, option: str) -> Any:
    """What `FILE.py:NAME` names; modules beside the file can be imported, as `python FILE.py` would."""
    file, found, name = text.partition(".py:")
    if not found or not name:
        raise OptionError(f"{option} is FILE.py:NAME, not '{text}'")
    path = Path(f"{file}.py")
    if not path.is_file():
        raise MissingFile("no such file", path=path)
    module = _module(path.resolve(), path)
    if not hasattr(module, name):
        known = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
        raise UnknownName("function", name, known)
    return getattr(module, name)


def load_function(text: str, option: str) -> Callable[..., Any]:
    """`load_name` for something that can be called."""
    found = load_name(text, option)
    if not callable(found):
        raise OptionError(f"{option}: '{text}' is {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]  # callable is all that is known


def _module(resolved: Path, path: Path) -> Any:
    name = f"evenhand_user_{sha256(str(resolved).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # It stays there: a function may import when it is called.
    sys.path.insert(0, str(resolved.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"cannot be loaded: {type(error).__name__}: {error}", path=path) from error
    return module
