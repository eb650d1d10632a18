"""Annotations, and dataset items made of them."""

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.annotations import Annotation
from evenhand.core.objects.datasets import DatasetItem
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.datasets import ItemText, add_item
from evenhand.store.pages import as_cut, bounded_rows
from evenhand.store.projects import Scope, not_found
from evenhand.store.traces import find_trace, first_call, raw

_COLUMNS = "id, project_id, trace_id, span_id, annotator, label, correction, notes, created_at"


def create_annotation(
    connection: Connection,
    *,
    scope: Scope,
    project_id: str | None,
    trace_id: str,
    span_id: str | None,
    annotator: str,
    label: str | None,
    correction: str | None,
    notes: str | None,
) -> Annotation:
    """The trace must be there, and the span in it."""
    trace = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    if span_id is not None and not connection.one(
        "SELECT 1 FROM spans WHERE trace_key = ? AND id = ?", trace[0], span_id
    ):
        raise Refusal(
            "INVALID_ANNOTATION_SCOPE", "The span does not belong to the trace.", {"field": "span_id"}
        )
    row: Row = (
        new_id(),
        trace[2],
        trace_id,
        span_id,
        annotator,
        label,
        correction,
        notes,
        format_instant(now()),
    )
    connection.run(
        f"INSERT INTO annotations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        *row,
    )
    connection.run("UPDATE traces SET annotation_count = annotation_count + 1 WHERE trace_key = ?", trace[0])
    return _annotation(row)


def get_annotation(connection: Connection, annotation_id: str, *, scope: Scope) -> Annotation:
    row = connection.one(
        f"SELECT {_COLUMNS} FROM annotations WHERE id = ?",  # noqa: S608  constant columns
        annotation_id,
    )
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("annotation", annotation_id)
    return _annotation(row)


def list_annotations(
    connection: Connection,
    *,
    project_id: str,
    trace_id: str,
    span_id: str | None,
    after: str | None,
    limit: int,
) -> list[Annotation]:
    """In the order they were made; with `span_id`, only those about that span."""
    rows = bounded_rows(
        connection,
        _COLUMNS,
        ("correction", "notes", "label"),
        # As `oldest_first`, of an owner with two columns.
        "FROM annotations WHERE (? = 0 OR span_id = ?)"
        " AND (trace_id, project_id, id) > (?, ?, ?) AND (trace_id, project_id) <= (?, ?)"
        " ORDER BY trace_id, project_id, id",
        [int(span_id is not None), span_id or "", trace_id, project_id, after or "", trace_id, project_id],
        limit,
    )
    return as_cut(rows, [_annotation(row) for row in rows])


def project_of_annotations(connection: Connection, trace_id: str) -> str | None:
    """The project whose annotations a trace's id means to one who sees all: the trace's, else the newest's."""
    found = connection.all(
        "SELECT trace_key, project_id FROM traces WHERE id = ?", trace_id
    ) or connection.all(
        # COALESCE: an order of projects must not tempt anyone to read all annotations.
        "SELECT MAX(id), COALESCE(project_id, '') FROM annotations WHERE trace_id = ?"
        " GROUP BY COALESCE(project_id, '')",
        trace_id,
    )
    return str(max(found)[1]) if found else None


def to_dataset_item(
    connection: Connection, annotation_id: str, dataset_id: str, *, scope: Scope, trace_id: str | None = None
) -> DatasetItem:
    """A new item: the root span's input, and the correction as what is expected. With `trace_id` the annotation must be
    one of that trace."""
    annotation = get_annotation(connection, annotation_id, scope=scope)
    if trace_id is not None and annotation.trace_id != trace_id:
        raise not_found("annotation", annotation_id)
    trace = find_trace(
        connection, annotation.trace_id, scope=annotation.project_id, project_id=annotation.project_id
    )
    root = connection.one(
        "SELECT input, output FROM spans WHERE trace_key = ? AND id = ?", trace[0], trace[3] or ""
    )
    if root == (None, None):
        # What is shown for a root without texts.
        call = first_call(connection, trace[0])
        root = root if call is None else call[1:]
    if root is None:
        raise Refusal("NO_ROOT_SPAN", "The trace has no root span yet.", {"trace_id": annotation.trace_id})
    if root[0] is None or root[0] == "null":
        raise Refusal(
            "INVALID_REQUEST",
            "The root span has no input, and an item needs one.",
            {"trace_id": annotation.trace_id},
        )
    source = {
        "source_trace_id": annotation.trace_id,
        "source_annotation_id": annotation.id,
        "annotator": annotation.annotator,
    }
    correction = None if annotation.correction is None else bytes(annotation.correction).decode()
    item = ItemText(input=root[0], expected_output=correction, metadata=encode_text(source))
    return add_item(connection, dataset_id, item, scope=annotation.project_id)


def _annotation(row: Row) -> Annotation:
    return Annotation(
        id=row[0],
        project_id=row[1],
        trace_id=row[2],
        span_id=row[3],
        annotator=row[4],
        label=row[5],
        correction=raw(row[6]),
        notes=row[7],
        created_at=row[8],
    )
