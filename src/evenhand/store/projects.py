"""Projects, and the one rule of who sees what: a scope is a project's id, or None for all of them."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import Project
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection

T = TypeVar("T")
DEFAULT = "default"
Scope = str | None
"""The only project that the caller may see; None sees all."""


def not_found(kind: str, object_id: str) -> Refusal:
    """The one answer to what does not exist and to what the caller may not see."""
    return Refusal("NOT_FOUND", f"There is no {kind} '{object_id[:200]}'.", {"id": object_id[:200]})


def project_exists(connection: Connection, project_id: str) -> bool:
    return connection.one("SELECT 1 FROM projects WHERE id = ?", project_id) is not None


def create_project(connection: Connection, *, project_id: str, name: str, scope: Scope = None) -> Project:
    """`NOT_FOUND` for a caller who sees only another project."""
    if scope is not None and scope != project_id:
        raise not_found("project", project_id)
    if connection.one("SELECT 1 FROM projects WHERE id = ?", project_id):
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
    row = connection.one("SELECT id, name, created_at FROM projects WHERE id = ?", project_id)
    if row is None or (scope is not None and scope != project_id):
        raise not_found("project", project_id)
    return Project(id=row[0], name=row[1], created_at=row[2])


def list_projects(connection: Connection, *, scope: Scope, after: str | None, limit: int) -> list[Project]:
    """By id."""
    where, values = ("", ()) if scope is None else (" AND id = ?", (scope,))
    rows = connection.all(
        f"SELECT id, name, created_at FROM projects WHERE id > ?{where} ORDER BY id LIMIT ?",  # noqa: S608  constant texts
        after or "",
        *values,
        limit,
    )
    return [Project(id=row[0], name=row[1], created_at=row[2]) for row in rows]
