"""Spans on their way in: checked against what is stored, then written in bulk, all in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.spans import SpanRecord, cycle_members, instant
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Value
from evenhand.store.jobs import add_jobs
from evenhand.store.scoring_rules import jobs_for

_SPAN_COLUMNS = (
    "trace_key", "project_id", "id", "parent_span_id", "name", "start_us", "end_us", "duration_ms", "input", "output",
    "tokens_input", "tokens_output", "model", "metadata", "error", "clock_skew", "received_at",
)  # fmt: skip
_TRACE_COLUMNS = (
    "trace_key", "project_id", "id", "created_at", "root_span_id", "root_name", "root_duration_ms", "metadata",
    "facets", "models", "span_count", "error_count", "tokens", "annotation_count",
)  # fmt: skip
_UPDATE_TRACE = """UPDATE traces SET root_span_id = ?, root_name = ?, root_duration_ms = ?, metadata = ?, facets = ?,
    models = ?, span_count = span_count + ?, error_count = error_count + ?, tokens = tokens + ? WHERE trace_key = ?"""

_ENCODER = msgspec.json.Encoder()


class Stored(NamedTuple):
    """What the checks need to know of a trace that is there already."""

    key: str
    root_span_id: str | None
    root_name: str | None
    root_duration_ms: float | None
    metadata: str
    facets: str
    models: str


class Fault(NamedTuple):
    """Why one span cannot be stored."""

    code: str
    span: SpanRecord
    reason: str


class Ingested(NamedTuple):
    """What became of a batch."""

    keys: dict[str, str]
    """Trace id to trace key, for every trace that was touched."""
    faults: list[Fault]
    """The spans that were left out (only when leaving out is allowed)."""
    job_count: int
    """How many scores the project's rules asked for."""


class Arriving(NamedTuple):
    """The new spans of one trace."""

    spans: list[SpanRecord]
    """In the order they came."""
    parents: dict[str, str | None]
    """Span id to parent's id."""


class Checked(NamedTuple):
    """A batch that may be written: nothing was changed yet."""

    fresh: Sequence[SpanRecord]
    """The spans that are new."""
    by_trace: dict[str, Arriving]
    """The same, by trace id."""
    traces: dict[str, Stored]
    """Those of their traces that are there already."""
    faults: list[Fault]
    """The spans that are left out (only when leaving out is allowed)."""


def check(connection: Connection, project_id: str, spans: Sequence[SpanRecord], *, resend: bool) -> Checked:
    """Look at a batch beside what is stored. Strictly, one bad span refuses all of them; with `resend` (OTLP) a span
    that is there already is passed over, spans in a cycle are left out, and several roots are allowed.

    Whole traces are looked at first, and single spans only where something is wrong."""
    by_trace = _by_trace(spans)
    traces = _stored_traces(connection, project_id, by_trace)
    fresh, repeated = _split_repeated(connection, traces, by_trace, spans)
    if repeated:
        by_trace = _by_trace(fresh)
    cyclic = _cyclic(connection, traces, by_trace)
    faults = [
        Fault("CIRCULAR_SPAN_REFERENCE", span, "the span is its own ancestor")
        for span in (fresh if cyclic else ())
        if (span.trace_id, span.id) in cyclic
    ]
    if not resend:
        faults += _second_roots(traces, by_trace, fresh)
        faults += _foreign_parents(connection, project_id, by_trace, fresh)
        faults += [Fault("DUPLICATE_SPAN", span, "the trace has a span with this id") for span in repeated]
        if faults:
            raise refusal(faults, spans)
    elif cyclic:
        fresh = [span for span in fresh if (span.trace_id, span.id) not in cyclic]
        by_trace = _by_trace(fresh)
    return Checked(fresh, by_trace, traces, faults)


def write(connection: Connection, project_id: str, checked: Checked) -> Ingested:
    """Store a batch in the transaction that checked it."""
    keys = _write(connection, project_id, checked.traces, checked.by_trace)
    jobs = add_jobs(connection, jobs_for(connection, project_id, checked.fresh, keys))
    return Ingested(keys, checked.faults, len(jobs))


def _by_trace(spans: Sequence[SpanRecord]) -> dict[str, Arriving]:
    groups: dict[str, list[SpanRecord]] = defaultdict(list)
    for span in spans:
        groups[span.trace_id].append(span)
    return {
        trace_id: Arriving(some, {span.id: span.parent_span_id for span in some})
        for trace_id, some in groups.items()
    }


