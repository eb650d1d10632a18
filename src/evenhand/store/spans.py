"""Spans on their way in: checked against what is stored, then written in bulk, all in one transaction."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.jobs import Rule
from evenhand.core.spans import MOST_PICO, SpanRecord, cycle_members, instant
from evenhand.core.timestamps import format_instant
from evenhand.store.arrivals import SPAN_COLUMNS, Batch, RootFields, TraceSpans, prepare, with_models
from evenhand.store.connection import Connection, Value
from evenhand.store.jobs import add_jobs
from evenhand.store.projects import being_deleted
from evenhand.store.scoring_rules import ask_rules, jobs_for
from evenhand.store.session_rows import forget_empty
from evenhand.store.span_blocks import ask_block, count_in_block, recent_homes
from evenhand.store.texts import ask_waiting, join_waiting
from evenhand.store.trace_marks import INSERT as INSERT_MARK
from evenhand.store.trace_marks import LENGTH
from evenhand.store.trace_totals import TraceTotals, add_totals, cost_parts

_TRACE_COLUMNS = (
    "trace_key", "id", "created_at", "root_span_id", "root_name", "root_duration_ms", "metadata", "facets", "models",
    "span_count", "error_count", "tokens", "session_id", "user_id", "cost_pico", "cost_known", "cost_unknown",
    "started_us",
)  # fmt: skip
_UPDATE_TRACE = """UPDATE traces SET root_span_id = ?, root_name = ?, root_duration_ms = ?, metadata = ?, facets = ?,
    models = ?, span_count = span_count + ?, error_count = error_count + ?, tokens = tokens + ?,
    session_id = ?, user_id = ?, cost_pico = ?, cost_known = cost_known + ?, cost_unknown = cost_unknown + ?,
    started_us = ?
    WHERE trace_key = ?"""


class Stored(NamedTuple):
    """What the checks need to know of a trace that is there already."""

    key: str
    facts: RootFields
    models: str
    session_id: str | None
    user_id: str | None
    cost_pico: int | None
    error_count: int
    started_us: int


class Known(NamedTuple):
    """What is stored beside a batch."""

    project: bool
    """Whether its project is there."""
    rules: list[Rule]
    """The project's rules of online scoring."""
    waiting: set[str]
    """Those of its traces that log records brought texts for."""
    traces: dict[str, Stored]
    """Those of its traces that are there already, by id."""
    block: int
    """The block that its spans go to."""


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


class Checked(NamedTuple):
    """A batch that may be written: nothing was changed yet."""

    fresh: Batch
    """The spans that are new."""
    known: Known
    """What is stored beside them."""
    faults: list[Fault]
    """The spans that are left out (only when leaving out is allowed)."""


def look(connection: Connection, batch: Batch) -> Known:
    """What is stored beside a batch, in one question."""
    with connection.pipelined():
        project = connection.ask("SELECT deleted_at FROM projects WHERE id = ?", batch.project_id)
        rules = ask_rules(connection, batch.project_id)
        traces = connection.look_up(
            "id, trace_key, models, root_span_id, root_name, root_duration_ms, metadata, facets, session_id, user_id,"
            " cost_pico, error_count, started_us",
            "FROM traces WHERE id IN [?] AND project_id = ?",
            list(batch.by_trace),
            batch.project_id,
        )
        waiting = ask_waiting(connection, batch.project_id, list(batch.by_trace))
        block = ask_block(connection)
    found = project()
    if found and found[0][0] is not None:
        raise being_deleted(batch.project_id)
    return Known(
        bool(found),
        rules(),
        waiting(),
        {row[0]: Stored(row[1], RootFields(*row[3:8]), row[2], *row[8:]) for row in traces()},
        block(),
    )


def check(connection: Connection, batch: Batch, known: Known, *, resend: bool) -> Checked:
    """Look at a batch beside what is stored. Strictly, one bad span refuses all of them; with `resend` (OTLP) a span
    that is there already is passed over, spans in a cycle are left out, and several roots are allowed.

    Whole traces are looked at first, and single spans only where something is wrong."""
    traces = known.traces
    repeated = _repeated(connection, traces, batch)
    fresh = batch
    if repeated:
        left_out = set(map(id, repeated))
        fresh = prepare(batch.project_id, [span for span in batch.spans if id(span) not in left_out])
    cyclic = fresh.cyclic | _cyclic_with_stored(connection, traces, fresh)
    faults = [
        Fault("CIRCULAR_SPAN_REFERENCE", span, "the span is its own ancestor")
        for span in (fresh.spans if cyclic else ())
        if (span.trace_id, span.id) in cyclic
    ]
    if not resend:
        faults += _second_roots(traces, fresh)
        faults += _foreign_parents(connection, fresh)
        faults += [Fault("DUPLICATE_SPAN", span, "the trace has a span with this id") for span in repeated]
        if faults:
            raise refusal(faults, batch.spans)
    elif cyclic:
        left = [span for span in fresh.spans if (span.trace_id, span.id) not in cyclic]
        fresh = prepare(batch.project_id, left)
    return Checked(fresh, known, faults)


