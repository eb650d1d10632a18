"""One JSON object per line, or an array of objects; plain or gzip-compressed."""

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from evenhand.core.errors import InputError
from evenhand.core.jsontext import check_keys, decode, without_lone_surrogates
from evenhand.datasets.row import Reject, Row

MAX_LINE = 64 * 1024 * 1024
"""How many bytes one line may have."""
MAX_ARRAY = 1024 * 1024 * 1024
"""How many bytes an array may have."""

_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_BOM = b"\xef\xbb\xbf"


def read(path: Path, reject: Reject, *, surrogates: bool = False, array: bool = False) -> Iterator[Row]:
    """The objects of the file; blank lines and a byte-order mark are passed over.

    With `surrogates` a text with a surrogate that has no partner is kept as it stands; otherwise its line is bad. With
    `array` a file that begins with a bracket is one array, which is held in memory whole.
    """
    with open_binary(path) as opened:
        file = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, opened))) if array else opened
        if array and _starts_array(cast(io.BufferedReader, file), path):
            yield from _read_array(file, path, reject, surrogates)
            return
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
            row = _row(line, number, path, reject, surrogates)
            if row is not None:
                yield row


def _row(data: bytes, number: int, path: Path, reject: Reject, surrogates: bool) -> Row | None:
    try:
        value = _decode_all(data) if surrogates else _decode_once(data)
        if not isinstance(value, dict):
            raise InputError(f"expected a JSON object, found {_kind(value)}")
    except InputError as error:
        reject(InputError(error.reason, path=path, line=number))
        return None
    return Row(number, value)


def _starts_array(file: io.BufferedReader, path: Path) -> bool:
    try:
        start = file.peek(64)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip data: {error}", path=path, line=1) from None
    return start.removeprefix(_BOM).lstrip().startswith(b"[")


def _read_array(file: BinaryIO, path: Path, reject: Reject, surrogates: bool) -> Iterator[Row]:
    """The elements of one array; `line` is the number of the element, from 1."""
    try:
        data = file.read(MAX_ARRAY + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip data: {error}", path=path) from None
    if len(data) > MAX_ARRAY:
        raise InputError(
            f"the array is longer than {MAX_ARRAY:,} bytes; write one object per line", path=path
        )
    data = data.removeprefix(_BOM)
    try:
        # A cut emoji would spoil the whole array, not only its element: it is mended, if that is allowed.
        elements = _ELEMENTS.decode(without_lone_surrogates(data) if surrogates else data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"invalid JSON array: {error}", path=path) from None
    for number, element in enumerate(elements, start=1):
        row = _row(bytes(element), number, path, reject, surrogates)
        if row is not None:
            yield row


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
    """The file's bytes, unpacked when its name ends in .gz; `-` is standard input."""
    if path == Path("-"):
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
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
