"""The review queue: cards oldest first, and the panel in which a reviewer says what is right or wrong."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.annotations import Annotation, QueueItem, QueueStatus
from evenhand.core.objects.datasets import Dataset, DatasetItem
from evenhand.core.objects.reviews import LABELS, ReviewQueue
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.fields import MAX_NAME
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.http.sessions import cookie_value
from evenhand.server.pages.frame import (
    Crumb,
    ListQuery,
    PageContext,
    PageQuery,
    age_of,
    form_route,
    here_of,
    page_route,
    person_of,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path, with_query
from evenhand.server.pages.reviewing import (
    NOTHING_GIVEN,
    Said,
    Text,
    answer_text,
    question_text,
    reviewer_of,
    said,
    summary,
)
from evenhand.server.pages.tabs import Tab
from evenhand.server.pages.values import one_line
from evenhand.store import traces as store
from evenhand.store.annotations import create_annotation, get_annotation, list_annotations, to_dataset_item
from evenhand.store.connection import Connection
from evenhand.store.datasets import list_datasets
from evenhand.store.pages import has_more
from evenhand.store.project_summary import queue_counts
from evenhand.store.review_queues import list_queues
from evenhand.store.reviews import withheld_annotations

LISTING = "queue page"
PAGE_CARDS = 30
SKIP_COOKIE = b"evenhand_skipped"
MOST_SKIPPED = 50
"""What a browser remembers as skipped; the oldest of them is forgotten first."""
MOST_QUEUES = 100
MOST_ANNOTATIONS = 200
MOST_DATASETS = 200
WEEK = 7 * 24 * 3600
Show = Literal["all", "pending", "annotated", "mine"]
_STATUS: dict[Show, QueueStatus | None] = {
    "all": None,
    "pending": "pending",
    "annotated": "annotated",
    "mine": None,
}


class QueueQuery(ListQuery, frozen=True, kw_only=True):
    """Which part of the queue."""

    show: Show = "all"


class Card(Struct, frozen=True, kw_only=True):
    """A trace in the queue."""

    item: QueueItem
    question: str
    answer: str
    chat: bool
    age: str
    skipped: bool
    path: str


class QueuePage(PageContext, frozen=True, kw_only=True):
    """A page of the queue."""

    template: ClassVar[str] = "queue.html"
    section: ClassVar[str] = "queue"
    has_views: ClassVar[bool] = True

    queues: Sequence[tuple[ReviewQueue, str]]
    """Queues with forms of their own, each with its address."""
    new_queue: str
    """Where a lead makes another one."""
    cards: Sequence[Card]
    tabs: list[Tab]
    empty: bool
    """Nothing is in the queue at all."""
    start: str
    """The first one to review; empty when nothing waits."""
    next: str
    first: str

    def table(self) -> Grid:
        names = ("Trace", "Question", "Answer", "Status", "Reviews", "Queued at")
        return Grid(
            caption="Review queue, oldest first",
            columns=[Column(name=name) for name in names],
            rows=[Row(cells=_cells(card)) for card in self.cards],
        )


def _cells(card: Card) -> list[Cell]:
    item = card.item
    return [
        Cell(text=item.trace_id),
        Cell(text=card.question),
        Cell(text=card.answer),
        Cell(text=item.status),
        Cell(value=item.annotation_count),
        Cell(text=item.queued_at),
    ]


class PanelQuery(PageQuery, frozen=True, kw_only=True):
    """What was just said about it."""

    done: str = ""
    """The annotation that was just submitted."""


class PanelPage(PageContext, frozen=True, kw_only=True):
    """One trace to review."""

    template: ClassVar[str] = "queue_trace.html"
    section: ClassVar[str] = "queue"

    item: QueueItem
    age: str
    question: Text
    answer: Text
    labels: tuple[str, ...] = LABELS
    earlier: Sequence[Said]
    """What was said before."""
    summary: str
    """The same in one line, where it is more than two."""
    done: Said | None
    """What was just submitted."""
    save_path: str
    """Where that becomes a dataset item."""
    datasets: Sequence[Dataset]
    trouble: str
    """Why nothing was submitted."""
    path: str
    trace_path: str
    next: str
    """The address of the next one; the list when there is none."""
    previous: str
    waiting: int


async def queue(call: Call, query: QueueQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    here = here_of(call, query)
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    skipped = _skipped(call)

    def work(connection: Connection) -> QueuePage:
        counts = queue_counts(connection, project_id)
        status = _STATUS[query.show]
        annotator = person_of(call.access) if query.show == "mine" else None
        rows = store.list_queue(
            connection,
            project_id=project_id,
            status=status,
            after=start,
            limit=PAGE_CARDS + 1,
            annotator=annotator,
        )
        more = has_more(rows, PAGE_CARDS)
        shown = rows[:PAGE_CARDS]
        places = [(place, item) for place, item in shown if annotator or place not in skipped]
        if not more and annotator is None:
            places += store.queued_at_places(connection, skipped, project_id=project_id, status=status)
        first, _ = _around(connection, project_id, skipped, None)
        words = {"all": "All", "pending": "Pending", "annotated": "Annotated", "mine": "Mine"}
        numbers = {
            "all": counts.pending_count + counts.annotated_count,
            "pending": counts.pending_count,
            "annotated": counts.annotated_count,
        }
        return QueuePage(
            title="Review queue",
            here=here,
            queues=[
                (one, project_path(project_id, "queues", one.id))
                for one in list_queues(connection, project_id=project_id, before=None, limit=MOST_QUEUES)
            ],
            new_queue=project_path(project_id, "queues"),
            cards=[
                Card(
                    item=item,
                    question=one_line(item.root_span.input if item.root_span else None, 240),
                    answer=_line(answer_text(item.root_span.output if item.root_span else None)),
                    chat=question_text(item.root_span.input).chat if item.root_span else False,
                    age=age_of(item.queued_at, moment),
                    skipped=place in skipped,
                    path=project_path(project_id, "queue", item.trace_id),
                )
                for place, item in places
            ],
            tabs=[
                Tab(text, here(show=None if show == "all" else show), query.show == show, numbers.get(show))
                for show, text in words.items()
            ],
            empty=not numbers["all"],
            start=project_path(project_id, "queue", first) if first else "",
            next=here(cursor=make_cursor(LISTING, [shown[-1][0]])) if more else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query, search=query.show == "mine")


def _line(text: Text, length: int = 240) -> str:
    words = " ".join(text.first.split())
    return words if len(words) <= length else words[: length - 1] + "…"


def _around(
    connection: Connection, project_id: str, skipped: Sequence[str], place: str | None
) -> tuple[str, str]:
    """The trace to review after the one at `place` (the first without), and the one before it; skipped ones last."""

    def pending(after: str | None) -> list[tuple[str, QueueItem]]:
        return store.list_queue(
            connection, project_id=project_id, status="pending", after=after, limit=len(skipped) + 2
        )

    later = [item for at, item in pending(place) if at not in skipped]
    # At the end it starts again, and ends with what was skipped.
    again = [item for at, item in pending(None) if at != place and at not in skipped] if place else []
    put_off = store.queued_at_places(connection, skipped, project_id=project_id, status="pending")
    last = [item for at, item in put_off if at != place]
    following = [*later, *again, *last]
    before = store.queued_before(connection, project_id=project_id, place=place) if place else None
    return following[0].trace_id if following else "", before or ""


def _skipped(call: Call) -> list[str]:
    """The places of the queue that this browser has skipped, in the order it did so."""
    given = cookie_value(call.headers.get(b"cookie", b""), SKIP_COOKIE) or ""
    return [place for place in given.split(".") if place and len(place) <= 40][-MOST_SKIPPED:]


async def panel(call: Call, query: PanelQuery) -> Answer:
    return await _panel(call, query)


async def _panel(call: Call, query: PanelQuery, trouble: str = "") -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    moment = now()
    path = project_path(project_id, "queue", trace_id)

    def work(connection: Connection) -> PanelPage:
        place, item = store.queued_trace(connection, trace_id, project_id=project_id)
        root = item.root_span
        question = question_text(root.input if root else None)
        listed = list_annotations(
            connection,
            project_id=project_id,
            trace_id=trace_id,
            span_id=None,
            after=None,
            limit=MOST_ANNOTATIONS,
        )
        if not call.access.allows("read"):
            reviewer = reviewer_of(call.access)
            hidden = withheld_annotations(
                connection, trace_id, project_id=project_id, reviewer_id=reviewer.id
            )
            listed = [one for one in listed if one.id not in hidden]
        done = next((one for one in listed if one.id == query.done), None)
        earlier = [said(one, moment) for one in listed if done is None or one.id != done.id]
        following, before = _around(connection, project_id, _skipped(call), place)
        saves = done is not None and _may_save(call, done)
        return PanelPage(
            title="Review",
            here=here_of(call, query),
            crumbs=(Crumb("Review queue", project_path(project_id, "queue")),),
            item=item,
            age=age_of(item.queued_at, moment),
            question=question,
            answer=answer_text(root.output if root else None),
            earlier=earlier,
            summary=summary([one.label for one in earlier]) if len(earlier) > 2 else "",
            done=None if done is None else said(done, moment),
            save_path=f"{path}/annotations/{query.done}/item" if saves else "",
            datasets=list_datasets(connection, project_id=project_id, before=None, limit=MOST_DATASETS)
            if saves
            else (),
            trouble=trouble,
            path=path,
            trace_path=project_path(project_id, "traces", trace_id) if call.access.allows("read") else "",
            next=project_path(project_id, "queue", following)
            if following
            else project_path(project_id, "queue"),
            previous=project_path(project_id, "queue", before) if before else "",
            waiting=queue_counts(connection, project_id).pending_count,
        )

    answer = await respond(call, work, query)
    answer.status = 422 if trouble else answer.status
    return answer


class PanelForm(Struct, frozen=True, kw_only=True):
    """What a reviewer says."""

    label: str = ""
    """One of the suggestions."""
    own_label: str = ""
    """Another one; it wins."""
    correction: str = ""
    notes: str = ""


async def submit(call: Call, form: PanelForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    _, item = await call.read(
        lambda connection: store.queued_trace(connection, trace_id, project_id=project_id)
    )
    answered = answer_text(item.root_span.output if item.root_span else None).whole
    label = form.own_label.strip() or form.label.strip()
    correction = form.correction.strip()
    if correction == answered.strip():
        correction = ""  # what was filled in beforehand is nobody's correction
    notes = form.notes.strip()
    if not label and not correction and not notes:
        return await _panel(call, PanelQuery(), NOTHING_GIVEN)
    if len(label) > MAX_NAME:
        raise Refusal("INVALID_REQUEST", f"A label has at most {MAX_NAME} characters.", {"field": "label"})
    made = await call.service.database.write(
        partial(
            create_annotation,
            scope=project_id,
            project_id=project_id,
            trace_id=trace_id,
            span_id=None,
            annotator=person_of(call.access),
            label=label or None,
            correction=encode_text(correction) if correction else None,
            notes=notes or None,
        )
    )
    path = with_query(project_path(project_id, "queue", trace_id), {"done": made.id})
    return await redirect(call, path, "Review saved.")


async def skip(call: Call, form: PanelForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]

    def work(connection: Connection) -> tuple[str, str]:
        place, _ = store.queued_trace(connection, trace_id, project_id=project_id)
        kept = [*(one for one in _skipped(call) if one != place), place][-MOST_SKIPPED:]
        following, _ = _around(connection, project_id, kept, place)
        return ".".join(kept), following

    kept, following = await call.read(work)
    where = project_path(project_id, "queue")
    answer = await redirect(
        call,
        project_path(project_id, "queue", following) if following else where,
        "Skipped: it comes last here.",
    )
    cookie = SKIP_COOKIE + f"={kept}; HttpOnly; SameSite=Lax; Path={where}; Max-Age={WEEK}".encode()
    answer.headers.append((b"set-cookie", cookie))
    return answer


def _may_save(call: Call, annotation: Annotation) -> bool:
    """Whether it may become a dataset item: developers save anybody's, reviewers their own."""
    return call.access.allows("write") or annotation.annotator == person_of(call.access)


