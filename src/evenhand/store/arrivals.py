"""Prepares a batch of spans for the writer: everything that can be computed without the database.

There is one writing thread, and it shares the interpreter with all requests. Work that is done before it gets a batch
does not delay other writes (docs/decisions/0130-little-is-left-to-the-writer.md).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from evenhand.core.spans import SpanRecord, cycle_members
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Value
from evenhand.store.trace_marks import marks_of

SPAN_COLUMNS = ("trace_key", *SpanRecord.__struct_fields__[1:])
"""The fields of a record, with the trace's key in place of its id."""
_ENCODER = msgspec.json.Encoder()


class RootFields(NamedTuple):
    """The columns of a trace's row that come from its root span."""

    root_span_id: str | None = None
    root_name: str | None = None
    root_duration_ms: float | None = None
    metadata: str = "{}"
    facets: str = ""


class TraceSpans(NamedTuple):
    """The spans of one trace."""

    spans: list[SpanRecord]
    """In order of arrival."""
    parents: dict[str, str | None]
    """Span id to parent's id."""
    missing_parents: set[str | None]
    """Parents that are not in this batch."""
    root_count: int
    """How many spans have no parent."""
    root: RootFields | None
    """From the first root, if there is one."""
    models: dict[str, None]
    """The models of the spans, in order; the values are unused."""
    counts: tuple[int, int, int]
    """Numbers of spans, errors and tokens."""
    session_id: str | None
    """The root's session, else the first that is named."""
    user_id: str | None
    """The root's user, else the first that is named."""
    root_names: tuple[bool, bool]
    """Whether the root names session and user: then they hold, whatever other spans said before."""
    cost_pico: int | None
    """The sum of the known costs; None when none is."""
    calls: tuple[int, int]
    """How many model calls have a known cost, and how many do not."""
    marks: set[int]
    """What filters find the trace by."""
    started_us: int
    """The least start of the spans."""


class Batch(NamedTuple):
    """Spans of one request, grouped by trace."""

    project_id: str
    """The project of all spans."""
    spans: Sequence[SpanRecord]
    """In the order they came."""
    by_trace: dict[str, TraceSpans]
    """The spans by trace id."""
    cyclic: set[tuple[str, str]]
    """Trace id and span id of spans that are their own ancestors within the batch."""
    values: list[Value]
    """The column values of all rows, trace by trace, with the trace's id in place of its key."""
    received_at: str
    """The time of arrival."""


def prepare(project_id: str, spans: Sequence[SpanRecord]) -> Batch:
    """Make a batch ready for the writer."""
    groups: dict[str, list[SpanRecord]] = defaultdict(list)
    for span in spans:
        groups[span.trace_id].append(span)
    values: list[Value] = []
    by_trace = {trace_id: _trace_spans(some, values) for trace_id, some in groups.items()}
    cyclic = {
        (trace_id, span_id)
        for trace_id, arriving in by_trace.items()
        for span_id in cycle_members(arriving.parents)
    }
    return Batch(project_id, spans, by_trace, cyclic, values, format_instant(now()))


def _trace_spans(spans: list[SpanRecord], values: list[Value]) -> TraceSpans:
    root: SpanRecord | None = None
    errors = tokens = known = unknown = 0
    cost: int | None = None
    session_id = user_id = None
    parents: dict[str, str | None] = {}
    models: dict[str, None] = {}
    for span in spans:
        parent = parents[span.id] = span.parent_span_id
        if parent is None and root is None:
            root = span
        if span.error is not None:
            errors += 1
        if span.model is not None:
            models[span.model] = None
        session_id = session_id or span.session_id
        user_id = user_id or span.user_id
        if span.is_call:
            tokens += (span.tokens_input or 0) + (span.tokens_output or 0)
            if span.cost_pico is None:
                unknown += 1
            else:
                known += 1
                cost = (cost or 0) + span.cost_pico
        values += astuple(span)
    missing_parents = set(parents.values()) - parents.keys()
    missing_parents.discard(None)
    facts = None if root is None else _facts(root)
    named = facts or RootFields()
    marks = marks_of(named.root_name, named.root_duration_ms, named.facets, map(model_line, models))
    return TraceSpans(
        spans,
        parents,
        missing_parents,
        list(parents.values()).count(None),
        facts,
        models,
        (len(spans), errors, tokens),
        session_id if root is None else root.session_id or session_id,
        user_id if root is None else root.user_id or user_id,
        (root is not None and root.session_id is not None, root is not None and root.user_id is not None),
        cost,
        (known, unknown),
        marks,
        min([span.start_us for span in spans]),
    )


def _facts(root: SpanRecord) -> RootFields:
    return RootFields(root.id, root.name, root.duration_ms, root.metadata, facet_lines(root.metadata))


def facet_lines(metadata: str) -> str:
    """Metadata as one line per entry, so that a filter can search for a line."""
    if metadata == "{}":
        return ""
    entries = msgspec.json.decode(metadata)
    return (
        "\n" + _ENCODER.encode_lines([(name, facet_text(value)) for name, value in entries.items()]).decode()
    )


def facet_text(value: object) -> str:
    """A metadata value as it is written in a query string."""
    return value if isinstance(value, str) else _ENCODER.encode(value).decode()


def facet_line(name: str, text: str) -> str:
    """The line of one entry; JSON escapes line breaks, so a line cannot contain another."""
    return _ENCODER.encode((name, text)).decode()


def model_line(model: str) -> str:
    """The line of a model."""
    return _ENCODER.encode(model).decode()


def with_models(lines: str, models: Iterable[str]) -> str:
    """The lines of a trace's models, with new ones added."""
    for model in models:
        line = model_line(model)
        if f"\n{line}\n" not in lines:
            lines = f"{lines or chr(10)}{line}\n"
    return lines
