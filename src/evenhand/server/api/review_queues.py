"""Review queues: forms, items handed out to reviewers, reviews, and how far they agree."""

import asyncio
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.reviews import (
    DEFAULT_FORM,
    Agreement,
    Form,
    ItemsAdded,
    ItemStatus,
    NextItem,
    Pick,
    QueueProgress,
    ReviewItem,
    ReviewQueue,
    Submitted,
    check_answers,
    check_form,
)
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, Text, json_text, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import review_queues as queues
from evenhand.store import reviews as store
from evenhand.store.review_queues import NewItem, NewQueue
from evenhand.store.reviews import Reviewer

QUEUES = "review-queues"
ITEMS = "review-items"
MAX_NAMED = 10_000
"""Items that one request may name."""
Ids = Annotated[list[str], Meta(max_length=MAX_NAMED)]


class QueueCreate(Struct, frozen=True, kw_only=True):
    """A review queue to be made."""

    project_id: Name
    """Where it belongs."""
    name: Name
    """Unique in its project."""
    description: Text | None = None
    """For people."""
    form: Form | None = None
    """What reviewers are asked; absent for the six labels, a correction and notes."""
    reviewers_per_item: Annotated[int, Meta(ge=1, le=20)] = 1
    """How many reviews finish an item; with two or more, reviewers work blind."""
    reserve_seconds: Annotated[int, Meta(ge=1, le=7 * 24 * 3600)] = 1800
    """How long an item is kept for the reviewer who got it."""
    pick: Pick = "oldest"
    """Which open item comes next: `oldest`, `random`, or `informative` (what narrows the corrected mean most)."""
    judge_scorer: Name | None = None
    """The scorer whose values are compared with the reviewers' and corrected by them."""


class QueueChange(Struct, frozen=True, kw_only=True):
    """What is to change."""

    closed: bool
    """Whether it hands out nothing more."""


class Pair(Struct, frozen=True, kw_only=True):
    """Two runs to choose between."""

    a: str
    """The run that is shown as A."""
    b: str
    """The run that is shown as B."""


class ItemsAdd(Struct, frozen=True, kw_only=True):
    """What reviewers are to look at."""

    trace_ids: Ids = []
    """Traces."""
    run_ids: Ids = []
    """Runs of experiments."""
    pairs: Annotated[list[Pair], Meta(max_length=MAX_NAMED)] = []
    """Pairs of runs."""
    experiment_id: str | None = None
    """All runs of an experiment."""


class QueuesQuery(Paging, frozen=True, kw_only=True):
    """Whose queues."""

    project_id: str | None = None
    """The project; required."""


class ItemsQuery(Paging, frozen=True, kw_only=True):
    """Which items."""

    status: ItemStatus | None = None
    """`open`, `done`, `flagged` or `disagreed`."""


class Who(Struct, frozen=True, kw_only=True):
    """Who reviews."""

    annotator: str | None = None
    """A reviewer's name, for tokens that are not a reviewer's own."""


class ReviewCreate(Who, frozen=True, kw_only=True):
    """What a reviewer says."""

    answers: dict[str, Any] = {}
    """Field of the form to answer."""
    correction: Raw = field(default_factory=Raw)
    """What the output should have been: any JSON."""
    notes: Text | None = None
    """Anything else."""


class Flag(Who, frozen=True, kw_only=True):
    """What is wrong with an item."""

    reason: Annotated[str, Meta(max_length=1_000)] = ""
    """For the lead."""


def reviewer_of(call: Call, annotator: str | None) -> Reviewer:
    """Who reviews: the person or reviewer's token that calls, else the name that the request gives."""
    access = call.access
    if access.reviewer is not None:
        own = access.person_id or access.token_id
        return Reviewer(id=own, name=access.reviewer, sees_all=access.allows("write"))
    if not access.allows("write"):
        raise Refusal("FORBIDDEN", "Reviewing needs the role 'review' or 'write'.", {"role": access.role})
    name = trimmed(annotator or "", "annotator")
    if len(name) > 500:
        raise Refusal("INVALID_REQUEST", "'annotator' has at most 500 characters.", {"field": "annotator"})
    return Reviewer(id=f"name:{name}", name=name, sees_all=True)


def viewer_of(call: Call) -> Reviewer:
    """Who looks at items."""
    access = call.access
    own = access.person_id or access.token_id
    return Reviewer(id=own, name=access.reviewer or "", sees_all=access.allows("read"))


