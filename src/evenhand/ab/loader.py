"""Reading `collected.jsonl`: the only place in this package that touches a file.

Lines are decoded straight into typed records, a block at a time. Only a block that holds a bad line is walked again,
line by line, to say which field of which line is wrong and why.
"""

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from evenhand.ab.record import AMOUNTS, RunRecord, parse_record
from evenhand.ab.table import RunTable, TableBuilder
from evenhand.core import jsontext
from evenhand.core.errors import InputError, MissingFile

_BLOCK_BYTES = 1 << 20
_KEPT_REASONS = 20
_decode = msgspec.json.Decoder(RunRecord).decode
_encode_lines = msgspec.json.Encoder().encode_lines
_BOM = b"\xef\xbb\xbf"
_LONG_NUMBER = re.compile(rb"[0-9.]{17}")
"""16 digits and a point: a float gives back every shorter number as it was written."""
_decode_amounts = msgspec.json.Decoder(
    msgspec.defstruct("Amounts", [(name, Decimal | None, None) for name in AMOUNTS])
).decode


def load_records(path: Path | str, *, skip_invalid: bool = False) -> RunTable:
    """The runs in a JSON Lines file (`.gz` is unpacked).

    A bad line raises `InputError` with the file, the line, the field and the reason; with `skip_invalid` it is left
    out and counted. The same task, arm and repeat twice is an error either way.
    """
    builder = TableBuilder()
    reasons: list[str] = []
    skipped = 0
    first = 1
    with _opened(Path(path)) as file:
        for block in _blocks(file):
            lines = block.removesuffix(b"\n").split(b"\n")
            bad: list[str] = []
            places: Sequence[int] = range(first, first + len(lines))
            try:
                rows = _rows(block, lines)
            except (msgspec.DecodeError, InputError, UnicodeDecodeError, RecursionError):
                rows, places, bad = _walk(lines, first, path, skip_invalid=skip_invalid)
            builder.add(rows, places, _long_numbers(block, lines, first, places))
            skipped += len(bad)
            reasons += bad[: _KEPT_REASONS - len(reasons)]
            first += len(lines)
    return builder.build(path=path, invalid=reasons, invalid_count=skipped)


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix == ".gz":
            return cast(BinaryIO, io.BufferedReader(gzip.open(path, "rb")))
        return path.open("rb")
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, a few megabytes at a time."""
    try:
        first = True
        while block := file.read(_BLOCK_BYTES):
            block += file.readline()
            if first:
                block = block.removeprefix(_BOM)
            first = False
            yield block
    except (OSError, EOFError) as error:
        name = getattr(file, "name", None)
        raise InputError(f"cannot be read: {error}", path=name) from None


def _rows(block: bytes, lines: list[bytes]) -> list[RunRecord]:
    """The records of a block without a bad line; otherwise an error, which `_walk` explains."""
    if not block.isascii():
        # Bytes of unknown fields are not looked at by the decoder, so their encoding is checked here.
        block.decode("utf-8")
    rows = [_decode(line) for line in lines]
    # Fields that a record does not have, and optional ones that are null, do not come back either.
    if not jsontext.keeps_keys(block, _encode_lines(rows)):
        array = b"[" + b",".join(lines) + b"]"
        if jsontext.repeated_key(array) is not None:
            raise InputError("duplicate key")
    return rows


def _long_numbers(
    block: bytes, lines: list[bytes], first: int, places: Sequence[int]
) -> dict[tuple[int, str], Decimal]:
    """The amounts of good lines that are written with more digits than a float gives back."""
    found: dict[tuple[int, str], Decimal] = {}
    if _LONG_NUMBER.search(block) is None:
        return found
    for row, number in enumerate(places):
        line = lines[number - first]
        if _LONG_NUMBER.search(line) is None:
            continue
        amounts = _decode_amounts(jsontext.without_lone_surrogates(line))
        for name in AMOUNTS:
            value: Decimal | None = getattr(amounts, name)
            if value is not None and value != Decimal(repr(float(value))):
                found[row, name] = value
    return found


def _walk(
    lines: list[bytes], first: int, path: Path | str, *, skip_invalid: bool
) -> tuple[list[RunRecord], list[int], list[str]]:
    """The good lines, their numbers, and what is wrong with the others."""
    rows: list[RunRecord] = []
    places: list[int] = []
    bad: list[str] = []
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            line.decode("utf-8")
            # What people typed may hold half an emoji; no field that counts does.
            text = jsontext.without_lone_surrogates(line)
            value = jsontext.decode(text)
            jsontext.check_keys(text)
            rows.append(parse_record(value))
            places.append(number)
        except (InputError, UnicodeDecodeError) as error:
            reason = (
                error.reason
                if isinstance(error, InputError)
                else f"is not UTF-8 text (byte {error.start} of the line)"
            )
            field = getattr(error, "field", None)
            placed = InputError(reason, path=path, line=number, field=field)
            if not skip_invalid:
                raise placed from None
            bad.append(str(placed))
    return rows, places, bad
