"""Uploaded results of A/B analyses. The caller has checked their content."""

from evenhand.core.ids import new_id
from evenhand.core.objects.ab_reports import StoredReport
from evenhand.core.timestamps import format_instant, now
from evenhand.store.audit import note_deletion
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST, newest_first
from evenhand.store.projects import not_found

_COLUMNS = "id, project_id, title, decision, run_count, made_by, created_at"
_NEWEST_FIRST = newest_first("project_id", "id")


def keep_report(
    connection: Connection,
    *,
    project_id: str,
    title: str,
    decision: str,
    run_count: int,
    content: str,
    made_by: str,
) -> StoredReport:
    """Store a report."""
    made = StoredReport(
        id=new_id(),
        project_id=project_id,
        title=title,
        decision=decision,
        run_count=run_count,
        made_by=made_by,
        created_at=format_instant(now()),
    )
    connection.run(
        f"INSERT INTO ab_reports ({_COLUMNS}, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        made.id,
        project_id,
        title,
        decision,
        run_count,
        made_by,
        made.created_at,
        content,
    )
    return made


def get_report(connection: Connection, report_id: str, *, project_id: str) -> tuple[StoredReport, str]:
    """The report and its content."""
    row = connection.one(
        f"SELECT {_COLUMNS}, content FROM ab_reports WHERE id = ? AND project_id = ?",  # noqa: S608  constant columns
        report_id,
        project_id,
    )
    if row is None:
        raise not_found("A/B report", report_id)
    return _report(row), row[7]


def list_reports(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[StoredReport]:
    """Newest first."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM ab_reports WHERE {_NEWEST_FIRST}",  # noqa: S608  constant texts
        project_id,
        before or LAST,
        project_id,
        limit,
    )
    return [_report(row) for row in rows]


def delete_report(connection: Connection, report_id: str, *, project_id: str, actor: str) -> StoredReport:
    """Forget a report; the audit log says who did it."""
    found, _ = get_report(connection, report_id, project_id=project_id)
    connection.run("DELETE FROM ab_reports WHERE id = ?", report_id)
    note_deletion(connection, project_id, actor, "ab_report", report_id, {"title": found.title})
    return found


def _report(row: Row) -> StoredReport:
    return StoredReport(
        id=row[0],
        project_id=row[1],
        title=row[2],
        decision=row[3],
        run_count=row[4],
        made_by=row[5],
        created_at=row[6],
    )
