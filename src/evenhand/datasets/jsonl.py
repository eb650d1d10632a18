"""One JSON object per line, plain or gzip-compressed."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from evenhand.core.errors import InputError
from evenhand.core.jsontext import check_keys, decode, without_lone_surrogates
from evenhand.datasets.row import Reject, Row

MAX_LINE = 64 * 1024 * 1024
"""How many bytes one line may have."""

_BOM = b"\xef\xbb\xbf"


def read(path: Path, reject: Reject, *, surrogates: bool = False) -> Iterator[Row]:
    """The objects of the file; blank lines and a byte-order mark are passed over.

    With `surrogates` a text with a surrogate that has no partner is kept as it stands; otherwise its line is bad.
    """
    with open_binary(path) as file:
        number = 0
        while line := _next_line(file, path, number + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(_BOM)
            if len(line) > MAX_LINE:
                _skip_rest(file, line)
                reject(InputError(f"the line is longer than {MAX_LINE:,} bytes", path=path, line=number))
                continue
            if not line.strip():
                continue
            try:
                value = _decode_all(line) if surrogates else _decode_once(line)
                if not isinstance(value, dict):
                    raise InputError(f"expected a JSON object, found {_kind(value)}")
            except InputError as error:
                reject(InputError(error.reason, path=path, line=number))
                continue
            yield Row(number, value)


def _decode_once(line: bytes) -> Any:
    value = decode(line)
    check_keys(line)
    return value


def _decode_all(line: bytes) -> Any:
    try:
        return _decode_once(line)
    except InputError:
        mended = without_lone_surrogates(line)
        if mended == line:
            raise
        _decode_once(mended)  # everything else must be sound
        return json.loads(line)


def open_binary(path: Path) -> BinaryIO:
    """The file's bytes, unpacked when its name ends in .gz."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _next_line(file: BinaryIO, path: Path, number: int) -> bytes:
    try:
        return file.readline(MAX_LINE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        # Nothing after this point can be read, so there is no line to pass over.
        raise InputError(f"damaged gzip data: {error}", path=path, line=number) from None


def _skip_rest(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE)


def _kind(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")
