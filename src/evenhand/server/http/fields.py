"""Types of request fields that several resources share."""

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Raw

from evenhand.core.errors import InputError, Refusal
from evenhand.core.jsontext import decode
from evenhand.core.timestamps import format_instant, parse_instant

MAX_NAME = 250

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
"""A name or id: 1 to 250 characters, so that PostgreSQL can index two of them together."""
Text = Annotated[str, Meta(max_length=100_000)]
"""A longer text for people."""


def trimmed(value: str, field: str) -> str:
    """The name without the white space around it; `INVALID_REQUEST` when nothing is left."""
    text = value.strip()
    if not text:
        raise Refusal("INVALID_REQUEST", f"'{field}' must not be empty.", {"field": field})
    return text


def is_null(raw: Raw) -> bool:
    """True for a field that is absent or null."""
    data = bytes(raw)
    return not data or data.strip() == b"null"


def json_text(raw: Raw, field: str) -> str | None:
    """Free JSON as the text to be stored, unchanged; None when absent or null.

    Raw text has only been skimmed, so it is decoded once here: what cannot be read back must not get in.
    """
    data = bytes(raw).strip()
    if not data or data == b"null":
        return None
    try:
        decode(data)
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{field}': {error}", {"field": field}) from None
    return data.decode("utf-8")


def object_text(raw: Raw, field: str) -> str | None:
    """The same for a field that must be an object."""
    text = json_text(raw, field)
    if text is not None and not text.startswith("{"):
        raise Refusal("INVALID_REQUEST", f"'{field}' must be an object.", {"field": field})
    return text


def instant_given(name: str, text: str) -> datetime:
    """An instant of a query; `INVALID_REQUEST` for anything else."""
    try:
        return parse_instant(text)
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}': {error.reason}", {"field": name}) from None


def instant_text(name: str, text: str) -> str:
    """The first stored instant that is not before the one given: stored ones have whole milliseconds."""
    given = instant_given(name, text)
    return format_instant(given + timedelta(microseconds=-given.microsecond % 1000))


def just_after(name: str, text: str) -> str:
    """The first stored instant after the one given."""
    given = instant_given(name, text)
    return format_instant(given + timedelta(microseconds=1000 - given.microsecond % 1000))
