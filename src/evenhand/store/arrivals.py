"""A batch of spans on its way to the writer: all that can be known without the database is worked out here.

There is one writing thread, and it shares the interpreter with all requests. What is done before it sees a batch is
time that the others do not wait (docs/decisions/0130-little-is-left-to-the-writer.md).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from evenhand.core.spans import SpanRecord, cycle_members
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Value

SPAN_COLUMNS = ("trace_key", *SpanRecord.__struct_fields__[1:])
"""As the fields of a record, but with the trace's key in the place of its id."""
_ENCODER = msgspec.json.Encoder()


class Facts(NamedTuple):
    """What a trace's row says of its root."""

    root_span_id: str | None = None
    root_name: str | None = None
    root_duration_ms: float | None = None
    metadata: str = "{}"
    facets: str = ""


class Arriving(NamedTuple):
    """The spans of one trace."""

    spans: list[SpanRecord]
    """In the order they came."""
    parents: dict[str, str | None]
    """Span id to parent's id."""
    outside: set[str | None]
    """The parents that are not among them."""
    root_count: int
    """How many have no parent."""
    facts: Facts | None
    """Of the first root, if there is one."""
    models: dict[str, None]
    """The models that they name, in order."""
    counts: tuple[int, int, int]
    """How many spans, errors and tokens they are."""


class Batch(NamedTuple):
    """Spans of one request, grouped by trace."""

    project_id: str
    """Where they belong."""
    spans: Sequence[SpanRecord]
    """In the order they came."""
    by_trace: dict[str, Arriving]
    """The same, by trace id."""
    cyclic: set[tuple[str, str]]
    """Trace id and id of the spans that are their own ancestors, as far as the batch can tell."""
    values: list[Value]
    """What goes into the columns of all rows, trace by trace; the trace's own id stands where its key will be."""
    received_at: str
    """When they came."""


def prepare(project_id: str, spans: Sequence[SpanRecord]) -> Batch:
    """Make a batch ready for the writer."""
    groups: dict[str, list[SpanRecord]] = defaultdict(list)
    for span in spans:
        groups[span.trace_id].append(span)
    values: list[Value] = []
    by_trace = {trace_id: _arriving(some, values) for trace_id, some in groups.items()}
    cyclic = {
        (trace_id, span_id)
        for trace_id, arriving in by_trace.items()
        for span_id in cycle_members(arriving.parents)
    }
    return Batch(project_id, spans, by_trace, cyclic, values, format_instant(now()))


def _arriving(spans: list[SpanRecord], values: list[Value]) -> Arriving:
    root: SpanRecord | None = None
    errors = tokens = 0
    parents: dict[str, str | None] = {}
    models: dict[str, None] = {}
    for span in spans:
        parent = parents[span.id] = span.parent_span_id
        if parent is None and root is None:
            root = span
        if span.error is not None:
            errors += 1
        tokens += (span.tokens_input or 0) + (span.tokens_output or 0)
        if span.model is not None:
            models[span.model] = None
        values += astuple(span)
    outside = set(parents.values()) - parents.keys()
    outside.discard(None)
    return Arriving(
        spans,
        parents,
        outside,
        list(parents.values()).count(None),
        None if root is None else _facts(root),
        models,
        (len(spans), errors, tokens),
    )


def _facts(root: SpanRecord) -> Facts:
    return Facts(root.id, root.name, root.duration_ms, root.metadata, facet_lines(root.metadata))


def facet_lines(metadata: str) -> str:
    """One line per entry, so that a filter is a search for a line."""
    if metadata == "{}":
        return ""
    entries = msgspec.json.decode(metadata)
    return (
        "\n" + _ENCODER.encode_lines([(name, facet_text(value)) for name, value in entries.items()]).decode()
    )


def facet_text(value: object) -> str:
    """A metadata value as a query string spells it."""
    return value if isinstance(value, str) else _ENCODER.encode(value).decode()


def facet_line(name: str, text: str) -> str:
    """JSON escapes line breaks, so a line cannot hold another."""
    return _ENCODER.encode((name, text)).decode()


def model_line(model: str) -> str:
    """The same for a model."""
    return _ENCODER.encode(model).decode()


def with_models(lines: str, models: Iterable[str]) -> str:
    """The lines of a trace's models with those that are new."""
    for model in models:
        line = model_line(model)
        if f"\n{line}\n" not in lines:
            lines = f"{lines or chr(10)}{line}\n"
    return lines