async def create(call: Call, body: QueueCreate) -> Answer:
    form = body.form or DEFAULT_FORM
    check_form(form)
    if body.pick == "informative" and body.judge_scorer is None:
        raise Refusal("INVALID_REQUEST", "'informative' needs 'judge_scorer'.", {"field": "judge_scorer"})
    queue = NewQueue(
        name=trimmed(body.name, "name"),
        description=body.description,
        form=form,
        reviewers_per_item=body.reviewers_per_item,
        reserve_seconds=body.reserve_seconds,
        pick=body.pick,
        judge_scorer=body.judge_scorer,
    )
    return await call.write(partial(queues.create_queue, owner=call.owner(body.project_id), queue=queue))


async def list_all(call: Call, query: QueuesQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(QUEUES)
    rows = await call.read(
        lambda connection: queues.list_queues(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, QUEUES, lambda queue: (queue.id,)))


async def get(call: Call) -> Answer:
    queue_id = call.params["queue_id"]
    return json_answer(
        await call.read(lambda connection: queues.queue_progress(connection, queue_id, scope=call.scope))
    )


async def change(call: Call, body: QueueChange) -> Answer:
    return await call.write(
        partial(queues.set_closed, queue_id=call.params["queue_id"], closed=body.closed, scope=call.scope)
    )


async def add_items(call: Call, body: ItemsAdd) -> Answer:
    if not (body.trace_ids or body.run_ids or body.pairs or body.experiment_id):
        raise Refusal("INVALID_REQUEST", "Name traces, runs, pairs or an experiment.", {"field": "trace_ids"})
    items = [NewItem(target_type="trace", target_id=trace_id) for trace_id in body.trace_ids]
    items += [NewItem(target_type="run", target_id=run_id) for run_id in body.run_ids]
    items += [NewItem(target_type="pair", target_id=pair.a, other_id=pair.b) for pair in body.pairs]
    return await call.write(
        partial(
            queues.add_items,
            queue_id=call.params["queue_id"],
            items=items,
            experiment_id=body.experiment_id,
            scope=call.scope,
        )
    )


async def list_items(call: Call, query: ItemsQuery) -> Answer:
    limit, after = query.checked_limit(), query.after(ITEMS)
    rows = await call.search(
        lambda connection: store.list_items(
            connection,
            call.params["queue_id"],
            viewer_of(call),
            status=query.status,
            scope=call.scope,
            after=after[0] if after else None,
            limit=limit + 1,
        )
    )
    return json_answer(page_of(rows, limit, ITEMS, lambda item: (item.id,)))


async def get_item(call: Call) -> Answer:
    queue_id, item_id = call.params["queue_id"], call.params["review_item_id"]
    return json_answer(
        await call.read(
            lambda connection: store.read_item(
                connection, queue_id, item_id, viewer_of(call), scope=call.scope
            )
        )
    )


async def next_item(call: Call, body: Who) -> Answer:
    reviewer = reviewer_of(call, body.annotator)
    return await call.write(
        partial(store.next_item, queue_id=call.params["queue_id"], reviewer=reviewer, scope=call.scope)
    )


async def submit(call: Call, body: ReviewCreate) -> Answer:
    return await _say(call, body, store.submit)


async def adjudicate(call: Call, body: ReviewCreate) -> Answer:
    return await _say(call, body, store.adjudicate)


async def _say(call: Call, body: ReviewCreate, work: Any) -> Answer:
    queue_id = call.params["queue_id"]
    reviewer = reviewer_of(call, body.annotator)
    queue = await call.read(lambda connection: queues.get_queue(connection, queue_id, scope=call.scope))
    answers = check_answers(queue.form, body.answers)
    return await call.write(
        partial(
            work,
            queue_id=queue_id,
            item_id=call.params["review_item_id"],
            reviewer=reviewer,
            content=store.ReviewContent(
                answers=answers, correction=json_text(body.correction, "correction"), notes=body.notes
            ),
            scope=call.scope,
        )
    )


async def skip(call: Call, body: Who) -> Answer:
    return await call.write(
        partial(
            store.skip,
            queue_id=call.params["queue_id"],
            item_id=call.params["review_item_id"],
            reviewer=reviewer_of(call, body.annotator),
            scope=call.scope,
        )
    )


async def flag(call: Call, body: Flag) -> Answer:
    return await call.write(
        partial(
            store.flag,
            queue_id=call.params["queue_id"],
            item_id=call.params["review_item_id"],
            reviewer=reviewer_of(call, body.annotator),
            reason=body.reason.strip(),
            scope=call.scope,
        )
    )


async def agreement(call: Call) -> Answer:
    queue_id = call.params["queue_id"]
    queue, items = await call.search(
        lambda connection: store.read_for_agreement(connection, queue_id, scope=call.scope)
    )
    from evenhand.judging.reviewers import agreement as compute  # numpy: not needed to start

    return json_answer(await asyncio.to_thread(compute, queue, items))


ROUTES = (
    Route(
        operation="create_queue",
        method="POST",
        path="/v1/queues",
        handler=create,
        audience="token:write",
        request=QueueCreate,
        response=ReviewQueue,
        status=201,
        errors=("NOT_FOUND", "CONFLICT"),
        summary="Make a review queue",
        tag="Review queues",
    ),
    Route(
        operation="list_queues",
        method="GET",
        path="/v1/queues",
        handler=list_all,
        audience="token:review",
        query=QueuesQuery,
        response=Page[ReviewQueue],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List review queues, newest first",
        tag="Review queues",
    ),
    Route(
        operation="get_queue",
        method="GET",
        path="/v1/queues/{queue_id}",
        handler=get,
        audience="token:review",
        response=QueueProgress,
        errors=("NOT_FOUND",),
        summary="Read a review queue and how far it has come",
        tag="Review queues",
    ),
    Route(
        operation="update_queue",
        method="PATCH",
        path="/v1/queues/{queue_id}",
        handler=change,
        audience="token:write",
        request=QueueChange,
        response=ReviewQueue,
        errors=("NOT_FOUND",),
        summary="Close a review queue, or open it again",
        tag="Review queues",
    ),
    Route(
        operation="create_queue_items",
        method="POST",
        path="/v1/queues/{queue_id}/items",
        handler=add_items,
        audience="token:write",
        request=ItemsAdd,
        response=ItemsAdded,
        errors=("NOT_FOUND",),
        summary="Put traces, runs or pairs of runs into a review queue",
        tag="Review queues",
    ),
    Route(
        operation="list_queue_items",
        method="GET",
        path="/v1/queues/{queue_id}/items",
        handler=list_items,
        audience="token:read",
        query=ItemsQuery,
        response=Page[ReviewItem],
        errors=("NOT_FOUND",),
        summary="List the items of a review queue in the order they were added",
        tag="Review queues",
    ),
    Route(
        operation="get_queue_item",
        method="GET",
        path="/v1/queues/{queue_id}/items/{review_item_id}",
        handler=get_item,
        audience="token:review",
        response=ReviewItem,
        errors=("NOT_FOUND",),
        summary="Read an item; what others said is withheld from a blind reviewer until they have submitted",
        tag="Review queues",
    ),
    Route(
        operation="reserve_next_queue_item",
        method="POST",
        path="/v1/queues/{queue_id}/next",
        handler=next_item,
        audience="token:review",
        request=Who,
        response=NextItem,
        errors=("NOT_FOUND",),
        summary="Get the next item to review, reserved for a while",
        tag="Review queues",
    ),
    Route(
        operation="submit_review",
        method="POST",
        path="/v1/queues/{queue_id}/items/{review_item_id}/review",
        handler=submit,
        audience="token:review",
        request=ReviewCreate,
        response=Submitted,
        status=201,
        errors=("NOT_FOUND", "CONFLICT", "EMPTY_ANNOTATION"),
        summary="Submit a review; the answer shows what others and the judge said",
        tag="Review queues",
    ),
    Route(
        operation="skip_queue_item",
        method="POST",
        path="/v1/queues/{queue_id}/items/{review_item_id}/skip",
        handler=skip,
        audience="token:review",
        request=Who,
        response=NextItem,
        errors=("NOT_FOUND",),
        summary="Put an item off and get another one",
        tag="Review queues",
    ),
    Route(
        operation="flag_queue_item",
        method="POST",
        path="/v1/queues/{queue_id}/items/{review_item_id}/flag",
        handler=flag,
        audience="token:review",
        request=Flag,
        response=ReviewItem,
        errors=("NOT_FOUND",),
        summary="Mark an item for the lead",
        tag="Review queues",
    ),
    Route(
        operation="adjudicate_queue_item",
        method="POST",
        path="/v1/queues/{queue_id}/items/{review_item_id}/adjudicate",
        handler=adjudicate,
        audience="token:write",
        request=ReviewCreate,
        response=Submitted,
        status=201,
        errors=("NOT_FOUND", "CONFLICT", "EMPTY_ANNOTATION"),
        summary="Settle an item that reviewers disagree on",
        tag="Review queues",
    ),
    Route(
        operation="get_queue_agreement",
        method="GET",
        path="/v1/queues/{queue_id}/agreement",
        handler=agreement,
        audience="token:read",
        response=Agreement,
        errors=("NOT_FOUND",),
        summary="How far reviewers agree, and the judge's mean corrected by them",
        tag="Review queues",
    ),
)
