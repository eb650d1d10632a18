"""Row sources: JSONL, CSV and Parquet files, read as streams."""

from evenhand.datasets.rows import Row, read_rows

__all__ = ["Row", "read_rows"]
