"""A project at a glance."""

from evenhand.core.objects.project_summary import ProjectSummary
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, json_answer
from evenhand.server.http.routes import Route
from evenhand.store.connection import Connection
from evenhand.store.project_summary import summarise_project
from evenhand.store.projects import get_project


async def summary(call: Call) -> Answer:
    project_id = call.params["project_id"]

    def work(connection: Connection) -> ProjectSummary:
        get_project(connection, project_id, scope=call.scope)
        return summarise_project(connection, project_id)

    return json_answer(await call.search(work))


ROUTES = (
    Route(
        operation="get_project_summary",
        method="GET",
        path="/v1/projects/{project_id}/summary",
        handler=summary,
        audience="token:read",
        response=ProjectSummary,
        errors=("NOT_FOUND",),
        summary="A project at a glance: traces, experiments, queue",
        tag="Projects",
    ),
)
