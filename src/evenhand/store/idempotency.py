"""Answers that are given again when a request is sent again with the same key."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection

KEPT = timedelta(hours=24)


class Repeatable(Struct, frozen=True, kw_only=True):
    """What tells a repeated request from a new one."""

    scope: str
    """The caller: keys of different callers do not meet."""
    key: str
    """The `Idempotency-Key`."""
    fingerprint: str
    """A hash of method, address and body."""


class Recorded(Struct, frozen=True, kw_only=True):
    """An answer, and whether it is a first one."""

    status: int
    body: bytes
    replayed: bool


def recorded(connection: Connection, request: Repeatable) -> Recorded | None:
    """The first answer to the request; `CONFLICT` when its key was used with another one."""
    row = connection.one(
        "SELECT fingerprint, status, body FROM idempotency_keys WHERE scope = ? AND idempotency_key = ?",
        request.scope,
        request.key,
    )
    if row is None:
        return None
    if row[0] != request.fingerprint:
        raise Refusal("CONFLICT", "This Idempotency-Key was used with another request.")
    return Recorded(status=row[1], body=row[2].encode(), replayed=True)


def once(
    connection: Connection, request: Repeatable, work: Callable[[Connection], tuple[int, bytes]]
) -> Recorded:
    """Do `work` unless the request was answered before; the record commits together with the work."""
    first = recorded(connection, request)
    if first is not None:
        return first
    status, body = work(connection)
    connection.run(
        "INSERT INTO idempotency_keys (scope, idempotency_key, fingerprint, status, body, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        request.scope,
        request.key,
        request.fingerprint,
        status,
        body.decode(),
        format_instant(now()),
    )
    return Recorded(status=status, body=body, replayed=False)


def forget_old(connection: Connection, instant: datetime | None = None) -> int:
    """Drop the keys that nobody will send again; how many."""
    limit = format_instant((instant or now()) - KEPT)
    return connection.run("DELETE FROM idempotency_keys WHERE created_at < ?", limit)
