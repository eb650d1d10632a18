"""What the store asks of a database connection, and what a dialect must offer: the port of this package.

Every statement is written once, for both dialects: `?` for a bound value, and `IN [?]` for a bound list.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

Value = str | int | float | bytes | None
"""What can be bound to a statement."""
Bound = Value | Sequence[str]
"""A value, or the list behind `IN [?]`."""
Row = tuple[Any, ...]

Kind = Literal["sqlite", "postgresql"]
LIST = "IN [?]"


class Connection(Protocol):
    """One connection, used by one thread at a time."""

    kind: Kind

    def all(self, sql: str, *values: Bound) -> list[Row]:
        """Every row."""

    def one(self, sql: str, *values: Bound) -> Row | None:
        """The first row, if there is one."""

    def ask(self, sql: str, *values: Bound) -> Callable[[], list[Row]]:
        """`all` in two steps: inside `pipelined`, several questions travel together before the first answer is read."""

    def ask_texts(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        """`ask` for `SELECT columns source`, in no particular order, where all columns are texts or integers.

        `source` has at most one list, and each of the list's values is looked up by an index.
        """

    def look_up(self, columns: str, source: str, *values: Bound) -> Callable[[], list[Row]]:
        """`ask_texts` for columns of any kind."""

    def pipelined(self) -> AbstractContextManager[object]:
        """Within it, questions asked and changes run travel to the database together where it is far away."""

    def run(self, sql: str, *values: Bound) -> int:
        """Execute a change; the number of rows that it touched."""

    def run_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Execute a change for each row of values; an `INSERT … VALUES (?, …)` takes many rows at once."""

    def insert_many(
        self, table: str, always: Mapping[str, Value], columns: Sequence[str], values: Sequence[Value]
    ) -> None:
        """Add many rows in the quickest way that the database has: `values` are those of `columns`, one row after the
        other, and `always` those that all rows share. The names are constants of this package."""

    def script(self, sql: str) -> None:
        """Execute several statements of a migration."""

    def begin(self) -> None:
        """Start a transaction; a writing one excludes all other writers until it ends."""

    def commit(self) -> None:
        """End the transaction; when this returns, it is on disk."""

    def rollback(self) -> None:
        """Forget the transaction."""

    def close(self) -> None:
        """Release everything."""


class Dialect(Protocol):
    """How one kind of database is opened, and what its errors mean."""

    kind: Kind
    place: str
    """What people are told of where the database is; no password."""

    def open_writer(self) -> Connection:
        """The connection that changes things."""

    def reopen_writer(self) -> Connection:
        """The same after the last one failed: nothing that it left behind unsaved is taken for saved."""

    def open_reader(self) -> Connection:
        """A connection that cannot change anything and stops statements that take too long."""

    def translate_error(self, error: Exception) -> Exception:
        """Ours for theirs, where there is one; otherwise the error itself."""

    def lasting_failure(self, error: Exception) -> bool:
        """True when the connection must not be used any more."""

    def worth_retrying(self, error: Exception) -> bool:
        """True when the same transaction may well succeed a moment later."""

    def close(self) -> None:
        """Release what the dialect itself holds (a lock file)."""
