"""Share links: only hashes of their secrets are stored; making one and taking one back is in the audit log."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.shares import Share, ShareKind
from evenhand.core.timestamps import format_instant, now
from evenhand.store.audit import note_change
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST, newest_first
from evenhand.store.projects import not_found
from evenhand.store.tokens import token_hash

_COLUMNS = "id, project_id, kind, object_ids, title, made_by, created_at, expires_at, revoked_at"
_NEWEST_FIRST = newest_first("project_id", "id")


def create_share(
    connection: Connection,
    *,
    project_id: str,
    kind: ShareKind,
    object_ids: Sequence[str],
    title: str,
    made_by: str,
    actor: str,
    days: int,
) -> tuple[Share, str]:
    """A new link and its secret, which is not stored. The caller has checked that the object is the project's."""
    secret, moment = secrets.token_urlsafe(32), now()
    share = Share(
        id=new_id(),
        project_id=project_id,
        kind=kind,
        object_ids=tuple(object_ids),
        title=title,
        made_by=made_by,
        created_at=format_instant(moment),
        expires_at=format_instant(moment + timedelta(days=days)),
    )
    connection.run(
        f"INSERT INTO shares ({_COLUMNS}, secret_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        share.id,
        project_id,
        kind,
        encode_text(list(object_ids)),
        title,
        made_by,
        share.created_at,
        share.expires_at,
        None,
        token_hash(secret),
    )
    details = {"kind": kind, "object_ids": list(object_ids), "expires_at": share.expires_at}
    note_change(connection, project_id, actor, "share", "share", share.id, details)
    return share, secret


def find_share(connection: Connection, secret: str) -> Share | None:
    """The link with this secret, if it still shows something."""
    row = connection.one(
        f"SELECT {_COLUMNS} FROM shares WHERE secret_hash = ? AND revoked_at IS NULL AND expires_at > ?"  # noqa: S608  constant columns
        " AND EXISTS (SELECT 1 FROM projects WHERE projects.id = shares.project_id AND deleted_at IS NULL)",
        token_hash(secret),
        format_instant(now()),
    )
    return None if row is None else _share(row)


def list_shares(connection: Connection, *, project_id: str, before: str | None, limit: int) -> list[Share]:
    """Newest first; what has ended stays listed."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM shares WHERE {_NEWEST_FIRST}",  # noqa: S608  constant texts
        project_id,
        before or LAST,
        project_id,
        limit,
    )
    return [_share(row) for row in rows]


def revoke_share(connection: Connection, share_id: str, *, project_id: str, actor: str) -> Share:
    """Take a link back; again does nothing."""
    select = f"SELECT {_COLUMNS} FROM shares WHERE id = ? AND project_id = ?"  # noqa: S608  constant columns
    row = connection.one(select, share_id, project_id)
    if row is None:
        raise not_found("share link", share_id)
    share = _share(row)
    if share.revoked_at is None:
        connection.run("UPDATE shares SET revoked_at = ? WHERE id = ?", format_instant(now()), share_id)
        note_change(connection, project_id, actor, "revoke", "share", share_id, {"kind": share.kind})
    return share


def _share(row: Row) -> Share:
    return Share(
        id=row[0],
        project_id=row[1],
        kind=row[2],
        object_ids=tuple(msgspec.json.decode(row[3], type=list[str])),
        title=row[4],
        made_by=row[5],
        created_at=row[6],
        expires_at=row[7],
        revoked_at=row[8],
    )
