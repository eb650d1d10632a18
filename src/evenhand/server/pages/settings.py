"""For administrators: the people of a project, its tokens, and the project itself."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import InvitedPerson, NewToken, Person, Role, Token
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.fields import MAX_NAME
from evenhand.server.pages.frame import (
    NoFields,
    PageContext,
    age_of,
    form_route,
    own_project,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.links import Here, project_path
from evenhand.store import people, projects, tokens
from evenhand.store.connection import Connection

MOST_LISTED = 500
ROLES: dict[Role, str] = {
    "review": "review: reviewers' pages only",
    "read": "read: see everything",
    "write": "write: change data, lead reviews",
    "admin": "admin: people and tokens too",
}


class SettingsPage(PageContext, frozen=True, kw_only=True):
    """People, tokens, project."""

    template: ClassVar[str] = "settings.html"
    section: ClassVar[str] = "settings"

    people: Sequence[tuple[Person, str]]
    """Each with their age."""
    tokens: Sequence[tuple[Token, str]]
    roles: Sequence[tuple[str, str]] = tuple(ROLES.items())
    link_for: str
    """Whose login link is shown."""
    link: str
    """Shown this once."""
    secret_of: str
    """Whose secret is shown."""
    secret: str
    path: str


async def settings(call: Call) -> Answer:
    return await _page(call)


async def _page(call: Call, *, invited: InvitedPerson | None = None, made: NewToken | None = None) -> Answer:
    """The page; what is secret is part of the answer to the form that made it, and nowhere else."""
    project_id = call.params["project_id"]
    path, moment = project_path(project_id, "settings"), now()

    def work(connection: Connection) -> SettingsPage:
        listed = people.list_people(connection, project_id=project_id, after=None, limit=MOST_LISTED)
        known = tokens.list_tokens(connection, scope=project_id, after=None, limit=MOST_LISTED)
        return SettingsPage(
            title="Settings",
            here=Here(path),
            people=[(one, age_of(one.created_at, moment)) for one in listed],
            tokens=[(one, age_of(one.created_at, moment)) for one in known],
            link_for="" if invited is None else invited.name,
            link="" if invited is None else invited.login_path,
            secret_of="" if made is None else made.name,
            secret="" if made is None else made.token,
            path=path,
        )

    return await respond(call, work)


class PersonForm(Struct, frozen=True, kw_only=True):
    """Somebody or something to be let in."""

    name: str
    role: Role = "review"


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > MAX_NAME:
        raise Refusal("INVALID_REQUEST", f"A name has 1 to {MAX_NAME} characters.", {"field": "name"})
    return name


async def invite(call: Call, form: PersonForm) -> Answer:
    shown: list[InvitedPerson] = []
    await call.service.database.write(
        partial(
            people.invite,
            owner=call.owner(call.params["project_id"]),
            name=_name(form.name),
            role=form.role,
            invited_by=call.access.token_id,
            shown=shown,
        )
    )
    return await _page(call, invited=shown[0])


async def new_link(call: Call, form: NoFields) -> Answer:
    shown: list[InvitedPerson] = []
    await call.service.database.write(
        partial(
            people.new_link,
            person_id=call.params["person_id"],
            scope=call.params["project_id"],
            invited_by=call.access.token_id,
            shown=shown,
        )
    )
    return await _page(call, invited=shown[0])


async def shut_out(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    person = await call.service.database.write(
        partial(people.revoke_person, person_id=call.params["person_id"], scope=project_id)
    )
    call.service.sessions.clear_cache()
    return await redirect(
        call, project_path(project_id, "settings"), f"{person.name[:60]} is shut out; their work stays."
    )


async def make_token(call: Call, form: PersonForm) -> Answer:
    shown: list[NewToken] = []
    await call.service.database.write(
        partial(
            tokens.create_token_for,
            owner=call.owner(call.params["project_id"]),
            name=_name(form.name),
            role=form.role,
            shown=shown,
        )
    )
    return await _page(call, made=shown[0])


async def revoke_token(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    token = await call.service.database.write(
        partial(tokens.revoke_token, token_id=call.params["token_id"], scope=project_id)
    )
    call.service.authenticator.clear_cache()
    call.service.sessions.clear_cache()
    return await redirect(
        call, project_path(project_id, "settings"), f"Token “{token.name[:60]}” taken back."
    )


class ProjectForm(Struct, frozen=True, kw_only=True):
    """What changes about the project."""

    name: str
    retain_days: Annotated[int, Meta(ge=0, le=36_500)] = 0


async def change_project(call: Call, form: ProjectForm) -> Answer:
    project_id = own_project(call)
    await call.service.database.write(
        partial(
            projects.change_project,
            project_id=project_id,
            name=_name(form.name),
            retain_days=form.retain_days,
            scope=project_id,
        )
    )
    call.service.wake_removals()
    return await redirect(call, project_path(project_id, "settings"), "The project is changed.")


_SETTINGS = "/projects/{project_id}/settings"
ROUTES = (
    page_route(_SETTINGS, settings, role="admin", summary="People, tokens and the project"),
    form_route(
        f"{_SETTINGS}/project", change_project, ProjectForm, role="admin", summary="Change the project"
    ),
    form_route(f"{_SETTINGS}/people", invite, PersonForm, role="admin", summary="Invite somebody"),
    form_route(
        f"{_SETTINGS}/people/{{person_id}}/link", new_link, NoFields, role="admin", summary="A new login link"
    ),
    form_route(
        f"{_SETTINGS}/people/{{person_id}}/shut-out",
        shut_out,
        NoFields,
        role="admin",
        summary="Shut somebody out",
    ),
    form_route(f"{_SETTINGS}/tokens", make_token, PersonForm, role="admin", summary="Make a token"),
    form_route(
        f"{_SETTINGS}/tokens/{{token_id}}/revoke",
        revoke_token,
        NoFields,
        role="admin",
        summary="Take a token back",
    ),
)
