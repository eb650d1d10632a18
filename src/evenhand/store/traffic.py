"""How many traces came in by stretch of time, and how many of them failed: counted in indexes, no row is read."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from evenhand.store.connection import Connection


class Traffic(Struct, frozen=True):
    """The traces of one stretch of time."""

    count: int
    """How many there are."""
    error_count: int
    """How many of them hold a span that failed."""


def count_traffic(connection: Connection, project_id: str, keys: Sequence[str]) -> list[Traffic]:
    """One entry between each of `keys` (`key_from`) and the next."""
    between = "FROM traces WHERE project_id = ? AND trace_key >= ? AND trace_key < ?"
    with connection.pipelined():
        asked = [
            (
                connection.ask(f"SELECT COUNT(*) {between}", project_id, start, end),
                connection.ask(f"SELECT COUNT(*) {between} AND error_count > 0", project_id, start, end),
            )
            for start, end in pairwise(keys)
        ]
        return [Traffic(every()[0][0], failed()[0][0]) for every, failed in asked]