class SaveForm(Struct, frozen=True, kw_only=True):
    """Where the item goes."""

    dataset_id: str


async def save(call: Call, form: SaveForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    annotation_id = call.params["annotation_id"]

    def work(connection: Connection) -> DatasetItem:
        if not _may_save(call, get_annotation(connection, annotation_id, scope=project_id)):
            raise Refusal("FORBIDDEN", "This review is somebody else's.")
        return to_dataset_item(
            connection, annotation_id, form.dataset_id, scope=project_id, trace_id=trace_id
        )

    item = await call.service.database.write(work)
    names = await call.read(
        lambda connection: {
            one.id: one.name
            for one in list_datasets(connection, project_id=project_id, before=None, limit=MOST_DATASETS)
        }
    )
    path = with_query(project_path(project_id, "queue", trace_id), {"done": annotation_id})
    return await redirect(call, path, f"Saved to {names.get(item.dataset_id, 'the dataset')[:60]}.")


_QUEUE = "/projects/{project_id}/queue"
ROUTES = (
    page_route(_QUEUE, queue, role="review", query=QueueQuery, summary="The review queue"),
    page_route(f"{_QUEUE}/{{trace_id}}", panel, role="review", query=PanelQuery, summary="A trace to review"),
    form_route(
        f"{_QUEUE}/{{trace_id}}", submit, PanelForm, role="review", summary="Say what is right or wrong"
    ),
    form_route(f"{_QUEUE}/{{trace_id}}/skip", skip, PanelForm, role="review", summary="Put a trace off"),
    form_route(
        f"{_QUEUE}/{{trace_id}}/annotations/{{annotation_id}}/item",
        save,
        SaveForm,
        role="review",
        summary="Make a dataset item of a review",
    ),
)
