"""Versions of datasets and their difference; single items, made of spans, taken out, and their history."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.datasets import DatasetItem, DatasetVersion, Deleted, ItemChange
from evenhand.core.objects.experiments import ItemRun
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, is_null, json_text, object_text
from evenhand.server.http.paging import Paging, make_cursor, page_of
from evenhand.server.http.routes import Route
from evenhand.store import dataset_versions as store
from evenhand.store.datasets import get_item, remove_item
from evenhand.store.span_items import SpanItem, add_span_item

VERSIONS = "dataset_versions"
CHANGES = "dataset_changes"
RUNS = "item_runs"
_Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class DifferenceQuery(Paging, frozen=True, kw_only=True):
    """Which two versions."""

    from_version: _Version = 1
    """The one that is compared with."""
    to_version: _Version | None = None
    """The one that is compared; the newest when absent."""


class SpanItemCreate(Struct, frozen=True, kw_only=True):
    """A span of which an item is made: its input, and perhaps its output."""

    trace_id: str
    """The trace."""
    span_id: str | None = None
    """The span; the root when absent."""
    use_output: bool | None = None
    """Whether the span's output becomes the expected one; false when absent."""
    expected_output: Raw = field(default_factory=Raw)
    """What a good output would be, in place of the span's own; any JSON."""
    metadata: Raw = field(default_factory=Raw)
    """A JSON object; `source_trace_id` and `source_span_id` are added."""
    project_id: Name | None = None
    """Needed only where a token for all projects meets a trace's id twice."""


async def versions(call: Call, query: Paging) -> Answer:
    dataset_id = call.params["dataset_id"]
    limit, after = query.checked_limit(), query.after(VERSIONS)
    before = None if after is None else _number(after[0])
    rows = await call.read(
        lambda connection: store.list_versions(
            connection, dataset_id, scope=call.scope, before=before, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, VERSIONS, lambda version: (str(version.version),)))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refusal("INVALID_REQUEST", "'cursor' does not belong to this list.", {"field": "cursor"})
    return int(text)


async def difference(call: Call, query: DifferenceQuery) -> Answer:
    dataset_id = call.params["dataset_id"]
    listing = f"{CHANGES}:{query.from_version}:{query.to_version}"
    limit, after = query.checked_limit(), query.after(listing, 3)
    rows = await call.read(
        lambda connection: store.list_changes(
            connection,
            dataset_id,
            scope=call.scope,
            start=query.from_version,
            end=query.to_version,
            after=None if after is None else (after[0], _number(after[1]), after[2]),
            limit=limit + 1,
        )
    )
    place = rows[limit - 1][0] if len(rows) > limit else None
    cursor = None if place is None else make_cursor(listing, [place[0], str(place[1]), place[2]])
    return json_answer(Page(items=[change for _, change in rows[:limit]], next_cursor=cursor, limit=limit))


async def item(call: Call) -> Answer:
    dataset_id, item_id = call.params["dataset_id"], call.params["item_id"]
    return json_answer(
        await call.read(
            lambda connection: get_item(connection, item_id, scope=call.scope, dataset_id=dataset_id)
        )
    )


async def remove(call: Call) -> Answer:
    return await call.write(
        partial(
            remove_item,
            dataset_id=call.params["dataset_id"],
            item_id=call.params["item_id"],
            scope=call.scope,
            actor=call.access.token_id,
        )
    )


async def runs(call: Call, query: Paging) -> Answer:
    dataset_id, item_id = call.params["dataset_id"], call.params["item_id"]
    limit, after = query.checked_limit(), query.after(RUNS)
    rows = await call.read(
        lambda connection: store.list_item_runs(
            connection,
            item_id,
            scope=call.scope,
            before=after[0] if after else None,
            limit=limit + 1,
            dataset_id=dataset_id,
        )
    )
    return json_answer(page_of(rows, limit, RUNS, lambda run: (run.id,)))


async def from_span(call: Call, body: SpanItemCreate) -> Answer:
    wanted = SpanItem(
        trace_id=body.trace_id,
        span_id=body.span_id,
        project_id=body.project_id,
        use_output=bool(body.use_output) and is_null(body.expected_output),
        expected_output=json_text(body.expected_output, "expected_output"),
        metadata=object_text(body.metadata, "metadata"),
    )
    return await call.write(
        partial(add_span_item, dataset_id=call.params["dataset_id"], wanted=wanted, scope=call.scope)
    )


ROUTES = (
    Route(
        operation="list_dataset_versions",
        method="GET",
        path="/v1/datasets/{dataset_id}/versions",
        handler=versions,
        audience="token:read",
        query=Paging,
        response=Page[DatasetVersion],
        errors=("NOT_FOUND",),
        summary="List a dataset's versions, newest first",
        tag="Datasets",
    ),
    Route(
        operation="compare_dataset_versions",
        method="GET",
        path="/v1/datasets/{dataset_id}/difference",
        handler=difference,
        audience="token:read",
        query=DifferenceQuery,
        response=Page[ItemChange],
        errors=("NOT_FOUND",),
        summary="The items that two versions do not share: those removed, then those added",
        tag="Datasets",
    ),
    Route(
        operation="get_dataset_item",
        method="GET",
        path="/v1/datasets/{dataset_id}/items/{item_id}",
        handler=item,
        audience="token:read",
        response=DatasetItem,
        errors=("NOT_FOUND",),
        summary="Read an item, also one that was removed",
        tag="Datasets",
    ),
    Route(
        operation="delete_dataset_item",
        method="DELETE",
        path="/v1/datasets/{dataset_id}/items/{item_id}",
        handler=remove,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Remove an item: a new version lacks it, earlier ones keep it",
        tag="Datasets",
    ),
    Route(
        operation="list_dataset_item_runs",
        method="GET",
        path="/v1/datasets/{dataset_id}/items/{item_id}/runs",
        handler=runs,
        audience="token:read",
        query=Paging,
        response=Page[ItemRun],
        errors=("NOT_FOUND",),
        summary="The history of an item: its runs over all experiments, newest first",
        tag="Datasets",
    ),
    Route(
        operation="create_dataset_item_from_span",
        method="POST",
        path="/v1/datasets/{dataset_id}/items/from-span",
        handler=from_span,
        audience="token:write",
        request=SpanItemCreate,
        response=DatasetItem,
        status=201,
        errors=("NOT_FOUND", "NO_ROOT_SPAN"),
        summary="Make an item of a span",
        tag="Datasets",
    ),
)
