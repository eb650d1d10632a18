"""Tokens: made, listed and taken back by administrators. The secret is shown once."""

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.objects.projects import NewToken, Role, Token
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.call import Call
from evenhand.server.fields import Name, trimmed
from evenhand.server.paging import Paging, page_of
from evenhand.server.routes import Route
from evenhand.store import tokens as store
from evenhand.store.connection import Connection
from evenhand.store.projects import not_found

LISTING = "tokens"


class TokenCreate(Struct, frozen=True, kw_only=True):
    """A token to be made."""

    name: Name
    """For people: who or what will use it."""
    role: Role
    """`read`, `write` or `admin`."""
    project_id: Name | None = None
    """The one project that it opens; absent opens all (administrators only)."""


async def create(call: Call, body: TokenCreate) -> Answer:
    name = trimmed(body.name, "name")
    store.check_role_scope(body.role, body.project_id)
    if call.scope is not None and body.project_id != call.scope:
        raise not_found("project", body.project_id or "")

    made: list[NewToken] = []

    def work(connection: Connection) -> NewToken:
        if body.project_id is not None:
            call.open_project(connection, body.project_id)
        token = store.create_token(connection, name=name, project_id=body.project_id, role=body.role)
        made[:] = [token]
        # What an idempotency key repeats is stored: not the secret.
        return replace(token, token="")

    answer = await call.write(work)
    return json_answer(made[0], answer.status) if made else answer


async def list_all(call: Call, query: Paging) -> Answer:
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_tokens(
            connection, scope=call.scope, after=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda token: (token.id,)))


async def revoke(call: Call) -> Answer:
    token_id = call.params["token_id"]
    answer = await call.write(lambda connection: store.revoke_token(connection, token_id, scope=call.scope))
    call.service.gate.forget()
    return answer


ROUTES = (
    Route(
        method="POST",
        path="/v1/tokens",
        handler=create,
        role="admin",
        request=TokenCreate,
        response=NewToken,
        status=201,
        errors=("NOT_FOUND",),
        summary="Make a token; the answer shows its secret once",
        tag="Projects",
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        handler=list_all,
        role="admin",
        query=Paging,
        response=Page[Token],
        summary="List tokens",
        tag="Projects",
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{token_id}",
        handler=revoke,
        role="admin",
        response=Token,
        errors=("NOT_FOUND",),
        summary="Take a token back",
        tag="Projects",
    ),
)
