"""For leads: a new review queue with a form made without code, and what goes into it."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import Experiment
from evenhand.core.objects.reviews import (
    LABELS,
    Form,
    FormField,
    ItemsAdded,
    Pick,
    ReviewQueue,
    check_form,
)
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.fields import MAX_NAME
from evenhand.server.pages.frame import (
    Crumb,
    PageContext,
    form_route,
    here_of,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.links import project_path
from evenhand.store import review_queues as store
from evenhand.store.connection import Connection
from evenhand.store.experiments import list_experiments
from evenhand.store.review_queues import NewItem, NewQueue
from evenhand.store.traces import TraceFilter, key_from, list_traces

QUESTIONS = 4
"""Questions that the form has room for."""
MOST_TRACES = 500
"""Traces that one filter adds."""
MOST_EXPERIMENTS = 100
KINDS = {
    "": "no question",
    "label": "one of these labels",
    "scale": "a number on a scale",
    "choice": "A or B, two answers side by side",
    "text": "free text",
}


class NewQueuePage(PageContext, frozen=True, kw_only=True):
    """The form for a new queue."""

    template: ClassVar[str] = "queue_new.html"
    section: ClassVar[str] = "queue"

    questions: int = QUESTIONS
    kinds: Sequence[tuple[str, str]] = tuple(KINDS.items())
    labels: str = ", ".join(LABELS)
    scorers: Sequence[str]
    path: str


async def new_queue(call: Call) -> Answer:
    project_id = call.params["project_id"]
    names = sorted(call.service.scorers.names)

    def work(connection: Connection) -> NewQueuePage:
        return NewQueuePage(
            title="New review queue",
            here=here_of(call),
            crumbs=(Crumb("Review queue", project_path(project_id, "queue")),),
            scorers=names,
            path=project_path(project_id, "queues"),
        )

    return await respond(call, work)


class QueueForm(Struct, frozen=True, kw_only=True):
    """A new queue. What is given once for each question is a list."""

    name: str
    description: str = ""
    instructions: str = ""
    reviewers_per_item: Annotated[int, Meta(ge=1, le=20)] = 1
    reserve_minutes: Annotated[int, Meta(ge=1, le=10_080)] = 30
    pick: Pick = "oldest"
    judge_scorer: str = ""
    correction: bool = False
    notes: bool = False
    title: list[str] = []
    kind: list[str] = []
    labels: list[str] = []
    """Separated by commas."""
    good: list[str] = []
    """Of these, those that count as good."""
    minimum: list[str] = []
    maximum: list[str] = []
    other_labels: list[str] = []
    """`listed`: only these labels."""


def form_of(given: QueueForm) -> Form:
    """The form that somebody put together."""
    fields: list[FormField] = []
    for place, kind in enumerate(given.kind[:QUESTIONS]):
        if not kind:
            continue
        title = _at(given.title, place)
        names = _parts(_at(given.labels, place))
        fields.append(
            FormField(
                name=_name(title or kind, {field.name for field in fields}),
                kind=_kind(kind),
                title=title,
                labels=names if kind == "label" else (),
                own_label=kind == "label" and _at(given.other_labels, place) != "listed",
                good=_parts(_at(given.good, place)) if kind == "label" else (),
                minimum=_number(_at(given.minimum, place)) if kind == "scale" else None,
                maximum=_number(_at(given.maximum, place)) if kind == "scale" else None,
            )
        )
    if not fields:
        raise Refusal("INVALID_REQUEST", "A queue needs at least one question.", {"field": "kind"})
    form = Form(
        fields=tuple(fields),
        instructions=given.instructions.strip(),
        correction=given.correction,
        notes=given.notes,
    )
    check_form(form)
    return form


def _at(values: list[str], place: int) -> str:
    return values[place].strip() if place < len(values) else ""


def _parts(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _kind(text: str) -> Literal["label", "scale", "text", "choice"]:
    kinds: dict[str, Literal["label", "scale", "text", "choice"]] = {
        "label": "label",
        "scale": "scale",
        "text": "text",
        "choice": "choice",
    }
    if text not in kinds:
        raise Refusal("INVALID_REQUEST", "A question is a label, a scale, a choice or a text.")
    return kinds[text]


def _name(title: str, taken: set[str]) -> str:
    """The key of a question's answers: its words, and a number where that is taken."""
    start = "_".join("".join(c if c.isalnum() else " " for c in title.lower()).split())[:60] or "answer"
    if start in ("correction", "notes"):
        start += "_answer"
    name, number = start, 2
    while name in taken:
        name, number = f"{start}_{number}", number + 1
    return name


