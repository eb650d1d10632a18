"""Tokens: made, listed and taken back by administrators. The secret is shown once."""

from functools import partial

from msgspec import Struct

from evenhand.core.objects.projects import NewToken, Role, Token
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import tokens as store
from evenhand.store.projects import not_found

LISTING = "tokens"


class TokenCreate(Struct, frozen=True, kw_only=True):
    """A token to be made."""

    name: Name
    """For people: who or what will use it."""
    role: Role
    """`review` (works on review queues under the token's name), `read`, `write` or `admin`."""
    project_id: Name | None = None
    """The one project that it opens; absent opens all (administrators only)."""


async def create(call: Call, body: TokenCreate) -> Answer:
    name = trimmed(body.name, "name")
    store.check_role_scope(body.role, body.project_id)
    if call.scope is not None and body.project_id != call.scope:
        raise not_found("project", body.project_id or "")

    owner = None if body.project_id is None else call.owner(body.project_id)
    shown: list[NewToken] = []
    answer = await call.write(
        partial(store.create_token_for, owner=owner, name=name, role=body.role, shown=shown)
    )
    return json_answer(shown[0], answer.status) if shown else answer


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
    answer = await call.write(partial(store.revoke_token, token_id=token_id, scope=call.scope))
    call.service.authenticator.clear_cache()
    call.service.sessions.clear_cache()
    return answer


ROUTES = (
    Route(
        operation="create_token",
        method="POST",
        path="/v1/tokens",
        handler=create,
        audience="token:admin",
        request=TokenCreate,
        response=NewToken,
        status=201,
        errors=("NOT_FOUND",),
        summary="Make a token; the answer shows its secret once",
        tag="Projects",
    ),
    Route(
        operation="list_tokens",
        method="GET",
        path="/v1/tokens",
        handler=list_all,
        audience="token:admin",
        query=Paging,
        response=Page[Token],
        summary="List tokens",
        tag="Projects",
    ),
    Route(
        operation="revoke_token",
        method="DELETE",
        path="/v1/tokens/{token_id}",
        handler=revoke,
        audience="token:admin",
        response=Token,
        errors=("NOT_FOUND",),
        summary="Take a token back",
        tag="Projects",
    ),
)
