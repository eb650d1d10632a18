"""Saved views: names for the state of pages, shared by everybody in a project."""

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.views import View
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.projects import not_found

MOST_VIEWS = 50
"""Of one page: more would be a list to search in."""
_COLUMNS = "id, project_id, page, name, query, made_by, created_at"


def save_view(
    connection: Connection, *, project_id: str, page: str, name: str, query: str, made_by: str
) -> View:
    """A new view, or the one of that name with another state."""
    known = {view.name: view for view in list_views(connection, project_id=project_id, page=page)}
    if name in known:
        connection.run("UPDATE views SET query = ?, made_by = ? WHERE id = ?", query, made_by, known[name].id)
        return get_view(connection, known[name].id, project_id=project_id)
    if len(known) >= MOST_VIEWS:
        raise Refusal("CONFLICT", f"This page has {MOST_VIEWS} views already; delete one first.")
    view_id = new_id()
    connection.run(
        f"INSERT INTO views ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        view_id,
        project_id,
        page,
        name,
        query,
        made_by,
        format_instant(now()),
    )
    return get_view(connection, view_id, project_id=project_id)


def get_view(connection: Connection, view_id: str, *, project_id: str) -> View:
    row = connection.one(
        f"SELECT {_COLUMNS} FROM views WHERE id = ? AND project_id = ?",  # noqa: S608  constant columns
        view_id,
        project_id,
    )
    if row is None:
        raise not_found("view", view_id)
    return _view(row)


def list_views(connection: Connection, *, project_id: str, page: str) -> list[View]:
    """The views of one page, by name."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM views WHERE project_id = ? AND page = ? ORDER BY name LIMIT ?",  # noqa: S608  constant columns
        project_id,
        page,
        MOST_VIEWS,
    )
    return [_view(row) for row in rows]


def delete_view(connection: Connection, view_id: str, *, project_id: str) -> View:
    """Forget a view; what it showed stays."""
    view = get_view(connection, view_id, project_id=project_id)
    connection.run("DELETE FROM views WHERE id = ?", view_id)
    return view


def _view(row: Row) -> View:
    return View(
        id=row[0],
        project_id=row[1],
        page=row[2],
        name=row[3],
        query=row[4],
        made_by=row[5],
        created_at=row[6],
    )
