"""One trace: its tree and waterfall in one, the selected span with everything it carried, annotations, actions."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.annotations import Annotation
from evenhand.core.objects.datasets import Dataset
from evenhand.core.objects.scores import Score
from evenhand.core.objects.traces import Span, TraceRow
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.routes import decode_query
from evenhand.server.pages.frame import (
    Crumb,
    NoFields,
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
from evenhand.server.pages.links import Here, project_path, with_query
from evenhand.server.pages.span_tree import Tree, draw_up, time_range
from evenhand.server.pages.traces import TracesQuery, narrowed, with_models
from evenhand.server.pages.values import Form, Shown, readable, show_value
from evenhand.store import traces as store
from evenhand.store.annotations import create_annotation, list_annotations, to_dataset_item
from evenhand.store.connection import Connection
from evenhand.store.datasets import list_datasets
from evenhand.store.deleting import delete_trace
from evenhand.store.trace_tree import SpanRow, list_span_rows
from evenhand.store.writer import Work

LABELS = ("correct", "hallucination", "off-topic", "incomplete", "harmful", "other")
MOST_ANNOTATIONS = 200
MOST_DATASETS = 200


class TraceQuery(PageQuery, frozen=True, kw_only=True):
    """What is open on the page."""

    span: str = ""
    """The selected span; the root at first."""
    focus: str = ""
    """Only this span and those under it."""
    depth: int | None = None
    """Only so many levels."""
    errors: bool = False
    """Select the first span that failed."""
    input_as: Form = msgspec.field(default="", name="in")
    """The form of the input."""
    output_as: Form = msgspec.field(default="", name="out")
    """The form of the output."""
    full: Literal["", "input", "output"] = ""
    """Which of them is shown whole."""
    list: str = ""
    """The filters of the list that the page was opened from."""
    part: Literal["", "span"] = ""
    """Only the selected span, for scripts."""


class Said(Struct, frozen=True, kw_only=True):
    """An annotation as the page shows it."""

    annotation: Annotation
    initials: str
    age: str
    about: str
    """The span it is about, or the whole trace."""
    correction: str
    """As readable text; empty for none."""


class SpanPanel(Struct, frozen=True, kw_only=True):
    """The selected span."""

    span: Span
    row: SpanRow
    input: Shown
    output: Shown
    share: float | None
    """Its part of the whole time."""
    after_ms: float
    """How long after the trace's start it began."""
    tokens: int
    """With those under it."""
    cost: float | None
    """The same in dollars."""
    spans: int
    """Spans under it."""
    metadata: dict[str, object]
    scores: Sequence[Score]


class TracePage(PageContext, frozen=True, kw_only=True):
    """A trace."""

    template: ClassVar[str] = "trace.html"
    section: ClassVar[str] = "traces"

    query: TraceQuery
    trace: TraceRow
    age: str
    tree: Tree
    panel: SpanPanel | None
    """None for a trace whose spans are gone."""
    first_error: str
    """The first span that failed; empty for none."""
    said: Sequence[Said]
    datasets: Sequence[Dataset]
    previous: str
    """The address of the next newer trace in the list; empty for none."""
    next: str
    """That of the next older one."""
    path: str
    """The trace's own address."""
    select: str
    """The address of this page up to the id of a span, which is selected then."""
    focus: str
    """The same for a span that the tree is focused on."""


class SpanPart(TracePage, frozen=True, kw_only=True):
    """The selected span alone."""

    template: ClassVar[str] = "trace_span.html"


async def trace(call: Call, query: TraceQuery) -> Answer:
    ids = [call.params["trace_id"]]
    work = await open_trace(call, call.params["project_id"], ids, query, here_of(call, query))
    return await respond(call, work, query)


async def open_trace(
    call: Call, project_id: str, ids: Sequence[str], query: TraceQuery, here: Here
) -> Work[TracePage]:
    """What reads the page of a trace, in its project or behind a share link."""
    moment, [trace_id] = now(), ids
    kind = SpanPart if query.part == "span" else TracePage

    def work(connection: Connection) -> TracePage:
        return _read(connection, project_id, trace_id, query, here, moment, kind)

    return work


