"""Public names that are imported on first use (PEP 562), so that importing a package costs next to nothing."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """The value of `package`.`name`, from the module that `homes` names; kept there for the next time."""
    try:
        home = homes[name]
    except KeyError:
        raise AttributeError(f"module '{package}' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    setattr(sys.modules[package], name, value)
    return value