def write(connection: Connection, checked: Checked) -> Ingested:
    """Store a batch in the transaction that checked it."""
    fresh = checked.fresh
    keys = _write(connection, checked.known, fresh)
    if checked.known.waiting:
        join_waiting(
            connection,
            fresh.project_id,
            {trace_id: key for trace_id, key in keys.items() if trace_id in checked.known.waiting},
            [(span.trace_id, span.id) for span in fresh.spans],
        )
    jobs = add_jobs(connection, jobs_for(checked.known.rules, fresh.spans, keys))
    return Ingested(keys, checked.faults, len(jobs))


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


def _repeated(connection: Connection, traces: dict[str, Stored], batch: Batch) -> list[SpanRecord]:
    """The spans that are stored already or come twice in the batch."""
    seen: set[tuple[str, str]] = set()
    if traces:
        by_key = {stored.key: trace_id for trace_id, stored in traces.items()}
        rows = connection.all(
            "SELECT trace_key, id FROM spans WHERE trace_key IN [?] AND id IN [?]",
            list(by_key),
            [span_id for trace_id in traces for span_id in batch.by_trace[trace_id].parents],
        )
        seen = {(by_key[key], span_id) for key, span_id in rows}
    if not seen and sum(len(arriving.parents) for arriving in batch.by_trace.values()) == len(batch.spans):
        return []
    repeated: list[SpanRecord] = []
    for span in batch.spans:
        name = (span.trace_id, span.id)
        if name in seen:
            repeated.append(span)
        seen.add(name)
    return repeated


def _cyclic_with_stored(
    connection: Connection, traces: dict[str, Stored], batch: Batch
) -> set[tuple[str, str]]:
    """The new spans that are their own ancestors through spans that are stored."""
    # A stored span can only take part in a new cycle when a parent that it was waiting for arrives.
    touched = {traces[trace_id].key: trace_id for trace_id in batch.by_trace if trace_id in traces}
    if not touched:
        return set()
    waiting = connection.all(
        "SELECT DISTINCT trace_key FROM spans WHERE trace_key IN [?] AND parent_span_id IN [?]",
        list(touched),
        [span_id for trace_id in touched.values() for span_id in batch.by_trace[trace_id].parents],
    )
    if not waiting:
        return set()
    rows = connection.all(
        "SELECT trace_key, id, parent_span_id FROM spans WHERE trace_key IN [?]", [row[0] for row in waiting]
    )
    chains: dict[str, dict[str, str | None]] = defaultdict(dict)
    for key, span_id, parent in rows:
        chains[touched[key]][span_id] = parent
    return {
        (trace_id, span_id)
        for trace_id, stored in chains.items()
        for span_id in cycle_members({**stored, **batch.by_trace[trace_id].parents})
    }


def _second_roots(traces: dict[str, Stored], batch: Batch) -> list[Fault]:
    roots = {
        trace_id: stored.facts.root_span_id
        for trace_id, stored in traces.items()
        if stored.facts.root_span_id
    }
    if all(arriving.root_count + (trace_id in roots) <= 1 for trace_id, arriving in batch.by_trace.items()):
        return []
    faults = []
    for span in batch.spans:
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


def _foreign_parents(connection: Connection, batch: Batch) -> list[Fault]:
    """Spans whose parent is known, but only in other traces."""
    outside: set[str | None] = set().union(
        *(arriving.missing_parents for arriving in batch.by_trace.values())
    )
    if not outside:
        return []
    homes: dict[str | None, set[str]] = defaultdict(set)
    for span in batch.spans:
        homes[span.id].add(span.trace_id)
    named = [span_id for span_id in outside if span_id is not None]
    for span_id, trace_id in recent_homes(connection, batch.project_id, named):
        homes[span_id].add(trace_id)
    return [
        Fault("INVALID_SPAN_PARENT", span, f"its parent '{span.parent_span_id}' belongs to another trace")
        for span in batch.spans
        if span.parent_span_id in outside
        and homes[span.parent_span_id]
        and span.trace_id not in homes[span.parent_span_id]
    ]