def _read(
    connection: Connection,
    project_id: str,
    trace_id: str,
    query: TraceQuery,
    here: Here,
    moment: datetime,
    kind: type[TracePage],
) -> TracePage:
    key, row = store.get_trace_row(connection, trace_id, scope=project_id, project_id=project_id)
    [row] = with_models(connection, [(key, row)])
    spans = list_span_rows(connection, key)
    first_error = next((span.id for span in spans if span.failed), "")
    wanted = query.span or (first_error if query.errors else "")
    by_id = {span.id: span for span in spans}
    if wanted and wanted not in by_id:
        raise Refusal("NOT_FOUND", f"There is no span '{wanted[:200]}' in this trace.")
    selected = wanted or row.root_span_id or (spans[0].id if spans else "")
    # The selected span alone needs no more than what is under it.
    focus, deepest = (selected, 0) if kind is SpanPart else (query.focus, query.depth)
    tree = draw_up(spans, focus=focus, deepest=deepest)
    path = project_path(project_id, "traces", trace_id)
    listed = list_annotations(
        connection,
        project_id=project_id,
        trace_id=trace_id,
        span_id=None,
        after=None,
        limit=MOST_ANNOTATIONS,
    )
    newer, older = _neighbours(connection, project_id, query.list, key, moment)
    in_list = {"list": query.list}
    return kind(
        title=row.name or "Trace",
        here=here,
        shared_as=("trace", trace_id),
        crumbs=(Crumb("Traces", _list_path(project_id, query.list)),),
        query=query,
        trace=row,
        age=age_of(row.created_at, moment),
        tree=tree,
        panel=_panel(connection, key, row, by_id[selected], spans, tree, query)
        if selected in by_id
        else None,
        first_error=first_error,
        said=[_said(one, by_id, moment) for one in listed],
        datasets=list_datasets(connection, project_id=project_id, before=None, limit=MOST_DATASETS),
        previous=with_query(project_path(project_id, "traces", newer), in_list) if newer else "",
        next=with_query(project_path(project_id, "traces", older), in_list) if older else "",
        path=path,
        select=_open_ended(here(span=None, full=None), "span"),
        focus=_open_ended(here(focus=None, depth=None), "focus"),
    )


def _open_ended(address: str, name: str) -> str:
    """`address` with a value to be appended; made once for thousands of rows."""
    return f"{address}{'&' if '?' in address else '?'}{name}="


def _list_path(project_id: str, listed: str) -> str:
    return with_query(project_path(project_id, "traces"), dict(parse_qsl(listed)))


def _neighbours(
    connection: Connection, project_id: str, listed: str, key: str, moment: datetime
) -> tuple[str | None, str | None]:
    """The traces before and after this one in the list that it was opened from."""
    try:
        asked = decode_query(listed.encode("ascii", "ignore"), TracesQuery)
        narrow = narrowed(asked, moment)
    except Refusal:
        narrow = store.TraceFilter()  # an address that somebody changed by hand: the whole list
    newer = store.newer_trace(connection, project_id=project_id, narrow=narrow, after=key)
    older = store.list_traces(connection, project_id=project_id, narrow=narrow, before=key, limit=1)
    return newer, older[0][1].id if older else None


def _panel(
    connection: Connection,
    key: str,
    row: TraceRow,
    selected: SpanRow,
    spans: Sequence[SpanRow],
    tree: Tree,
    query: TraceQuery,
) -> SpanPanel:
    span = store.get_span(connection, key, row.id, selected.id, root_id=row.root_span_id)
    summed = next((one for one in tree.rows if one.span.id == selected.id), None)
    if summed is None:  # not among the rows that are shown
        summed = draw_up(spans, focus=selected.id, deepest=0).rows[0]
    start, end = time_range(spans)
    whole = (end - start) / 1000
    return SpanPanel(
        span=span,
        row=selected,
        input=show_value(span.input, query.input_as, full=query.full == "input"),
        output=show_value(span.output, query.output_as, full=query.full == "output"),
        share=None if selected.duration_ms is None or not whole else min(1.0, selected.duration_ms / whole),
        after_ms=(selected.start_us - start) / 1000,
        tokens=summed.tokens,
        cost=summed.cost,
        spans=summed.spans,
        metadata=msgspec.json.decode(bytes(span.metadata)),
        scores=span.scores,
    )


