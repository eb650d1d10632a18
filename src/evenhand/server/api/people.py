"""People: invited by administrators, let in by a link of their own."""

from functools import partial

from msgspec import Struct

from evenhand.core.objects.projects import InvitedPerson, Person, Role
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import people as store

LISTING = "people"


class PersonInvite(Struct, frozen=True, kw_only=True):
    """Somebody to be let in."""

    name: Name
    """Their annotations and reviews carry it."""
    project_id: Name
    """The one project that they will see."""
    role: Role = "review"
    """`review`, `read`, `write` or `admin` (of that project)."""


class PeopleQuery(Paging, frozen=True, kw_only=True):
    """Whose people."""

    project_id: str | None = None
    """The project; required."""


async def create(call: Call, body: PersonInvite) -> Answer:
    shown: list[InvitedPerson] = []
    answer = await call.write(
        partial(
            store.invite,
            owner=call.owner(body.project_id),
            name=trimmed(body.name, "name"),
            role=body.role,
            invited_by=call.access.token_id,
            shown=shown,
        )
    )
    return json_answer(shown[0], answer.status) if shown else answer


async def list_all(call: Call, query: PeopleQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_people(
            connection, project_id=project_id, after=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda person: (person.id,)))


async def new_link(call: Call) -> Answer:
    shown: list[InvitedPerson] = []
    answer = await call.write(
        partial(
            store.new_link,
            person_id=call.params["person_id"],
            scope=call.scope,
            invited_by=call.access.token_id,
            shown=shown,
        )
    )
    return json_answer(shown[0], answer.status) if shown else answer


async def revoke(call: Call) -> Answer:
    answer = await call.write(
        partial(store.revoke_person, person_id=call.params["person_id"], scope=call.scope)
    )
    call.service.sessions.clear_cache()
    return answer


ROUTES = (
    Route(
        operation="invite_person",
        method="POST",
        path="/v1/people",
        handler=create,
        audience="token:admin",
        request=PersonInvite,
        response=InvitedPerson,
        status=201,
        errors=("NOT_FOUND",),
        summary="Invite somebody; the answer shows their login link once",
        tag="People",
    ),
    Route(
        operation="list_people",
        method="GET",
        path="/v1/people",
        handler=list_all,
        audience="token:admin",
        query=PeopleQuery,
        response=Page[Person],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List the people of a project",
        tag="People",
    ),
    Route(
        operation="create_login_link",
        method="POST",
        path="/v1/people/{person_id}/login-link",
        handler=new_link,
        audience="token:admin",
        response=InvitedPerson,
        errors=("NOT_FOUND",),
        summary="Make a new login link for a person; earlier ones stop working",
        tag="People",
    ),
    Route(
        operation="revoke_person",
        method="DELETE",
        path="/v1/people/{person_id}",
        handler=revoke,
        audience="token:admin",
        response=Person,
        errors=("NOT_FOUND",),
        summary="Shut somebody out; their work stays",
        tag="People",
    ),
)
