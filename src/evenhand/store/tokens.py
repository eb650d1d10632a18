"""Tokens: only hashes are stored."""

import hashlib
import secrets

from msgspec.structs import replace

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import NewToken, Role, Token
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import oldest_first
from evenhand.store.projects import Owner, Scope, not_found, require_project

PREFIX = "evh"
TRUSTED_SECONDS = 2.0
"""How long a server takes a token for good after looking it up."""
_COLUMNS = "id, name, project_id, role, created_at, revoked_at"


def token_hash(token: str) -> str:
    """What is stored instead of a token. Tokens are 256 random bits: no salt or stretching is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_id_of(token: str) -> str | None:
    """The id inside a token's text, if it looks like one of ours."""
    parts = token.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else None


def create_token(connection: Connection, *, name: str, project_id: str | None, role: Role) -> NewToken:
    token_id = secrets.token_hex(8)
    token = f"{PREFIX}_{token_id}_{secrets.token_urlsafe(32)}"
    made = NewToken(
        id=token_id,
        name=name,
        project_id=project_id,
        role=role,
        created_at=format_instant(now()),
        revoked_at=None,
        token=token,
    )
    connection.run(
        "INSERT INTO tokens (id, name, project_id, role, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        made.id,
        made.name,
        made.project_id,
        made.role,
        token_hash(token),
        made.created_at,
    )
    return made


def create_token_for(
    connection: Connection,
    *,
    owner: Owner | None,
    name: str,
    role: Role,
    shown: list[NewToken],
) -> NewToken:
    """A new token without its secret, which is only in `shown`: what an idempotency key repeats is stored.

    Without an owner the token is for all projects.
    """
    if owner is not None:
        require_project(connection, owner.project_id, scope=owner.scope, may_create=owner.may_create)
    project_id = None if owner is None else owner.project_id
    token = create_token(connection, name=name, project_id=project_id, role=role)
    shown[:] = [token]  # a transaction may be tried again
    return replace(token, token="")


def find_token(connection: Connection, token_id: str) -> tuple[Token, str] | None:
    """The token and its hash."""
    row = connection.one(f"SELECT {_COLUMNS}, secret_hash FROM tokens WHERE id = ?", token_id)  # noqa: S608  constant columns
    return None if row is None else (_token(row), row[6])


def any_token(connection: Connection) -> bool:
    """True once a token that still works was made."""
    return connection.one("SELECT 1 FROM tokens WHERE revoked_at IS NULL LIMIT 1") is not None


def any_administrator(connection: Connection) -> bool:
    """True once a token that still opens all projects was made."""
    row = connection.one("SELECT 1 FROM tokens WHERE revoked_at IS NULL AND project_id IS NULL LIMIT 1")
    return row is not None


def list_tokens(connection: Connection, *, scope: Scope, after: str | None, limit: int) -> list[Token]:
    """By id; what is revoked stays listed."""
    select = f"SELECT {_COLUMNS} FROM tokens WHERE "  # noqa: S608  constant columns
    if scope is None:
        rows = connection.all(f"{select} id > ? ORDER BY id LIMIT ?", after or "", limit)
    else:
        rows = connection.all(
            f"{select} {oldest_first('project_id', 'id')}", scope, after or "", scope, limit
        )
    return [_token(row) for row in rows]


def revoke_token(connection: Connection, token_id: str, *, scope: Scope) -> Token:
    """Take a token back; again does nothing."""
    found = find_token(connection, token_id)
    if found is None or (scope is not None and found[0].project_id != scope):
        raise not_found("token", token_id)
    token = found[0]
    if token.revoked_at is None:
        connection.run("UPDATE tokens SET revoked_at = ? WHERE id = ?", format_instant(now()), token_id)
        found = find_token(connection, token_id)
        assert found is not None
    return found[0]


def check_role_scope(role: Role, project_id: str | None) -> None:
    """A token for all projects is an administrator's."""
    if project_id is None and role != "admin":
        raise Refusal(
            "INVALID_REQUEST", "A token for all projects needs the role 'admin'.", {"field": "role"}
        )


def _token(row: Row) -> Token:
    return Token(id=row[0], name=row[1], project_id=row[2], role=row[3], created_at=row[4], revoked_at=row[5])
