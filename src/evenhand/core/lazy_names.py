"""Public names that are imported on first use (PEP 562), so that importing a package costs next to nothing.

A module with such names states them twice: as imports under `if TYPE_CHECKING`, which type checkers and the import
linter read, and as a table in the `else` branch, which works at run time. tests/test_public_names.py compares the two.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(
    module: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for `module`; `homes` maps a defining module to the names it defines."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        try:
            home = home_of[name]
        except KeyError:
            raise AttributeError(f"module '{module}' has no attribute {name!r}") from None
        value = getattr(import_module(home), name)
        setattr(sys.modules[module], name, value)
        return value

    def names_for_dir() -> list[str]:
        return sorted({*vars(sys.modules[module]), *home_of})

    return load, names_for_dir, sorted(home_of)


def public_names(module: ModuleType) -> list[str]:
    """The names of a module with lazy names, sorted. Type checkers do not see its `__all__`."""
    names: list[str] = vars(module)["__all__"]
    return names
