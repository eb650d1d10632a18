"""Evenhand turns AI outputs into measurements, and measurements into decisions.

The public names are those in ``__all__``, loaded on first use, so that ``import evenhand`` costs next to
nothing. Everything else may move between releases.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it
_PUBLIC: dict[str, str] = {}

__all__ = [
    "__version__",
]


def __getattr__(name: str) -> Any:
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}") from None
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
