"""People who log in with a browser, their one-time links, and browser sessions. Only hashes of secrets are stored."""

import secrets
import time
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.ids import new_id
from evenhand.core.objects.projects import InvitedPerson, Person, Role
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import oldest_first
from evenhand.store.projects import Owner, Scope, not_found, require_project
from evenhand.store.tokens import token_hash

LINK_SECONDS = 7 * 24 * 3600
"""How long the link of an invited person works."""
_COLUMNS = "id, project_id, name, role, created_at, revoked_at"


class Principal(Struct, frozen=True, kw_only=True):
    """Whom a session belongs to."""

    token_id: str
    """The token that it was opened with; for a person, who let them in."""
    role: Role
    """What they may do."""
    project_id: str | None
    """The one project that they see; None sees all."""
    person_id: str | None = None
    """The person, if it is one."""
    person_name: str | None = None
    """Their name."""


def milliseconds() -> int:
    """The clock of links and sessions: the same for every server of a database."""
    return time.time_ns() // 1_000_000


def login_path(code: str) -> str:
    """Where a code is redeemed."""
    return f"/login?code={code}"


def invite(
    connection: Connection,
    *,
    owner: Owner,
    name: str,
    role: Role,
    invited_by: str,
    shown: list[InvitedPerson],
) -> InvitedPerson:
    """A new person without their link, which is only in `shown`: what an idempotency key repeats is stored."""
    require_project(connection, owner.project_id, scope=owner.scope, may_create=owner.may_create)
    person = Person(
        id=new_id(),
        project_id=owner.project_id,
        name=name,
        role=role,
        created_at=format_instant(now()),
        revoked_at=None,
    )
    connection.run(
        f"INSERT INTO people ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        person.id, person.project_id, person.name, person.role, person.created_at, None,
    )  # fmt: skip
    shown[:] = [_with_link(connection, person, invited_by)]  # a transaction may be tried again
    return replace(shown[0], login_path="")


def new_link(
    connection: Connection, person_id: str, *, scope: Scope, invited_by: str, shown: list[InvitedPerson]
) -> InvitedPerson:
    """Another link for a person; earlier ones stop working. Somebody who was shut out is let in again."""
    person = get_person(connection, person_id, scope=scope)
    connection.run("DELETE FROM login_codes WHERE person_id = ?", person_id)
    connection.run("UPDATE people SET revoked_at = NULL WHERE id = ?", person_id)
    person = get_person(connection, person_id, scope=scope)
    shown[:] = [_with_link(connection, person, invited_by)]
    return replace(shown[0], login_path="")


def _with_link(connection: Connection, person: Person, invited_by: str) -> InvitedPerson:
    principal = Principal(
        token_id=invited_by, role=person.role, project_id=person.project_id, person_id=person.id
    )
    code = secrets.token_urlsafe(32)
    opens = f"/projects/{quote(person.project_id, safe='')}/queue" if person.role == "review" else "/"
    expires_at = milliseconds() + 1000 * LINK_SECONDS
    keep_code(connection, code, principal, destination=opens, expires_at=expires_at)
    return InvitedPerson(
        id=person.id,
        project_id=person.project_id,
        name=person.name,
        role=person.role,
        created_at=person.created_at,
        revoked_at=person.revoked_at,
        login_path=login_path(code),
    )


def get_person(connection: Connection, person_id: str, *, scope: Scope) -> Person:
    row = connection.one(f"SELECT {_COLUMNS} FROM people WHERE id = ?", person_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("person", person_id)
    return _person(row)


def list_people(connection: Connection, *, project_id: str, after: str | None, limit: int) -> list[Person]:
    """In the order they were invited; those who were shut out stay listed."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM people WHERE {oldest_first('project_id', 'id')}",  # noqa: S608  constant columns
        project_id, after or "", project_id, limit,
    )  # fmt: skip
    return [_person(row) for row in rows]


def revoke_person(connection: Connection, person_id: str, *, scope: Scope) -> Person:
    """Shut somebody out: their sessions and links end; again does nothing."""
    person = get_person(connection, person_id, scope=scope)
    connection.run("DELETE FROM login_codes WHERE person_id = ?", person_id)
    connection.run("DELETE FROM browser_sessions WHERE person_id = ?", person_id)
    if person.revoked_at is None:
        connection.run("UPDATE people SET revoked_at = ? WHERE id = ?", format_instant(now()), person_id)
    return get_person(connection, person_id, scope=scope)


def keep_code(
    connection: Connection, code: str, principal: Principal, *, destination: str, expires_at: int
) -> None:
    """Store a code that opens a session of `principal` once and leads to the page at `destination`."""
    connection.run(
        "INSERT INTO login_codes (code_hash, person_id, token_id, role, project_id, destination, expires_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        token_hash(code),
        principal.person_id,
        principal.token_id,
        principal.role,
        principal.project_id,
        destination,
        expires_at,
    )


def redeem(connection: Connection, code: str, session: str, *, moment: int, expires_at: int) -> str | None:
    """Turn a code into the session `session`; the page it leads to, or None for a wrong, used or old code."""
    row = connection.one(
        "SELECT person_id, token_id, role, project_id, destination, expires_at FROM login_codes WHERE code_hash = ?",
        token_hash(code),
    )
    # Of two who come with the same code, the one whose delete finds it is let in.
    if row is None or not connection.run("DELETE FROM login_codes WHERE code_hash = ?", token_hash(code)):
        return None
    if row[5] < moment:
        return None
    principal = Principal(person_id=row[0], token_id=row[1], role=row[2], project_id=row[3])
    open_session(connection, session, principal, expires_at=expires_at)
    return str(row[4])


def open_session(connection: Connection, session: str, principal: Principal, *, expires_at: int) -> None:
    """Store a session."""
    connection.run(
        "INSERT INTO browser_sessions (session_hash, person_id, token_id, role, project_id, created_at, expires_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        token_hash(session),
        principal.person_id,
        principal.token_id,
        principal.role,
        principal.project_id,
        format_instant(now()),
        expires_at,
    )


def find_session(connection: Connection, session: str, *, moment: int) -> Principal | None:
    """Whom a session belongs to; None once it, its person or its token has ended."""
    row = connection.one(
        "SELECT s.person_id, s.token_id, s.role, s.project_id, p.name, p.revoked_at, t.revoked_at"
        " FROM browser_sessions s LEFT JOIN people p ON p.id = s.person_id LEFT JOIN tokens t ON t.id = s.token_id"
        " WHERE s.session_hash = ? AND s.expires_at > ?",
        token_hash(session),
        moment,
    )
    if row is None:
        return None
    person_id, token_id, role, project_id, name, person_ended, token_ended = row
    ended = token_ended if person_id is None else person_ended
    if ended is not None or (person_id is not None and name is None):
        return None
    return Principal(
        person_id=person_id, token_id=token_id, role=role, project_id=project_id, person_name=name
    )


def end_session(connection: Connection, session: str) -> None:
    """Log out."""
    connection.run("DELETE FROM browser_sessions WHERE session_hash = ?", token_hash(session))


def forget_ended(connection: Connection) -> None:
    """Remove codes and sessions that have run out."""
    moment = milliseconds()
    connection.run("DELETE FROM login_codes WHERE expires_at < ?", moment)
    connection.run("DELETE FROM browser_sessions WHERE expires_at < ?", moment)


def _person(row: Row) -> Person:
    return Person(
        id=row[0], project_id=row[1], name=row[2], role=row[3], created_at=row[4], revoked_at=row[5]
    )
