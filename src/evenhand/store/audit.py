"""The record of deletions and of links to outsiders: written in the transaction that makes the change, never changed."""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.audit import AuditEntry
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection
from evenhand.store.pages import LAST, newest_first

_COLUMNS = "id, project_id, actor, action, object_type, object_id, details, created_at"
_NEWEST_FIRST = newest_first("project_id", "id")


def note_deletion(
    connection: Connection,
    project_id: str,
    actor: str,
    object_type: str,
    object_id: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record that something is being deleted in this transaction."""
    note_change(connection, project_id, actor, "delete", object_type, object_id, details)


def note_change(
    connection: Connection,
    project_id: str,
    actor: str,
    action: str,
    object_type: str,
    object_id: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record what is being done in this transaction."""
    connection.run(
        f"INSERT INTO audit_log ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        new_id(),
        project_id,
        actor,
        action,
        object_type,
        object_id,
        encode_text(dict(details or {})),
        format_instant(now()),
    )


def list_audit(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[AuditEntry]:
    """Newest first."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM audit_log WHERE {_NEWEST_FIRST}",  # noqa: S608  constant texts
        project_id,
        before or LAST,
        project_id,
        limit,
    )
    return [
        AuditEntry(
            id=row[0],
            project_id=row[1],
            actor=row[2],
            action=row[3],
            object_type=row[4],
            object_id=row[5],
            details=Raw(row[6].encode()),
            created_at=row[7],
        )
        for row in rows
    ]
