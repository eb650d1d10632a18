"""A named queue at work: the next item with the queue's own form, blind until it is submitted, then what others said."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.reviews import (
    Form,
    FormField,
    JudgeSaid,
    QueueProgress,
    Review,
    ReviewItem,
    check_answers,
    unsettled,
)
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.frame import (
    Crumb,
    NoFields,
    PageContext,
    PageQuery,
    form_route,
    here_of,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.links import project_path, with_query
from evenhand.server.pages.reviewing import NOTHING_GIVEN, Text, answer_text, question_text, reviewer_of
from evenhand.server.pages.values import readable
from evenhand.store import review_queues as queues
from evenhand.store import reviews as store
from evenhand.store.connection import Connection
from evenhand.store.reviews import Reviewer

MOST_FIELDS = 20


class ReviewQuery(PageQuery, frozen=True, kw_only=True):
    """What is shown."""

    item: str = ""
    """This item, with what was said about it: for those who have reviewed it, and for leads who settle it."""
    last: str = ""
    """The item that was just submitted, opened under the next one."""


class Side(Struct, frozen=True, kw_only=True):
    """One answer to look at."""

    name: str
    """Answer, A or B."""
    text: Text
    trace_path: str


class Opinion(Struct, frozen=True, kw_only=True):
    """What one reviewer, or the judge, said."""

    who: str
    answers: str
    notes: str
    correction: str


class Revealed(Struct, frozen=True, kw_only=True):
    """An item with what everybody said."""

    item_id: str
    question: str
    opinions: Sequence[Opinion]
    unsettled: bool
    path: str


class AskedField(Struct, frozen=True, kw_only=True):
    """A question of the form, as it is drawn."""

    field: FormField
    name: str
    """The name of its control."""
    title: str
    choices: Sequence[str]
    """Values of a label or a choice, or the steps of a short scale."""
    first_key: int
    """The key of the first choice; 0 for none."""


class ReviewPage(PageContext, frozen=True, kw_only=True):
    """An item to review, or nothing left."""

    template: ClassVar[str] = "review.html"
    section: ClassVar[str] = "queue"

    progress: QueueProgress
    own: int
    """Reviews of the person who looks."""
    others: Sequence[tuple[str, int]]
    item: ReviewItem | None
    question: Text
    sides: Sequence[Side]
    asked: Sequence[AskedField]
    left: int
    reserved_until: str | None
    settles: bool
    """The form settles what reviewers disagree on."""
    now_open: Revealed | None
    """What others said about `item`, or about the one that was just submitted."""
    may_say: bool
    """The form is shown: the item is theirs to review, or to settle."""
    query_item: bool
    """One item was asked for by its id."""
    trouble: str
    path: str
    action: str


async def take(call: Call, query: ReviewQuery) -> Answer:
    return await _page(call, query)


async def _page(call: Call, query: ReviewQuery, trouble: str = "") -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    reviewer = reviewer_of(call.access)
    leads = call.access.allows("write")
    handed = None
    if not query.item:
        handed = await call.service.database.write(
            partial(store.next_item, queue_id=queue_id, reviewer=reviewer, scope=project_id)
        )

    def work(connection: Connection) -> ReviewPage:
        progress = queues.queue_progress(connection, queue_id, scope=project_id)
        item = handed.item if handed is not None else None
        settles = False
        if query.item:
            # A lead who settles sees what was said: an item that still waits for reviews stays blind for them too.
            item = store.read_item(connection, queue_id, query.item, reviewer, scope=project_id)
            seen = Reviewer(id=reviewer.id, name=reviewer.name, sees_all=leads)
            full = store.read_item(connection, queue_id, query.item, seen, scope=project_id)
            if full.status != "open" and full.reviews:
                item, settles = full, leads
        mine = item is not None and any(
            one.annotator == reviewer.name and not one.adjudication for one in item.reviews
        )
        shown_id = query.item or query.last
        opened = None
        if shown_id:
            found = store.read_item(
                connection,
                queue_id,
                shown_id,
                Reviewer(id=reviewer.id, name=reviewer.name, sees_all=settles),
                scope=project_id,
            )
            if not found.withheld and found.reviews:
                opened = _revealed(found, progress.form, reviewer, project_id)
        path = project_path(project_id, "queues", queue_id)
        return ReviewPage(
            title=progress.name,
            here=here_of(call, query),
            crumbs=(Crumb("Review queue", project_path(project_id, "queue")),),
            progress=progress,
            own=next((one.review_count for one in progress.reviewers if one.annotator == reviewer.name), 0),
            others=[
                (one.annotator, one.review_count)
                for one in progress.reviewers
                if one.annotator != reviewer.name
            ],
            item=item,
            question=question_text(item.shown[0].input if item and item.shown else None),
            sides=_sides(item, project_id, links=call.access.allows("read")),
            asked=_asked(progress.form),
            left=handed.left if handed is not None else 0,
            reserved_until=handed.reserved_until if handed is not None else None,
            settles=settles,
            now_open=opened,
            may_say=item is not None and (settles or not mine),
            query_item=bool(query.item),
            trouble=trouble,
            path=path,
            action="" if item is None else f"{path}/items/{item.id}/{'adjudicate' if settles else 'review'}",
        )

    answer = await respond(call, work, query)
    answer.status = 422 if trouble else answer.status
    return answer


def _sides(item: ReviewItem | None, project_id: str, *, links: bool) -> list[Side]:
    if item is None:
        return []
    names = ("A", "B") if item.target_type == "pair" else ("Answer",)
    return [
        Side(
            name=name,
            text=answer_text(shown.output),
            # A link from a blind item would lead to what the judge and others said.
            trace_path=project_path(project_id, "traces", shown.trace_id)
            if links and shown.trace_id and not item.withheld
            else "",
        )
        for name, shown in zip(names, item.shown, strict=False)
    ]


def _asked(form: Form) -> list[AskedField]:
    """The form's questions; the first one with choices gets the keys from 1 on."""
    found: list[AskedField] = []
    keyed = False
    for place, field in enumerate(form.fields):
        choices: list[str] = []
        if field.kind == "label":
            choices = list(field.labels)
        elif field.kind == "choice":
            choices = ["A", "B", "tie"]
        elif field.kind == "scale" and field.minimum is not None and field.maximum is not None:
            steps = field.maximum - field.minimum
            if steps.is_integer() and field.minimum.is_integer() and steps <= 10:
                choices = [f"{field.minimum + step:g}" for step in range(int(steps) + 1)]
        first_key = 1 if choices and not keyed and len(choices) <= 9 else 0
        keyed = keyed or bool(first_key)
        found.append(
            AskedField(
                field=field,
                name=f"f{place}",
                title=field.title or field.name[:1].upper() + field.name[1:],
                choices=choices,
                first_key=first_key,
            )
        )
    return found


