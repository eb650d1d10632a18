"""What suite files have in common: plain YAML, known keys, files within the folder, keys by the name of a variable."""

import difflib
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from evenhand import settings
from evenhand.core import yamltext
from evenhand.core.errors import InputError, MissingFile, OptionError
from evenhand.core.secret import Secret

MAX_FILE = 64 * 1024 * 1024
"""How large a file that a suite names may be."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def load_yaml(path: Path) -> Any:
    """The values of a YAML (or JSON) file: data only."""
    try:
        return yamltext.load(path.read_bytes())
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        raise InputError(str(problem), path=path, line=mark.line + 1 if mark else None) from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML: {error}", path=path) from None


def check_keys(given: Mapping[Any, Any], known: Collection[str], where: str) -> None:
    """`OptionError` for a key that is not known, with the nearest one that is."""
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), list(known), n=1, cutoff=0.5)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise OptionError(
                f"{where}: unknown key '{str(key)[:100]}'{hint} (known: {', '.join(sorted(known))})"
            )


def mapping(value: Any, where: str) -> dict[str, Any]:
    """The value as a mapping with texts as keys."""
    if not isinstance(value, dict):
        raise OptionError(f"{where} must be a mapping, not {type(value).__name__}")
    return {str(key): one for key, one in value.items()}


def text(value: Any, where: str) -> str:
    """The value as a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{where} must be a text")
    return value


def inside(home: Path, name: str, where: str) -> Path:
    """The file of this name within the suite's folder; one elsewhere is refused, also through a link."""
    base = home.resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise OptionError(
            f"{where}: '{name}' is outside the folder of the suite; only files within it are read"
        )
    if not path.is_file():
        raise MissingFile(f"{where} names this file, which does not exist", path=path)
    if path.stat().st_size > MAX_FILE:
        raise InputError(f"the file is larger than {MAX_FILE:,} bytes", path=path)
    return path


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", path=path) from None


def key_of(variable: Any, where: str) -> Secret | None:
    """The key in the variable of this name: a suite file holds no keys, only names."""
    if variable is None:
        return None
    if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
        raise OptionError(
            f"{where}: 'key' is the name of a variable of the environment, such as MY_API_KEY, never the key itself"
        )
    found = settings.key_named(variable)
    if found is None:
        raise OptionError(f"{where}: the variable {variable} is not set in the environment")
    return found
