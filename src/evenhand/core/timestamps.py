"""Instants as ISO 8601 in UTC with milliseconds: ``2026-02-21T22:00:00.000Z``."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from evenhand.core.errors import InputError

_shown: ContextVar[datetime | None] = ContextVar("shown", default=None)


def now() -> datetime:
    """The present instant."""
    return _shown.get() or datetime.now(UTC)


def shown_instant() -> datetime | None:
    """What `as_of` shows instead of the present; None outside of it."""
    return _shown.get()


@contextmanager
def as_of(instant: datetime) -> Iterator[None]:
    """Within the block `now` and the times inside new ids are `instant`: for data that is told to be older than it is."""
    token = _shown.set(instant)
    try:
        yield
    finally:
        _shown.reset(token)


def format_instant(instant: datetime) -> str:
    """The one spelling that leaves the process."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_instant(text: str) -> datetime:
    """Any ISO 8601 date and time with an offset (none means UTC), as UTC."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"'{text[:40]}' is not an ISO 8601 date and time") from None
    if instant.tzinfo is UTC:
        return instant
    if instant.tzinfo is None:
        return instant.replace(tzinfo=UTC)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InputError(f"'{text[:40]}' is outside the range of dates") from None