def _write(connection: Connection, beside: Known, batch: Batch) -> dict[str, str]:
    keys: dict[str, str] = {}
    span_keys: list[str] = []
    new: list[Value] = []
    known: list[tuple[Value, ...]] = []
    marks: set[tuple[int, str]] = set()
    sessions: dict[str, None] = {}
    left: list[str | None] = []
    changes: list[tuple[str, TraceTotals]] = []
    for trace_id, arriving in batch.by_trace.items():
        stored = beside.traces.get(trace_id)
        if stored is None:
            key = new_id()
            facts = arriving.root or RootFields()
            new += (
                key, trace_id, created_at_of(key), *facts, with_models("", arriving.models), *arriving.counts,
                arriving.session_id, arriving.user_id, sum_of_costs(None, arriving.cost_pico), *arriving.calls,
                arriving.started_us,
            )  # fmt: skip
            session_id = arriving.session_id
        else:
            key = stored.key
            facts = stored.facts
            if arriving.root is not None and facts.root_span_id is None:
                facts = arriving.root
            session_id, user_id = _belongs(stored, arriving)
            if stored.session_id not in (None, session_id):
                left.append(stored.session_id)
            known.append((
                *facts, with_models(stored.models, arriving.models), *arriving.counts,
                session_id, user_id,
                sum_of_costs(stored.cost_pico, arriving.cost_pico), *arriving.calls,
                min(stored.started_us, arriving.started_us), key,
            ))  # fmt: skip
        if session_id is not None:
            sessions[session_id] = None
        keys[trace_id] = key
        changes.append((key, _change(stored, arriving)))
        stretch = key[:LENGTH]
        marks.update((mark, stretch) for mark in arriving.marks)
        span_keys += [key] * len(arriving.spans)
    if new:
        connection.insert_many(
            "traces", {"project_id": batch.project_id, "annotation_count": 0}, _TRACE_COLUMNS, new
        )
    if known:
        connection.run_many(_UPDATE_TRACE, known)
    if sessions:
        connection.run_many(
            "INSERT INTO sessions (project_id, id, session_key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(batch.project_id, session_id, new_id()) for session_id in sessions],
        )
        forget_empty(connection, batch.project_id, left)
    if marks:
        connection.run_many(INSERT_MARK, [(batch.project_id, *mark) for mark in sorted(marks)])
    add_totals(connection, batch.project_id, changes)
    batch.values[:: len(SPAN_COLUMNS)] = span_keys
    always: dict[str, Value] = {
        "project_id": batch.project_id,
        "received_at": batch.received_at,
        "block": beside.block,
    }
    connection.insert_many("spans", always, SPAN_COLUMNS, batch.values)
    count_in_block(connection, beside.block, len(span_keys))
    return keys


def _change(stored: Stored | None, arriving: TraceSpans) -> TraceTotals:
    """What the spans of one trace add to the totals of its stretch."""
    spans, errors, tokens = arriving.counts
    root = arriving.root
    if stored is not None and stored.facts.root_span_id is not None:
        root = None
    duration = None if root is None else root.root_duration_ms
    before = None if stored is None else stored.cost_pico
    cost = (sum_of_costs(before, arriving.cost_pico) or 0) - (before or 0)
    return TraceTotals(
        int(stored is None),
        spans,
        int(errors > 0 and (stored is None or stored.error_count == 0)),
        int(duration is not None),
        duration or 0.0,
        tokens,
        *cost_parts(cost),
        *arriving.calls,
    )


def _belongs(stored: Stored, arriving: TraceSpans) -> tuple[str | None, str | None]:
    """The session and user of a trace: its root's, else those that were named first."""
    session_id, user_id = stored.session_id or arriving.session_id, stored.user_id or arriving.user_id
    if stored.facts.root_span_id is None:
        if arriving.root_names[0]:
            session_id = arriving.session_id
        if arriving.root_names[1]:
            user_id = arriving.user_id
    return session_id, user_id


def sum_of_costs(one: int | None, other: int | None) -> int | None:
    """The sum of what is known, as far as 64 bits go; None when neither is."""
    if one is None or other is None:
        return one if other is None else min(other, MOST_PICO)
    return min(one + other, MOST_PICO)


def created_at_of(key: str) -> str:
    """The instant in the first 48 bits of a key, so that limits of time are limits of keys."""
    return _millisecond(key[:8] + key[9:13])


@lru_cache(maxsize=16)
def _millisecond(digits: str) -> str:
    return format_instant(instant(int(digits, 16) * 1000))  # the traces of one batch mostly share theirs
