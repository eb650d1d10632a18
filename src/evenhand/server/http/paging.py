"""Cursors: opaque, checked, and made of the last item's key, so that inserts move nothing."""

import base64
import binascii
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.server.http.answers import Page
from evenhand.store.pages import has_more

T = TypeVar("T")
DEFAULT_LIMIT = 50
MAX_LIMIT = 200


class Paging(Struct, frozen=True, kw_only=True):
    """The query parameters that every list takes."""

    limit: int = DEFAULT_LIMIT
    """How many items at most: 1 to 200."""
    cursor: str | None = None
    """`next_cursor` of the page before."""

    def checked_limit(self) -> int:
        if not 1 <= self.limit <= MAX_LIMIT:
            raise Refusal(
                "INVALID_REQUEST", f"'limit' must be between 1 and {MAX_LIMIT}.", {"field": "limit"}
            )
        return self.limit

    def after(self, listing: str, parts: int = 1) -> tuple[str, ...] | None:
        """The key in the cursor; `INVALID_REQUEST` for a cursor of another list or one that we did not make."""
        return None if self.cursor is None else read_cursor(self.cursor, listing, parts)


def make_cursor(listing: str, key: Sequence[str]) -> str:
    payload = msgspec.json.encode([listing, *key])
    return base64.urlsafe_b64encode(zlib.crc32(payload).to_bytes(4, "big") + payload).decode().rstrip("=")


def read_cursor(cursor: str, listing: str, parts: int) -> tuple[str, ...]:
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        payload = data[4:]
        if zlib.crc32(payload).to_bytes(4, "big") != data[:4]:
            raise ValueError("checksum")
        name, *key = msgspec.json.decode(payload, type=list[str])
    except (ValueError, binascii.Error, msgspec.DecodeError):
        name, key = "", []
    if name != listing or len(key) != parts or any("\x00" in part for part in key):
        raise Refusal("INVALID_REQUEST", "'cursor' does not belong to this list.", {"field": "cursor"})
    return tuple(key)


def page_of(rows: list[T], limit: int, listing: str, key: Callable[[T], Sequence[str]]) -> Page[T]:
    """The page, given one row more than its limit where there is one, or a `Cut` that is long enough already."""
    items = rows[:limit]
    cursor = make_cursor(listing, key(items[-1])) if has_more(rows, limit) else None
    return Page(items=items, next_cursor=cursor, limit=limit)