def refusal(faults: Sequence[Fault], spans: Sequence[SpanRecord]) -> Refusal:
    """The error that names every bad span; the first kind of fault gives the code."""
    code = faults[0].code
    position = {id(span): index for index, span in enumerate(spans)}
    named = [
        {
            "index": position[id(fault.span)],
            "id": fault.span.id,
            "trace_id": fault.span.trace_id,
            "code": fault.code,
            "reason": fault.reason,
        }
        for fault in faults
    ]
    first = faults[0]
    return Refusal(code, f"span '{first.span.id}': {first.reason}", {"spans": named})


def _stored_traces(connection: Connection, project_id: str, ids: Iterable[str]) -> dict[str, Stored]:
    rows = connection.all(
        "SELECT id, trace_key, root_span_id, root_name, root_duration_ms, metadata, facets, models FROM traces "
        "WHERE project_id = ? AND id IN [?]",
        project_id,
        list(ids),
    )
    return {row[0]: Stored(*row[1:]) for row in rows}


def _split_repeated(
    connection: Connection,
    traces: dict[str, Stored],
    by_trace: dict[str, Arriving],
    spans: Sequence[SpanRecord],
) -> tuple[Sequence[SpanRecord], list[SpanRecord]]:
    """The spans that are new, and those that are stored already or come twice in the batch."""
    seen: set[tuple[str, str]] = set()
    if traces:
        by_key = {stored.key: trace_id for trace_id, stored in traces.items()}
        rows = connection.all(
            "SELECT trace_key, id FROM spans WHERE trace_key IN [?] AND id IN [?]",
            list(by_key),
            [span_id for trace_id in traces for span_id in by_trace[trace_id].parents],
        )
        seen = {(by_key[key], span_id) for key, span_id in rows}
    if not seen and sum(len(arriving.parents) for arriving in by_trace.values()) == len(spans):
        return spans, []
    fresh: list[SpanRecord] = []
    repeated: list[SpanRecord] = []
    for span in spans:
        name = (span.trace_id, span.id)
        (repeated if name in seen else fresh).append(span)
        seen.add(name)
    return fresh, repeated


def _cyclic(
    connection: Connection, traces: dict[str, Stored], by_trace: dict[str, Arriving]
) -> set[tuple[str, str]]:
    """The new spans that are their own ancestors, what is stored included."""
    chains = {trace_id: arriving.parents for trace_id, arriving in by_trace.items()}
    _add_stored_parents(connection, traces, chains)
    return {(trace_id, span_id) for trace_id, parents in chains.items() for span_id in cycle_members(parents)}


def _add_stored_parents(
    connection: Connection, traces: dict[str, Stored], chains: dict[str, dict[str, str | None]]
) -> None:
    # A stored span can only take part in a new cycle when a parent that it was waiting for arrives.
    touched = {traces[trace_id].key: trace_id for trace_id in chains if trace_id in traces}
    if not touched:
        return
    new_ids = [span_id for trace_id in touched.values() for span_id in chains[trace_id]]
    waiting = connection.all(
        "SELECT DISTINCT trace_key FROM spans WHERE trace_key IN [?] AND parent_span_id IN [?]",
        list(touched),
        new_ids,
    )
    if not waiting:
        return
    rows = connection.all(
        "SELECT trace_key, id, parent_span_id FROM spans WHERE trace_key IN [?]", [row[0] for row in waiting]
    )
    for key in {row[0] for row in rows}:
        chains[touched[key]] = dict(chains[touched[key]])  # what arrives is looked at again without these
    for key, span_id, parent in rows:
        chains[touched[key]].setdefault(span_id, parent)


def _second_roots(
    traces: dict[str, Stored], by_trace: dict[str, Arriving], fresh: Sequence[SpanRecord]
) -> list[Fault]:
    roots = {trace_id: stored.root_span_id for trace_id, stored in traces.items() if stored.root_span_id}
    if all(
        list(arriving.parents.values()).count(None) + (trace_id in roots) <= 1
        for trace_id, arriving in by_trace.items()
    ):
        return []
    faults = []
    for span in fresh:
        if span.parent_span_id is None:
            first = roots.setdefault(span.trace_id, span.id)
            if first != span.id:
                faults.append(
                    Fault(
                        "INVALID_SPAN",
                        span,
                        f"the trace has a root already ('{first}'): parent_span_id is missing",
                    )
                )
    return faults


