"""Parquet files, read in small batches."""

from collections.abc import Iterator
from pathlib import Path

from evenhand.core.errors import InputError, MissingExtra
from evenhand.datasets.row import Reject, Row

BATCH = 1024
"""How many rows are in memory at a time."""


def read(path: Path, _reject: Reject) -> Iterator[Row]:
    """The rows of the file; a damaged file has no single bad row to pass over."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
    except arrow.ArrowException as error:
        raise InputError(f"not a readable Parquet file: {error}", path=path) from None
