"""Sessions: the conversations that traces belong to."""

from evenhand.core.objects.traces import Session
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.paging import Paging, make_cursor
from evenhand.server.http.routes import Route
from evenhand.store import sessions as store

LISTING = "sessions"


class SessionQuery(Paging, frozen=True, kw_only=True):
    """Whose sessions."""

    project_id: str | None = None
    """The project; required."""


async def list_all(call: Call, query: SessionQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.search(
        lambda connection: store.list_sessions(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    items = [session for _, session in rows[:limit] if session is not None]
    cursor = make_cursor(LISTING, [rows[limit - 1][0]]) if len(rows) > limit else None
    return json_answer(Page(items=items, next_cursor=cursor, limit=limit))


ROUTES = (
    Route(
        operation="list_sessions",
        method="GET",
        path="/v1/sessions",
        handler=list_all,
        audience="token:read",
        query=SessionQuery,
        response=Page[Session],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's sessions, the one that began last first, with what they sum up to",
        tag="Traces",
    ),
)
