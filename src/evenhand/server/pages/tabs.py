"""Filters as links: each is an address."""

from msgspec import Struct


class Tab(Struct, frozen=True):
    """One choice; drawn by the macro `tabs`."""

    text: str
    href: str
    current: bool = False
    count: int | None = None
    """How many rows it leads to; from the same query as the list."""
