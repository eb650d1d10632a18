"""How many traces came in by stretch of time, and how many of them failed, from the totals that are kept."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from evenhand.store.connection import Connection
from evenhand.store.trace_totals import totals_between


class Traffic(Struct, frozen=True):
    """The traces of one stretch of time."""

    count: int
    """How many there are."""
    error_count: int
    """How many of them hold a span that failed."""


def count_traffic(connection: Connection, project_id: str, keys: Sequence[str]) -> list[Traffic]:
    """One entry between each of `keys` (`key_from`) and the next."""
    found = [totals_between(connection, project_id, start, end) for start, end in pairwise(keys)]
    return [Traffic(totals.trace_count, totals.failed_count) for totals in found]
