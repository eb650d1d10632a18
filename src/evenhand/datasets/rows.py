"""Rows of a file, one at a time, whatever its format. Memory stays flat however long the file is."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.core.errors import InputError, OptionError

FORMATS = ("jsonl", "csv", "parquet")

# ending -> format; a further .gz means compressed
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}

# format -> module with `read(path, reject)`
_READERS = {
    "jsonl": "evenhand.datasets.jsonl",
    "csv": "evenhand.datasets.delimited",
    "parquet": "evenhand.datasets.parquet",
}

Reject = Callable[[InputError], None]


class Row(NamedTuple):
    """One row and where it stands."""

    line: int
    """The line of the file, from 1; for Parquet the number of the row."""
    values: dict[str, Any]
    """Column or key to value."""


def read_rows(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002  the command line's name
    reject: Reject | None = None,
    surrogates: bool = False,
) -> Iterator[Row]:
    """The rows of a JSONL (also .gz), CSV or Parquet file; the format comes from the name unless given.

    A line that cannot be read raises `InputError` with the file, the line and the reason. With `reject` it is
    handed over instead, and reading goes on. A lone surrogate in JSONL (a cut emoji) makes its line such a line,
    unless `surrogates` asks for the text as it stands.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError("this is a folder, not a file", path=path)
    if not path.exists():
        raise InputError("no such file", path=path)
    chosen = format or format_of(path)
    if chosen not in _READERS:
        raise OptionError(f"unknown format '{chosen}'; it can be {', '.join(FORMATS)}")
    more = {"surrogates": surrogates} if chosen == "jsonl" else {}
    rows: Iterator[Row] = import_module(_READERS[chosen]).read(path, reject or _raise, **more)
    return _checked(path, rows)


def format_of(path: Path) -> str:
    """The format that a file's name stands for; `InputError` when it stands for none."""
    name = path.name.lower().removesuffix(".gz")
    for ending, found in ENDINGS.items():
        if name.endswith(ending):
            return found
    raise InputError(
        "the name says no format; name it .jsonl, .csv or .parquet, or say which with --input-format",
        path=path,
    )


def guess_count(path: Path, *, format: str | None = None) -> int | None:  # noqa: A002  as above
    """About how many rows a file has, for a progress bar; None when finding out would take reading it all twice."""
    if (format or format_of(path)) == "parquet" or path.name.lower().endswith(".gz") or not path.is_file():
        return None  # a pipe can be read only once
    count = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            count += chunk.count(b"\n")
    return max(count, 1)


def _raise(error: InputError) -> None:
    raise error


def _checked(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except FileNotFoundError:
        raise InputError("no such file", path=path) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from None