def _revealed(item: ReviewItem, form: Form, reviewer: Reviewer, project_id: str) -> Revealed:
    opinions = [_opinion(review, form, reviewer) for review in item.reviews]
    if item.judge is not None:
        opinions.append(_judge(item.judge))
    question = question_text(item.shown[0].input if item.shown else None)
    return Revealed(
        item_id=item.id,
        question=" ".join(question.first.split())[:100],
        opinions=opinions,
        unsettled=unsettled(form, item.reviews),
        path=with_query(project_path(project_id, "queues", item.queue_id), {"item": item.id}),
    )


def _opinion(review: Review, form: Form, reviewer: Reviewer) -> Opinion:
    names = [field.name for field in form.fields if field.name in review.answers]
    several = len(form.fields) > 1
    said = [
        f"{name}: {_word(review.answers[name])}" if several else _word(review.answers[name]) for name in names
    ]
    who = "You" if review.annotator == reviewer.name else review.annotator
    correction = review.answers.get("correction")
    return Opinion(
        who=f"{who}, settling it" if review.adjudication else who,
        answers=", ".join(said) or "no answer",
        notes=str(review.answers.get("notes", "")),
        correction="" if correction is None else readable(encode_text(correction).encode()).text,
    )


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _judge(judge: JudgeSaid) -> Opinion:
    value = judge.value if isinstance(judge.value, str) else f"{judge.value:.2f}"
    return Opinion(
        who=f"Judge {judge.scorer_name}", answers=value, notes=judge.rationale or "", correction=""
    )


AnswersForm: Any = msgspec.defstruct(
    "AnswersForm",
    [
        *((f"f{place}", str, "") for place in range(MOST_FIELDS)),
        *((f"own{place}", str, "") for place in range(MOST_FIELDS)),
        ("correction", str, ""),
        ("notes", str, ""),
        ("reason", str, ""),
    ],
    frozen=True,
    kw_only=True,
)
"""What a reviewer says: the controls of the form's questions by their place, since a lead names the questions."""


