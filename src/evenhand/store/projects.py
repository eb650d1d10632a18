"""Projects, and the one rule of who sees what: a scope is a project's id, or None for all of them."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import Project
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row

T = TypeVar("T")
DEFAULT = "default"
_COLUMNS = "id, name, created_at, retain_days"
Scope = str | None
"""The only project that the caller may see; None sees all."""


def not_found(kind: str, object_id: str) -> Refusal:
    """The one answer to what does not exist and to what the caller may not see."""
    return Refusal("NOT_FOUND", f"There is no {kind} '{object_id[:200]}'.", {"id": object_id[:200]})


def project_exists(connection: Connection, project_id: str) -> bool:
    row = connection.one("SELECT deleted_at FROM projects WHERE id = ?", project_id)
    if row is not None and row[0] is not None:
        raise being_deleted(project_id)
    return row is not None


def being_deleted(project_id: str) -> Refusal:
    """The answer to a write into a project that is on its way out."""
    return Refusal(
        "CONFLICT", f"The project '{project_id[:200]}' is being deleted.", {"id": project_id[:200]}
    )


def create_project(connection: Connection, *, project_id: str, name: str, scope: Scope = None) -> Project:
    """`NOT_FOUND` for a caller who sees only another project."""
    if scope is not None and scope != project_id:
        raise not_found("project", project_id)
    if project_exists(connection, project_id):
        raise Refusal("CONFLICT", f"There is a project '{project_id}' already.", {"id": project_id})
    project = Project(id=project_id, name=name, created_at=format_instant(now()))
    connection.run(
        "INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?)",
        project.id,
        project.name,
        project.created_at,
    )
    return project


def require_project(connection: Connection, project_id: str, *, scope: Scope, may_create: bool) -> None:
    """`NOT_FOUND` unless the caller may put things into the project; one allowed to makes a missing one."""
    known = project_exists(connection, project_id)
    if must_be_made(project_id, known=known, scope=scope, may_create=may_create):
        create_project(connection, project_id=project_id, name=project_id)


class Owner(NamedTuple):
    """Who puts something into a project."""

    project_id: str
    """The project that the request names."""
    scope: Scope
    """The only project that the caller may see."""
    may_create: bool
    """Whether a project that does not exist is made."""


def in_project(connection: Connection, *, owner: Owner, work: Callable[[Connection], T]) -> T:
    """`work` in a project that exists (made now for an administrator) and that the caller may write to."""
    require_project(connection, owner.project_id, scope=owner.scope, may_create=owner.may_create)
    return work(connection)


def must_be_made(project_id: str, *, known: bool, scope: Scope, may_create: bool) -> bool:
    """Whether the project is still to be made; `NOT_FOUND` as for `require_project`."""
    if (scope is not None and scope != project_id) or not (known or may_create):
        raise not_found("project", project_id)
    return not known


def get_project(connection: Connection, project_id: str, *, scope: Scope) -> Project:
    row = connection.one(f"SELECT {_COLUMNS} FROM projects WHERE id = ? AND deleted_at IS NULL", project_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and scope != project_id):
        raise not_found("project", project_id)
    return _project(row)


def change_project(
    connection: Connection, project_id: str, *, name: str | None, retain_days: int | None, scope: Scope
) -> Project:
    """Give it another name or another time to keep traces (0: for ever); None leaves things as they are."""
    project = get_project(connection, project_id, scope=scope)
    kept = project.retain_days if retain_days is None else retain_days or None
    connection.run(
        "UPDATE projects SET name = ?, retain_days = ? WHERE id = ?", name or project.name, kept, project_id
    )
    return get_project(connection, project_id, scope=scope)


def _project(row: Row) -> Project:
    return Project(id=row[0], name=row[1], created_at=row[2], retain_days=row[3])


def list_projects(connection: Connection, *, scope: Scope, after: str | None, limit: int) -> list[Project]:
    """By id; those that are being deleted are left out."""
    where, values = ("", ()) if scope is None else (" AND id = ?", (scope,))
    found: list[Project] = []
    last = after or ""
    while len(found) < limit:
        rows = connection.all(
            f"SELECT {_COLUMNS}, deleted_at FROM projects WHERE id > ?{where} ORDER BY id LIMIT ?",  # noqa: S608  constant texts
            last,
            *values,
            limit,
        )
        found += [_project(row) for row in rows if row[4] is None]
        if len(rows) < limit:
            break
        last = rows[-1][0]
    return found[:limit]
