"""One row of a file, as every reader gives it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from evenhand.core.errors import InputError

Reject = Callable[[InputError], None]
"""What is told about a line that cannot be read."""


class Row(NamedTuple):
    """One row and where it stands."""

    line: int
    """The line of the file, from 1; for Parquet the number of the row."""
    values: dict[str, Any]
    """Column or key to value."""
