"""Projects."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from evenhand.core.ids import new_id
from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.projects import Project
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import projects as store
from evenhand.store.deleting import delete_project

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


class ProjectChange(Struct, frozen=True, kw_only=True):
    """What changes about a project; what is absent or null stays."""

    name: Name | None = None
    """For people."""
    retain_days: Annotated[int, Meta(ge=0, le=36_500)] | None = None
    """Traces that arrived more days ago are deleted, with their spans, the spans' scores and ended jobs; 0 keeps them."""


async def change(call: Call, body: ProjectChange) -> Answer:
    answer = await call.write(
        partial(
            store.change_project,
            project_id=call.params["project_id"],
            name=None if body.name is None else trimmed(body.name, "name"),
            retain_days=body.retain_days,
            scope=call.scope,
        )
    )
    call.service.wake_removals()
    return answer


async def delete(call: Call) -> Answer:
    answer = await call.write(
        partial(
            delete_project,
            project_id=call.params["project_id"],
            scope=call.scope,
            actor=call.access.token_id,
        )
    )
    call.service.authenticator.clear_cache()
    call.service.wake_removals()
    return answer


ROUTES = (
    Route(
        operation="create_project",
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
        operation="list_projects",
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
        operation="get_project",
        method="GET",
        path="/v1/projects/{project_id}",
        handler=get,
        audience="token:read",
        response=Project,
        errors=("NOT_FOUND",),
        summary="Read a project",
        tag="Projects",
    ),
    Route(
        operation="update_project",
        method="PATCH",
        path="/v1/projects/{project_id}",
        handler=change,
        audience="token:admin",
        request=ProjectChange,
        response=Project,
        errors=("NOT_FOUND",),
        summary="Rename a project, or say for how long it keeps traces",
        tag="Projects",
    ),
    Route(
        operation="delete_project",
        method="DELETE",
        path="/v1/projects/{project_id}",
        handler=delete,
        audience="token:admin",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a project with everything in it; the audit log stays",
        tag="Projects",
    ),
)
