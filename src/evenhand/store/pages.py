"""How the store asks for a page of a list: by the index of the list's owner, whatever the planner believes.

With `project_id = ? AND id < ? ORDER BY id` PostgreSQL may take the order from the primary key and skip the rows of
others: a small project's page then walks over all rows of a large one. In the order of owner and key together there is
one index to take. The columns are constants of this package.
"""


def oldest_first(owner: str, key: str) -> str:
    """The end of a `SELECT`, for the values owner, last key (or ""), owner, limit."""
    return f"({owner}, {key}) > (?, ?) AND {owner} <= ? ORDER BY {owner}, {key} LIMIT ?"


def newest_first(owner: str, key: str) -> str:
    """The end of a `SELECT`, for the values owner, last key (or `LAST`), owner, limit."""
    return f"({owner}, {key}) < (?, ?) AND {owner} >= ? ORDER BY {owner} DESC, {key} DESC LIMIT ?"


LAST = "~"
"""Sorts after every key."""