def given_answers(form: Form, given: Any) -> dict[str, Any]:
    """The posted controls as answers to the form's questions."""
    found: dict[str, Any] = {}
    for place, field in enumerate(form.fields):
        text = (getattr(given, f"own{place}") if field.own_label else "").strip()
        text = text or getattr(given, f"f{place}").strip()
        if not text:
            continue
        if field.kind == "scale":
            try:
                found[field.name] = float(text)
            except ValueError:
                raise Refusal(
                    "INVALID_REQUEST", f"'{field.name[:100]}': a number is expected.", {"field": field.name}
                ) from None
        else:
            found[field.name] = text
    return check_answers(form, found)


async def submit(call: Call, form: AnswersForm) -> Answer:
    item_id = call.params["review_item_id"]
    made = await _say(call, form, store.submit, reviewer_of(call.access))
    if made is None:
        return await _page(call, ReviewQuery(item=item_id), NOTHING_GIVEN)
    path = project_path(call.params["project_id"], "queues", call.params["queue_id"])
    return await redirect(call, with_query(path, {"last": item_id}), "Review saved.")


async def adjudicate(call: Call, form: AnswersForm) -> Answer:
    item_id = call.params["review_item_id"]
    made = await _say(call, form, store.adjudicate, reviewer_of(call.access))
    if made is None:
        return await _page(call, ReviewQuery(item=item_id), NOTHING_GIVEN)
    path = project_path(call.params["project_id"], "agreement")
    return await redirect(
        call, with_query(path, {"queue": call.params["queue_id"]}), "Settled: this answer counts."
    )


async def _say(call: Call, given: Any, work: Any, reviewer: Reviewer) -> Any:
    """Store what was said; None when nothing was."""
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    item_id = call.params["review_item_id"]

    def look(connection: Connection) -> tuple[Form, ReviewItem]:
        queue = queues.get_queue(connection, queue_id, scope=project_id)
        return queue.form, store.read_item(connection, queue_id, item_id, reviewer, scope=project_id)

    form, item = await call.read(look)
    answered = answer_text(item.shown[0].output if item.shown else None).whole
    correction = given.correction.strip() if form.correction else ""
    if correction == answered.strip():
        correction = ""
    notes = given.notes.strip() if form.notes else ""
    answers = given_answers(form, given)
    if not answers and not correction and not notes:
        return None
    return await call.service.database.write(
        partial(
            work,
            queue_id=queue_id,
            item_id=item_id,
            reviewer=reviewer,
            content=store.ReviewContent(
                answers=answers,
                correction=encode_text(correction) if correction else None,
                notes=notes or None,
            ),
            scope=project_id,
        )
    )


async def skip(call: Call, form: AnswersForm) -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    await call.service.database.write(
        partial(
            store.skip,
            queue_id=queue_id,
            item_id=call.params["review_item_id"],
            reviewer=reviewer_of(call.access),
            scope=project_id,
        )
    )
    return await redirect(call, project_path(project_id, "queues", queue_id), "Put off: it comes back later.")


async def flag(call: Call, form: AnswersForm) -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    await call.service.database.write(
        partial(
            store.flag,
            queue_id=queue_id,
            item_id=call.params["review_item_id"],
            reviewer=reviewer_of(call.access),
            reason=form.notes.strip()[:1_000],
            scope=project_id,
        )
    )
    return await redirect(call, project_path(project_id, "queues", queue_id), "Flagged for the lead.")


async def close(call: Call, form: NoFields) -> Answer:
    return await _set_closed(call, closed=True)


async def reopen(call: Call, form: NoFields) -> Answer:
    return await _set_closed(call, closed=False)


async def _set_closed(call: Call, *, closed: bool) -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    await call.service.database.write(
        partial(queues.set_closed, queue_id=queue_id, closed=closed, scope=project_id)
    )
    said = "Closed: it hands out nothing more." if closed else "Open again."
    return await redirect(call, project_path(project_id, "queues", queue_id), said)


_ONE = "/projects/{project_id}/queues/{queue_id}"
_ITEM = f"{_ONE}/items/{{review_item_id}}"
ROUTES = (
    page_route(_ONE, take, role="review", query=ReviewQuery, summary="The next item of a review queue"),
    form_route(f"{_ITEM}/review", submit, AnswersForm, role="review", summary="Submit a review"),
    form_route(f"{_ITEM}/skip", skip, AnswersForm, role="review", summary="Put an item off"),
    form_route(f"{_ITEM}/flag", flag, AnswersForm, role="review", summary="Mark an item for the lead"),
    form_route(f"{_ITEM}/adjudicate", adjudicate, AnswersForm, summary="Settle a disagreement"),
    form_route(f"{_ONE}/close", close, NoFields, summary="Close a review queue"),
    form_route(f"{_ONE}/reopen", reopen, NoFields, summary="Open a review queue again"),
)