def _foreign_parents(
    connection: Connection, project_id: str, by_trace: dict[str, Arriving], fresh: Sequence[SpanRecord]
) -> list[Fault]:
    """Spans whose parent is known, but only in other traces."""
    outside: set[str | None] = set()
    for arriving in by_trace.values():
        outside |= set(arriving.parents.values()) - arriving.parents.keys()
    outside.discard(None)
    if not outside:
        return []
    homes: dict[str | None, set[str]] = defaultdict(set)
    for span in fresh:
        homes[span.id].add(span.trace_id)
    rows = connection.all(
        "SELECT s.id, t.id FROM spans s JOIN traces t ON t.trace_key = s.trace_key "
        "WHERE s.project_id = ? AND s.id IN [?]",
        project_id,
        [span_id for span_id in outside if span_id is not None],
    )
    for span_id, trace_id in rows:
        homes[span_id].add(trace_id)
    return [
        Fault("INVALID_SPAN_PARENT", span, f"its parent '{span.parent_span_id}' belongs to another trace")
        for span in fresh
        if span.parent_span_id in outside
        and homes[span.parent_span_id]
        and span.trace_id not in homes[span.parent_span_id]
    ]


def _write(
    connection: Connection, project_id: str, traces: dict[str, Stored], by_trace: dict[str, Arriving]
) -> dict[str, str]:
    keys: dict[str, str] = {}
    new: list[tuple[Value, ...]] = []
    known: list[tuple[Value, ...]] = []
    rows: list[tuple[Value, ...]] = []
    received_at = format_instant(now())
    for trace_id, (spans, _) in by_trace.items():
        stored = traces.get(trace_id)
        after, counts = _counted_in(stored, spans)
        key = keys[trace_id] = after.key
        if stored is None:
            new.append((key, project_id, trace_id, created_at_of(key), *after[1:], *counts, 0))
        else:
            known.append((*after[1:], *counts, key))
        rows += [
            (
                key, project_id, s.id, s.parent_span_id, s.name, s.start_us, s.end_us, s.duration_ms, s.input, s.output,
                s.tokens_input, s.tokens_output, s.model, s.metadata, s.error, int(s.clock_skew), received_at,
            )
            for s in spans
        ]  # fmt: skip
    if new:
        connection.insert_many("traces", _TRACE_COLUMNS, new)
    if known:
        connection.run_many(_UPDATE_TRACE, known)
    connection.insert_many("spans", _SPAN_COLUMNS, rows)
    return keys


def _counted_in(stored: Stored | None, spans: Sequence[SpanRecord]) -> tuple[Stored, tuple[int, int, int]]:
    """The trace with its new spans, and how many spans, errors and tokens they add."""
    root: SpanRecord | None = None
    errors = tokens = 0
    models: dict[str, None] = {}
    for span in spans:
        if root is None and span.parent_span_id is None:
            root = span
        if span.error is not None:
            errors += 1
        tokens += (span.tokens_input or 0) + (span.tokens_output or 0)
        if span.model is not None:
            models[span.model] = None
    key = new_id() if stored is None else stored.key
    lines = _with_models("" if stored is None else stored.models, models)
    facts: tuple[str | None, str | None, float | None, str, str] = (None, None, None, "{}", "")
    if root is not None and (stored is None or stored.root_span_id is None):
        facts = (root.id, root.name, root.duration_ms, root.metadata, facet_lines(root.metadata))
    elif stored is not None:
        facts = stored[1:6]
    return Stored(key, *facts, lines), (len(spans), errors, tokens)


def created_at_of(key: str) -> str:
    """The instant in the first 48 bits of a key, so that limits of time are limits of keys."""
    return _millisecond(key[:8] + key[9:13])


@lru_cache(maxsize=16)
def _millisecond(digits: str) -> str:
    return format_instant(instant(int(digits, 16) * 1000))  # the traces of one batch mostly share theirs


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
    return _ENCODER.encode(model).decode()


def _with_models(lines: str, models: Iterable[str]) -> str:
    for model in models:
        line = model_line(model)
        if f"\n{line}\n" not in lines:
            lines = f"{lines or chr(10)}{line}\n"
    return lines