def _number(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise Refusal("INVALID_REQUEST", f"'{text[:40]}' is not a number.", {"field": "minimum"}) from None


async def create(call: Call, form: QueueForm) -> Answer:
    project_id = call.params["project_id"]
    name = form.name.strip()
    if not name or len(name) > MAX_NAME:
        raise Refusal(
            "INVALID_REQUEST", f"A queue needs a name of at most {MAX_NAME} characters.", {"field": "name"}
        )
    judge = form.judge_scorer.strip()[:MAX_NAME] or None
    if form.pick == "informative" and judge is None:
        raise Refusal(
            "INVALID_REQUEST", "To pick what tells most, name the judge's scorer.", {"field": "judge_scorer"}
        )
    queue = NewQueue(
        name=name,
        description=form.description.strip() or None,
        form=form_of(form),
        reviewers_per_item=form.reviewers_per_item,
        reserve_seconds=60 * form.reserve_minutes,
        pick=form.pick,
        judge_scorer=judge,
    )
    made = await call.service.database.write(
        partial(store.create_queue, owner=call.owner(project_id), queue=queue)
    )
    path = project_path(project_id, "queues", made.id, "add")
    return await redirect(call, path, f"Queue “{name[:60]}” made. Now add what is to be reviewed.")


class AddPage(PageContext, frozen=True, kw_only=True):
    """What can go into a queue."""

    template: ClassVar[str] = "queue_add.html"
    section: ClassVar[str] = "queue"

    queue: ReviewQueue
    pairs: bool
    """The form asks for A or B."""
    experiments: Sequence[Experiment]
    most: int = MOST_TRACES
    path: str


async def add_page(call: Call) -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]

    def work(connection: Connection) -> AddPage:
        queue = store.get_queue(connection, queue_id, scope=project_id)
        path = project_path(project_id, "queues", queue_id)
        return AddPage(
            title="Add items",
            here=here_of(call),
            crumbs=(Crumb("Review queue", project_path(project_id, "queue")), Crumb(queue.name, path)),
            queue=queue,
            pairs=any(field.kind == "choice" for field in queue.form.fields),
            experiments=list_experiments(
                connection, project_id=project_id, before=None, limit=MOST_EXPERIMENTS
            ),
            path=path,
        )

    return await respond(call, work)


class AddForm(Struct, frozen=True, kw_only=True):
    """Traces by a filter, the runs of an experiment, or the runs of two as pairs."""

    source: Literal["traces", "experiment", "pairs"]
    hours: Annotated[int, Meta(ge=1, le=87_600)] | None = None
    errors: bool = False
    queued: bool = False
    span_name: str = ""
    model: str = ""
    count: Annotated[int, Meta(ge=1, le=MOST_TRACES)] = 50
    experiment_id: str = ""
    other_id: str = ""


async def add(call: Call, form: AddForm) -> Answer:
    project_id, queue_id = call.params["project_id"], call.params["queue_id"]
    added: ItemsAdded = await call.service.database.write(
        partial(_add, form=form, project_id=project_id, queue_id=queue_id)
    )
    if not added.added and not added.already:
        raise Refusal("INVALID_REQUEST", "Nothing matches, so nothing was added.", {"field": "source"})
    already = f" {added.already:,} were there already." if added.already else ""
    items = "item" if added.added == 1 else "items"
    return await redirect(
        call, project_path(project_id, "queues", queue_id), f"{added.added:,} {items} added.{already}"
    )


def _add(connection: Connection, *, form: AddForm, project_id: str, queue_id: str) -> ItemsAdded:
    items: list[NewItem]
    if form.source == "traces":
        after = None
        if form.hours is not None:
            after = key_from(microseconds(now() - timedelta(hours=form.hours)) // 1000)
        narrow = TraceFilter(
            after=after,
            has_error=True if form.errors else None,
            in_queue=True if form.queued else None,
            name=form.span_name.strip() or None,
            model=form.model.strip() or None,
        )
        found = list_traces(connection, project_id=project_id, narrow=narrow, before=None, limit=form.count)
        # The oldest first, as reviewers expect it.
        items = [NewItem(target_type="trace", target_id=row.id) for _, row in reversed(found)]
    elif form.source == "experiment":
        runs = store.runs_of_experiment(connection, form.experiment_id, project_id=project_id)
        items = [NewItem(target_type="run", target_id=run_id) for run_id in runs]
    else:
        pairs = store.paired_runs(connection, form.experiment_id, form.other_id, project_id=project_id)
        items = [NewItem(target_type="pair", target_id=a, other_id=b) for a, b in pairs]
    return store.add_items(connection, queue_id, items, scope=project_id)


_QUEUES = "/projects/{project_id}/queues"
ROUTES = (
    page_route(_QUEUES, new_queue, role="write", summary="A new review queue"),
    form_route(_QUEUES, create, QueueForm, summary="Make a review queue"),
    page_route(
        f"{_QUEUES}/{{queue_id}}/add", add_page, role="write", summary="What goes into a review queue"
    ),
    form_route(f"{_QUEUES}/{{queue_id}}/add", add, AddForm, summary="Put items into a review queue"),
)
