"""Searching what spans say."""

from typing import Annotated

from msgspec import Meta

from evenhand.core.errors import Refusal
from evenhand.core.objects.search import SearchPage
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, json_answer
from evenhand.server.http.paging import Paging, make_cursor
from evenhand.server.http.routes import Route
from evenhand.store.searching import search_spans, words_of
from evenhand.store.spans import created_at_of

LISTING = "search"


class SearchQuery(Paging, frozen=True, kw_only=True):
    """What is searched for."""

    project_id: str | None = None
    """The project; required."""
    q: Annotated[str, Meta(max_length=1_000)] = ""
    """Words, all of which a span's name, input or output must hold, also inside of longer ones; case does not count."""


async def search(call: Call, query: SearchQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    words = words_of(query.q)
    if not words:
        raise Refusal("INVALID_REQUEST", "Say what to search for: ?q=…", {"field": "q"})
    limit, after = query.checked_limit(), query.after(LISTING)
    searched = await call.search(
        lambda connection: search_spans(
            connection,
            project_id=project_id,
            words=words,
            before=after[0] if after else None,
            limit=limit,
        )
    )
    return json_answer(
        SearchPage(
            items=searched.found,
            next_cursor=None if searched.last is None else make_cursor(LISTING, [searched.last]),
            limit=limit,
            searched_until=None if searched.last is None else created_at_of(searched.last),
        )
    )


ROUTES = (
    Route(
        operation="search_spans",
        method="GET",
        path="/v1/search",
        handler=search,
        audience="token:read",
        query=SearchQuery,
        response=SearchPage,
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="Search names, inputs and outputs of a project's spans, newest traces first",
        tag="Traces",
    ),
)
