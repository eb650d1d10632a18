"""JSON as other tools write it: NaN and Infinity become null, and nothing is believed before it was looked at."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.core import jsontext
from evenhand.core.errors import InputError, MissingFile

MAX_BYTES = 1 << 30
"""The largest file that is read."""
HEAD_BYTES = 65_536
"""How much of a file an importer looks at to recognise it."""


def read_head(path: Path) -> bytes:
    """The start of a file; nothing of a folder."""
    if path.is_dir():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None


def read_bytes(path: Path) -> bytes:
    """The whole file, up to `MAX_BYTES`."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"the file has {size:,} bytes; at most {MAX_BYTES:,} are read", path=path)
        return path.read_bytes()
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None


def decode(data: bytes, path: Path, *, line: int | None = None) -> Any:
    """The value of a JSON text."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return jsontext.decode(data, max_depth=1_000)
    except InputError as error:
        if b"NaN" not in data and b"Infinity" not in data and b"\\ud" not in data.lower():
            raise InputError(error.reason, path=path, line=line) from None
    try:
        return json.loads(jsontext.without_lone_surrogates(data), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise InputError(f"invalid JSON: {error}", path=path, line=line) from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    value = decode(read_bytes(path), path)
    if not isinstance(value, dict):
        raise InputError("a JSON object is expected", path=path)
    return value


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, with the number of each line."""
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        if line.strip():
            value = decode(line, path, line=number)
            if not isinstance(value, dict):
                raise InputError("a JSON object is expected", path=path, line=number)
            yield number, value


def as_dict(value: Any) -> dict[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_number(value: Any) -> float | None:
    """`value` as a finite number: booleans are 1 and 0; everything else is None."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        number = float(value)
        return number if number == number and abs(number) != float("inf") else None
    return None


def as_text(value: Any) -> str | None:
    """`value` as text: None stays None, what is no string becomes JSON."""
    if value is None or isinstance(value, str):
        return value
    return jsontext.canonical(value).decode()


def as_int(value: Any) -> int | None:
    """`value` where it is a whole number that fits a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None
