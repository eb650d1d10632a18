"""Rows of a file, one at a time, whatever its format. Memory stays flat however long the file is."""

from collections.abc import Iterator
from pathlib import Path

from evenhand.core.errors import InputError, MissingFile, OptionError
from evenhand.datasets.row import Reject, Row

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet")
STDIN = Path("-")
"""Stands for standard input."""

# ending -> format; a further .gz means compressed
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def read_rows(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002  the command line's name
    reject: Reject | None = None,
    surrogates: bool = False,
) -> Iterator[Row]:
    """The rows of a JSONL, JSON, CSV or TSV (all also .gz) or Parquet file; the format comes from the name unless given.

    `-` is standard input, JSONL or a JSON array unless `format` says otherwise. JSON is an array of objects, or one object
    per line.

    A line that cannot be read raises `InputError` with the file, the line and the reason. With `reject` it is
    handed over instead, and reading goes on. A lone surrogate in JSONL (a cut emoji) makes its line such a line,
    unless `surrogates` asks for the text as it stands.
    """
    path = Path(path)
    if path == STDIN:
        if format == "parquet":
            raise OptionError("Parquet cannot be read from standard input: name a file")
        return _checked(path, _rows(path, format or "json", reject or _raise, surrogates))
    if path.is_dir():
        raise InputError("this is a folder, not a file", path=path)
    if not path.exists():
        raise MissingFile("no such file", path=path)
    chosen = format or format_of(path)
    return _checked(path, _rows(path, chosen, reject or _raise, surrogates))


def _rows(path: Path, chosen: str, reject: Reject, surrogates: bool) -> Iterator[Row]:
    # A reader is loaded when a file needs it: the last one takes a package that may be missing.
    match chosen:
        case "jsonl":
            from evenhand.datasets import jsonl

            return jsonl.read(path, reject, surrogates=surrogates)
        case "json":
            from evenhand.datasets import jsonl

            return jsonl.read(path, reject, surrogates=surrogates, array=True)
        case "csv" | "tsv":
            from evenhand.datasets import delimited

            return delimited.read(path, reject, delimiter="," if chosen == "csv" else "\t")
        case "parquet":
            from evenhand.datasets import parquet

            return parquet.read(path, reject)
        case _:
            raise OptionError(f"unknown format '{chosen}'; it can be {', '.join(FORMATS)}")


def format_of(path: Path) -> str:
    """The format that a file's name stands for; `InputError` when it stands for none."""
    name = path.name.lower().removesuffix(".gz")
    for ending, found in ENDINGS.items():
        if name.endswith(ending):
            return found
    raise InputError(
        "cannot infer the format from the file name (.jsonl, .json, .csv, .tsv, .parquet); pass --input-format",
        path=path,
    )


def guess_count(path: Path, *, format: str | None = None) -> int | None:  # noqa: A002  as above
    """About how many rows a file has, for a progress bar; None when finding out would take reading it all twice."""
    if (
        path == STDIN
        or (format or format_of(path)) == "parquet"
        or path.name.lower().endswith(".gz")
        or not path.is_file()
    ):
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
        raise MissingFile("no such file", path=path) from None
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None
