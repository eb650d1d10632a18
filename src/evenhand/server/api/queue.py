"""The review queue."""

from functools import partial

from evenhand.core.errors import Refusal
from evenhand.core.objects.annotations import Queued, QueuedSince, QueueItem, QueueStatus
from evenhand.server.api.traces import OneTraceQuery
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import traces as store

LISTING = "queue"
_STATUSES: dict[str, QueueStatus] = {"pending": "pending", "annotated": "annotated"}


class QueueQuery(Paging, frozen=True, kw_only=True):
    """Which part of the queue."""

    project_id: str | None = None
    """The project; required."""
    status: str | None = None
    """`pending` or `annotated`; absent for both."""


async def add(call: Call, query: OneTraceQuery) -> Answer:
    trace_id = call.params["trace_id"]
    return await call.write(
        partial(store.queue_trace, trace_id=trace_id, scope=call.scope, project_id=query.project_id)
    )


async def remove(call: Call, query: OneTraceQuery) -> Answer:
    trace_id = call.params["trace_id"]
    return await call.write(
        partial(store.unqueue_trace, trace_id=trace_id, scope=call.scope, project_id=query.project_id)
    )


async def list_all(call: Call, query: QueueQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    if query.status is not None and query.status not in _STATUSES:
        raise Refusal("INVALID_QUEUE_STATUS", "'status' can be pending or annotated.", {"field": "status"})
    status = None if query.status is None else _STATUSES[query.status]
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_queue(
            connection,
            project_id=project_id,
            status=status,
            after=after[0] if after else None,
            limit=limit + 1,
        )
    )
    page = page_of(rows, limit, LISTING, lambda row: (row[0],))
    return json_answer(
        Page(items=[item for _, item in page.items], next_cursor=page.next_cursor, limit=limit)
    )


ROUTES = (
    Route(
        operation="queue_trace",
        method="POST",
        path="/v1/traces/{trace_id}/queue",
        handler=add,
        audience="token:write",
        query=OneTraceQuery,
        response=QueuedSince,
        errors=("NOT_FOUND",),
        summary="Put a trace into the review queue",
        tag="Queue",
    ),
    Route(
        operation="unqueue_trace",
        method="DELETE",
        path="/v1/traces/{trace_id}/queue",
        handler=remove,
        audience="token:write",
        query=OneTraceQuery,
        response=Queued,
        errors=("NOT_FOUND",),
        summary="Take a trace out of the review queue",
        tag="Queue",
    ),
    Route(
        operation="list_queued_traces",
        method="GET",
        path="/v1/queue",
        handler=list_all,
        audience="token:read",
        query=QueueQuery,
        response=Page[QueueItem],
        errors=("PROJECT_REQUIRED", "INVALID_QUEUE_STATUS", "NOT_FOUND"),
        summary="List the review queue, oldest first",
        tag="Queue",
    ),
)
