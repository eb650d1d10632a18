"""Row sources: JSONL, CSV and Parquet files, read as streams."""

from evenhand.datasets.row import Row
from evenhand.datasets.rows import read_rows

__all__ = ["Row", "read_rows"]
