"""Annotations: what people say about traces, and dataset items made of it."""

from functools import partial

from msgspec import Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.annotations import Annotation
from evenhand.core.objects.datasets import DatasetItem
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, Text, json_text, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.store import annotations as store
from evenhand.store.connection import Connection

LISTING = "annotations"


class AnnotationCreate(Struct, frozen=True, kw_only=True):
    """What a person says."""

    trace_id: str
    """The trace it is about."""
    annotator: str
    """Who says it; not empty."""
    span_id: str | None = None
    """The span it is about; absent for the whole trace."""
    label: Text | None = None
    """A short verdict; not empty."""
    correction: Raw = field(default_factory=Raw)
    """What the output should have been: any JSON."""
    notes: Text | None = None
    """Anything else."""
    project_id: str | None = None
    """Needed only where a token for all projects meets a trace's id twice."""


class AnnotationQuery(Paging, frozen=True, kw_only=True):
    """Whose annotations."""

    trace_id: str | None = None
    """The trace; required."""
    span_id: str | None = None
    """Only those about this span."""
    project_id: str | None = None
    """Needed only where a token for all projects meets a trace's id twice."""


class ToDatasetItem(Struct, frozen=True, kw_only=True):
    """Where the item goes."""

    dataset_id: Name
    """The dataset."""


async def create(call: Call, body: AnnotationCreate) -> Answer:
    annotator = trimmed(body.annotator, "annotator")
    if len(annotator) > 500:
        raise Refusal("INVALID_REQUEST", "'annotator' has at most 500 characters.", {"field": "annotator"})
    label = None if body.label is None else trimmed(body.label, "label")
    correction = json_text(body.correction, "correction")
    if label is None and correction is None and not body.notes:
        raise Refusal("EMPTY_ANNOTATION", "Please provide at least a label, correction, or notes.")
    return await call.write(
        partial(
            store.create_annotation,
            scope=call.scope,
            project_id=body.project_id,
            trace_id=body.trace_id,
            span_id=body.span_id,
            annotator=annotator,
            label=label,
            correction=correction,
            notes=body.notes,
        )
    )


async def get(call: Call) -> Answer:
    annotation_id = call.params["annotation_id"]
    return json_answer(
        await call.read(lambda connection: store.get_annotation(connection, annotation_id, scope=call.scope))
    )


async def list_all(call: Call, query: AnnotationQuery) -> Answer:
    trace_id = query.trace_id
    if not trace_id:
        raise Refusal("INVALID_REQUEST", "Say which trace: ?trace_id=…", {"field": "trace_id"})
    limit, after = query.checked_limit(), query.after(LISTING)

    def work(connection: Connection) -> list[Annotation]:
        project_id = query.project_id if call.scope is None else call.scope
        project_id = project_id or store.project_of_annotations(connection, trace_id)
        if project_id is None:
            return []
        return store.list_annotations(
            connection,
            project_id=project_id,
            trace_id=trace_id,
            span_id=query.span_id,
            after=after[0] if after else None,
            limit=limit + 1,
        )

    rows = await call.read(work)
    return json_answer(page_of(rows, limit, LISTING, lambda annotation: (annotation.id,)))


async def to_dataset_item(call: Call, body: ToDatasetItem) -> Answer:
    annotation_id = call.params["annotation_id"]
    return await call.write(
        partial(
            store.to_dataset_item,
            annotation_id=annotation_id,
            dataset_id=body.dataset_id,
            scope=call.scope,
        )
    )


ROUTES = (
    Route(
        operation="create_annotation",
        method="POST",
        path="/v1/annotations",
        handler=create,
        audience="token:write",
        request=AnnotationCreate,
        response=Annotation,
        status=201,
        errors=("NOT_FOUND", "EMPTY_ANNOTATION", "INVALID_ANNOTATION_SCOPE"),
        summary="Say something about a trace or a span",
        tag="Annotations",
    ),
    Route(
        operation="list_annotations",
        method="GET",
        path="/v1/annotations",
        handler=list_all,
        audience="token:read",
        query=AnnotationQuery,
        response=Page[Annotation],
        summary="List a trace's annotations in the order they were made",
        tag="Annotations",
    ),
    Route(
        operation="get_annotation",
        method="GET",
        path="/v1/annotations/{annotation_id}",
        handler=get,
        audience="token:read",
        response=Annotation,
        errors=("NOT_FOUND",),
        summary="Read an annotation",
        tag="Annotations",
    ),
    Route(
        operation="create_dataset_item_from_annotation",
        method="POST",
        path="/v1/annotations/{annotation_id}/to-dataset-item",
        handler=to_dataset_item,
        audience="token:write",
        request=ToDatasetItem,
        response=DatasetItem,
        status=201,
        errors=("NOT_FOUND", "NO_ROOT_SPAN"),
        summary="Make a dataset item of a trace and its correction",
        tag="Annotations",
    ),
)