def _said(annotation: Annotation, by_id: dict[str, SpanRow], moment: datetime) -> Said:
    words = annotation.annotator.split()
    span = by_id.get(annotation.span_id or "")
    return Said(
        annotation=annotation,
        initials="".join(word[0] for word in words[:2]).upper() or "?",
        age=age_of(annotation.created_at, moment),
        about="the whole trace" if annotation.span_id is None else span.name if span else annotation.span_id,
        correction="" if annotation.correction is None else readable(annotation.correction).text,
    )


async def download(call: Call) -> Answer:
    """What a span read or wrote, as the JSON that came in."""
    which = call.params["which"]
    if which not in ("input", "output"):
        raise Refusal("NOT_FOUND", "There is nothing at this address.")
    project_id, trace_id, span_id = (call.params[name] for name in ("project_id", "trace_id", "span_id"))

    def work(connection: Connection) -> bytes:
        key, row = store.get_trace_row(connection, trace_id, scope=call.scope, project_id=project_id)
        span = store.get_span(connection, key, trace_id, span_id, root_id=row.root_span_id)
        value = span.input if which == "input" else span.output
        return b"null" if value is None else bytes(value)

    body = await call.read(work)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in span_id)[:80]
    disposition = f'attachment; filename="{name}-{which}.json"'.encode()
    return Answer(
        200, body, content_type=b"application/json", headers=[(b"content-disposition", disposition)]
    )


class AnnotationForm(Struct, frozen=True, kw_only=True):
    """What somebody says about the trace or the selected span."""

    label: str = ""
    correction: str = ""
    notes: str = ""
    about: str = ""
    """The span; empty for the whole trace."""
    next: str = ""


async def annotate(call: Call, form: AnnotationForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    label, notes, correction = form.label.strip(), form.notes.strip(), form.correction
    if not label and not notes and not correction.strip():
        raise Refusal("EMPTY_ANNOTATION", "Please provide at least a label, correction, or notes.")
    await call.service.database.write(
        partial(
            create_annotation,
            scope=call.scope,
            project_id=project_id,
            trace_id=trace_id,
            span_id=form.about or None,
            annotator=person_of(call.access),
            label=label or None,
            correction=encode_text(correction) if correction.strip() else None,
            notes=notes or None,
        )
    )
    back = form.next or project_path(project_id, "traces", trace_id)
    return await redirect(call, f"{back}#annotations", "Annotation saved.")


class ItemForm(Struct, frozen=True, kw_only=True):
    """Where the item goes."""

    dataset_id: str
    next: str = ""


async def save_item(call: Call, form: ItemForm) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    annotation_id = call.params["annotation_id"]
    # Of this project, whatever project the annotation's id belongs to.
    await call.service.database.write(
        partial(
            to_dataset_item,
            annotation_id=annotation_id,
            dataset_id=form.dataset_id,
            scope=project_id,
            trace_id=trace_id,
        )
    )
    back = form.next or project_path(project_id, "traces", trace_id)
    return await redirect(call, back, "Saved as a dataset item: the dataset has a new version.")


async def delete(call: Call, form: NoFields) -> Answer:
    project_id, trace_id = call.params["project_id"], call.params["trace_id"]
    await call.service.database.write(
        partial(
            delete_trace,
            trace_id=trace_id,
            scope=call.scope,
            actor=call.access.token_id,
            project_id=project_id,
        )
    )
    return await redirect(call, project_path(project_id, "traces"), f"Trace {trace_id[:40]} deleted.")


_TRACE = "/projects/{project_id}/traces/{trace_id}"
ROUTES = (
    page_route(_TRACE, trace, query=TraceQuery, summary="A trace"),
    page_route(f"{_TRACE}/spans/{{span_id}}/{{which}}", download, summary="What a span read or wrote"),
    form_route(f"{_TRACE}/annotations", annotate, AnnotationForm, summary="Say something about a trace"),
    form_route(
        f"{_TRACE}/annotations/{{annotation_id}}/item",
        save_item,
        ItemForm,
        summary="Make a dataset item of an annotation",
    ),
    form_route(f"{_TRACE}/delete", delete, NoFields, summary="Delete a trace"),
)
