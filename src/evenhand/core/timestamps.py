"""Instants as ISO 8601 in UTC with milliseconds: ``2026-02-21T22:00:00.000Z``."""

from datetime import UTC, datetime

from evenhand.core.errors import InputError


def now() -> datetime:
    """The present instant."""
    return datetime.now(UTC)


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
