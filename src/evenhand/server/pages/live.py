"""The stream that tells open pages that something has changed. It carries marks, never content."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.frame import page_route
from evenhand.server.streams import Event, events_answer
from evenhand.store.connection import Connection
from evenhand.store.projects import get_project, not_found

MOST_PROJECTS = 20


class LiveQuery(Struct, frozen=True, kw_only=True):
    """Which projects the open pages of a browser show."""

    of: dict[str, str] = {}
    """By id."""


async def live(call: Call, query: LiveQuery) -> Answer:
    if not 1 <= len(query.of) <= MOST_PROJECTS:
        raise Refusal("INVALID_REQUEST", f"Name 1 to {MOST_PROJECTS} projects: ?of.<id>=1")

    def check(connection: Connection) -> None:
        for project_id in query.of:
            if call.scope is not None and call.scope != project_id:
                raise not_found("project", project_id)
            get_project(connection, project_id, scope=call.scope)

    await call.read(check)
    return events_answer(_events(call.service.live.marks(query.of)))


async def _events(marks: AsyncGenerator[tuple[str, str], None]) -> AsyncGenerator[Event, None]:
    async with aclosing(marks):
        async for project_id, mark in marks:
            yield Event(name="mark", data={"project": project_id, "mark": mark})


ROUTES = (page_route("/live", live, query=LiveQuery, summary="What has changed, for open pages"),)
