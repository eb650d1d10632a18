"""Projects."""

from functools import partial

from msgspec import Struct

from evenhand.core.ids import new_id
from evenhand.core.objects.projects import Project
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import projects as store

LISTING = "projects"


class ProjectCreate(Struct, frozen=True, kw_only=True):
    """A project to be made."""

    name: Name
    """For people."""
    id: Name | None = None
    """Chosen by the server when absent."""


async def create(call: Call, body: ProjectCreate) -> Answer:
    name = trimmed(body.name, "name")
    project_id = new_id() if body.id is None else trimmed(body.id, "id")
    return await call.write(partial(store.create_project, project_id=project_id, name=name, scope=call.scope))


async def list_all(call: Call, query: Paging) -> Answer:
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_projects(
            connection, scope=call.scope, after=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda project: (project.id,)))


async def get(call: Call) -> Answer:
    project_id = call.params["project_id"]
    return json_answer(
        await call.read(lambda connection: store.get_project(connection, project_id, scope=call.scope))
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/projects",
        handler=create,
        audience="token:admin",
        request=ProjectCreate,
        response=Project,
        status=201,
        errors=("CONFLICT",),
        summary="Make a project",
        tag="Projects",
    ),
    Route(
        method="GET",
        path="/v1/projects",
        handler=list_all,
        audience="token:read",
        query=Paging,
        response=Page[Project],
        summary="List projects by id",
        tag="Projects",
    ),
    Route(
        method="GET",
        path="/v1/projects/{project_id}",
        handler=get,
        audience="token:read",
        response=Project,
        errors=("NOT_FOUND",),
        summary="Read a project",
        tag="Projects",
    ),
)
