"""CSV and TSV with a header line. Every value is text; what it means is the reader's business."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from evenhand.core.errors import InputError
from evenhand.datasets.jsonl import MAX_LINE, open_binary
from evenhand.datasets.row import Reject, Row


def read(path: Path, reject: Reject, *, delimiter: str = ",") -> Iterator[Row]:
    """The rows under the header, as RFC 4180 has them: quotes may hold delimiters and line breaks."""
    named = "CSV" if delimiter == "," else "TSV"
    # The module's own limit of 128 KiB per field is shorter than many answers.
    csv.field_size_limit(MAX_LINE)
    with io.TextIOWrapper(
        open_binary(path), encoding="utf-8-sig", errors="surrogateescape", newline=""
    ) as file:
        reader = csv.reader(file, strict=True, delimiter=delimiter)
        try:
            header = _next(reader, path)
        except csv.Error as error:
            raise InputError(f"invalid {named}: {error}", path=path, line=1) from None
        if not header:
            raise InputError("the file is empty; a header line is needed", path=path, line=1)
        _check_header(header, path)
        while True:
            start = reader.line_num + 1
            try:
                fields = _next(reader, path)
            except csv.Error as error:
                reject(InputError(f"invalid {named}: {error}", path=path, line=start))
                continue
            if fields is None:
                return
            if not fields:
                continue
            problem = _problem(fields, header)
            if problem:
                reject(InputError(problem, path=path, line=start))
            else:
                yield Row(start, dict(zip(header, fields, strict=True)))


class _Reader(Protocol):
    """What `csv.reader` gives."""

    line_num: int

    def __next__(self) -> list[str]: ...


def _next(reader: _Reader, path: Path) -> list[str] | None:
    try:
        return next(reader)
    except StopIteration:
        return None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip data: {error}", path=path, line=reader.line_num + 1) from None


def _check_header(header: list[str], path: Path) -> None:
    for name in header:
        if not name:
            raise InputError("a column of the header has no name", path=path, line=1)
        if header.count(name) > 1:
            raise InputError(f"duplicate column '{name}'", path=path, line=1)
    if _problem(header, header):
        raise InputError("invalid UTF-8", path=path, line=1)


def _problem(fields: list[str], header: list[str]) -> str | None:
    if len(fields) != len(header):
        return f"{len(fields)} fields where the header has {len(header)}"
    for field in fields:
        # Invalid bytes were read as lone surrogates, which valid UTF-8 cannot hold.
        if not field.isascii() and any("\ud800" <= char <= "\udfff" for char in field):
            return "invalid UTF-8"
    return None
