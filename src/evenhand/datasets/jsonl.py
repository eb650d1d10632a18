"""One JSON object per line, plain or gzip-compressed."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, without_lone_surrogates
from evenhand.datasets.rows import Reject, Row

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
                value = _decode_all(line) if surrogates else decode(line)
                if not isinstance(value, dict):
                    raise InputError(f"expected a JSON object, found {_kind(value)}")
                _check_keys(line, value)
            except InputError as error:
                reject(InputError(error.reason, path=path, line=number))
                continue
            yield Row(number, value)


def _decode_all(line: bytes) -> Any:
    try:
        return decode(line)
    except InputError:
        mended = without_lone_surrogates(line)
        if mended == line:
            raise
        decode(mended)  # everything else must be sound
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


def _check_keys(line: bytes, value: dict[str, object]) -> None:
    """`InputError` when the object has a key twice: decoders keep the last and say nothing."""
    for key in value:
        # A key's text seen once cannot be there twice; seen again it may also be a value or a key further in.
        if line.count(b'"' + key.encode("utf-8", "replace") + b'"') > 1:
            json.loads(line, object_pairs_hook=_distinct, parse_int=str)
            return


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the key '{twice[:100]}' is there twice")
    return found


def _kind(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")
