"""How the store asks for a page of a list: by the index of the list's owner, whatever the planner believes.

With `project_id = ? AND id < ? ORDER BY id` PostgreSQL may take the order from the primary key and skip the rows of
others: a small project's page then walks over all rows of a large one. In the order of owner and key together there is
one index to take. The columns are constants of this package.

A page also ends by bytes: rows may hold texts of megabytes each, and nobody should need a gigabyte for one answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from evenhand.store.connection import Bound, Connection, Row

T = TypeVar("T")
MOST_BYTES = 8 * 1024 * 1024
"""Characters of texts that a page holds, its first row excepted."""


class Cut(list[T]):
    """A page that ended before its limit of rows, because it was long enough: there is more after its last row."""


def bounded_rows(
    connection: Connection,
    columns: str,
    texts: Sequence[str],
    source: str,
    values: Sequence[Bound],
    limit: int,
    *,
    used: int = 0,
) -> list[Row]:
    """`SELECT columns source LIMIT limit`, or as many of the rows as `MOST_BYTES` of their texts allow. `used`: the length
    of what the page has already."""
    lengths = " + ".join(f"COALESCE(LENGTH({text}), 0)" for text in texts)
    total, count, cut = used, 0, False
    for (length,) in connection.all(f"SELECT {lengths} {source} LIMIT ?", *values, limit):
        total += length
        if total > MOST_BYTES and (count or used):
            cut = True
            break
        count += 1
    rows = connection.all(f"SELECT {columns} {source} LIMIT ?", *values, count)
    return Cut(rows) if cut else rows


def fitting(rows: list[T], lengths: Mapping[str, int], key: Callable[[T], str]) -> list[T]:
    """The first of the rows, as many as `MOST_BYTES` allow; `lengths` of what comes with each, by its key."""
    total = 0
    for place, row in enumerate(rows):
        total += lengths.get(key(row), 0)
        if total > MOST_BYTES and place:
            return Cut(rows[:place])
    return rows


def has_more(rows: Sequence[object], limit: int) -> bool:
    """Whether a list goes on after a page: `limit + 1` rows were asked for and came, or the page is a `Cut`."""
    return len(rows) > limit or isinstance(rows, Cut)


def as_cut(rows: Sequence[object], made: list[T]) -> list[T]:
    """What was made of rows, marked as they were."""
    return Cut(made) if isinstance(rows, Cut) else made


def oldest_first(owner: str, key: str, *, limited: bool = True) -> str:
    """The end of a `SELECT`, for the values owner, last key (or ""), owner, limit."""
    end = " LIMIT ?" if limited else ""
    return f"({owner}, {key}) > (?, ?) AND {owner} <= ? ORDER BY {owner}, {key}{end}"


def newest_first(owner: str, key: str, *, limited: bool = True) -> str:
    """The end of a `SELECT`, for the values owner, last key (or `LAST`), owner, limit."""
    end = " LIMIT ?" if limited else ""
    return f"({owner}, {key}) < (?, ?) AND {owner} >= ? ORDER BY {owner} DESC, {key} DESC{end}"


LAST = "~"
"""Sorts after every key."""
