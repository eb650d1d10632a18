"""The dashboard: a project at a glance."""

from typing import ClassVar

from evenhand.core.objects.project_summary import ProjectSummary
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.frame import PageContext, PageQuery, here_of, page_route, respond
from evenhand.store.connection import Connection
from evenhand.store.project_summary import summarise_project


class DashboardPage(PageContext, frozen=True, kw_only=True):
    """The numbers of the summary."""

    template: ClassVar[str] = "dashboard.html"
    section: ClassVar[str] = "dashboard"

    summary: ProjectSummary


async def dashboard(call: Call, query: PageQuery) -> Answer:
    project_id = call.params["project_id"]

    def work(connection: Connection) -> DashboardPage:
        return DashboardPage(
            title="Dashboard",
            here=here_of(call, query),
            summary=summarise_project(connection, project_id),
        )

    return await respond(call, work, query, search=True)


ROUTES = (
    page_route(
        "/projects/{project_id}/dashboard", dashboard, query=PageQuery, summary="A project at a glance"
    ),
)
