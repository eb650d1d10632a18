"""The record of deletions and share links."""

from evenhand.core.objects.audit import AuditEntry
from evenhand.server.api.datasets import ProjectQuery
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.paging import page_of
from evenhand.server.http.routes import Route
from evenhand.store.audit import list_audit

LISTING = "audit"


async def list_all(call: Call, query: ProjectQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: list_audit(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda entry: (entry.id,)))


ROUTES = (
    Route(
        operation="list_audit_entries",
        method="GET",
        path="/v1/audit",
        handler=list_all,
        audience="token:admin",
        query=ProjectQuery,
        response=Page[AuditEntry],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="What was deleted or shared in a project, and by whom, newest first",
        tag="Projects",
    ),
)
