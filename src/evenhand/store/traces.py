"""Traces: read, listed, deleted, and put into the review queue."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from evenhand.core.ids import new_id
from evenhand.core.objects.annotations import Queued, QueuedRoot, QueuedSince, QueueItem, QueueStatus
from evenhand.core.objects.traces import Span, SpanError, Trace, TraceRow
from evenhand.core.spans import dollars, instant
from evenhand.core.timestamps import format_instant
from evenhand.store.arrivals import facet_line, model_line
from evenhand.store.connection import Bound, Connection, Row
from evenhand.store.pages import LAST, Cut, as_cut, bounded_rows, fitting, oldest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.scores import ScoresOf, lengths_of_spans, scores_of_targets
from evenhand.store.spans import created_at_of
from evenhand.store.trace_marks import LENGTH, last_unmarked, stretches, wanted_marks

_TRACE = (
    "trace_key, id, project_id, root_span_id, root_name, root_duration_ms, span_count, error_count, tokens, models, "
    "queue_key, created_at, metadata, annotation_count, session_id, user_id, cost_pico, cost_known, cost_unknown, "
    "started_us"
)
_SPAN = (
    "id, parent_span_id, name, start_us, end_us, duration_ms, input, output, tokens_input, tokens_output, model, "
    "metadata, error, clock_skew, received_at, session_id, user_id, cost_pico, cost_source, is_total"
)
MOST_SPANS = 2_000
"""Spans of one trace that are in memory at once."""
_OLDEST_IN_QUEUE_FIRST = oldest_first("project_id", "queue_key")
_QUEUE_STATUS: dict[QueueStatus | None, str] = {
    None: "",
    "pending": " AND annotation_count = 0",
    "annotated": " AND annotation_count > 0",
}
_ANNOTATED_BY = (
    "EXISTS (SELECT 1 FROM annotations a WHERE a.trace_id = traces.id AND a.project_id = traces.project_id"
    " AND a.annotator = ?)"
)


MOST_US = 2**62
"""Later than any span can begin."""


class TraceFilter(Struct, frozen=True, kw_only=True):
    """What a list of traces is narrowed to."""

    after: str | None = None
    """Keys from here on (`key_from`)."""
    before: str | None = None
    """Keys before this one."""
    started_after: int | None = None
    """Begun later than this, by the trace's own clock (microseconds since 1970)."""
    started_before: int | None = None
    """Begun earlier than this."""
    has_error: bool | None = None
    """Whether a span failed."""
    in_queue: bool | None = None
    """Whether the trace waits for review."""
    name: str | None = None
    """The root's name."""
    model: str | None = None
    """A model that some span names."""
    min_duration_ms: float | None = None
    """The root took at least this long."""
    session_id: str | None = None
    """The trace's session."""
    user_id: str | None = None
    """The trace's user."""
    metadata: tuple[tuple[str, str], ...] = ()
    """Entries of the root's metadata, as text."""


def key_from(milliseconds: int) -> str:
    """The least key of a trace that was created at or after the instant (milliseconds since 1970)."""
    digits = f"{max(0, min(milliseconds, (1 << 48) - 1)):012x}"
    return f"{digits[:8]}-{digits[8:]}"


def find_trace(connection: Connection, trace_id: str, *, scope: Scope, project_id: str | None = None) -> Row:
    """The row of `_TRACE`. An id may occur in several projects; the caller's own, or the newest, is meant.

    A caller who names a project other than the one its token belongs to sees nothing there.
    """
    project = scope if scope is not None else project_id
    if project_id not in (None, project):
        row = None
    elif project is None:
        # Not `ORDER BY … LIMIT 1`: that lets PostgreSQL walk over all traces, the newest first, until it meets one.
        rows = connection.all(f"SELECT {_TRACE} FROM traces WHERE id = ?", trace_id)  # noqa: S608  constant columns
        row = max(rows, key=itemgetter(0), default=None)
    else:
        # In the order of the index by id: another one would have all traces of the project looked at.
        row = connection.one(
            f"SELECT {_TRACE} FROM traces WHERE (id, project_id) >= (?, ?) AND (id, project_id) <= (?, ?)",  # noqa: S608  constant columns
            trace_id,
            project,
            trace_id,
            project,
        )
    if row is None:
        raise not_found("trace", trace_id)
    return row


def get_trace(connection: Connection, trace_id: str, *, scope: Scope, project_id: str | None = None) -> Trace:
    """The trace with its spans; a `Cut` of them where they are too many for one answer (`more_spans`)."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    spans = _spans(connection, row[0], row[1], None)
    root = next((place for place, span in enumerate(spans) if span.id == row[3]), None)
    if root is not None:
        spans[root] = _with_texts(connection, row[0], spans[root])
    return Trace(
        id=row[1],
        project_id=row[2],
        root_span_id=row[3],
        span_count=row[6],
        error_count=row[7],
        session_id=row[14],
        user_id=row[15],
        tokens=row[8],
        cost_usd=dollars(row[16]),
        cost_known_calls=row[17],
        cost_unknown_calls=row[18],
        queued_at=_queued_at(row),
        created_at=row[11],
        started_at=format_instant(instant(row[19])),
        metadata=Raw(row[12].encode()),
        spans=spans,
    )


def more_spans(connection: Connection, trace: Trace, last: Span) -> list[Span]:
    """The next spans of a trace after one of them, as many as an answer has room for at once."""
    row = find_trace(connection, trace.id, scope=trace.project_id, project_id=trace.project_id)
    start = connection.one("SELECT start_us FROM spans WHERE trace_key = ? AND id = ?", row[0], last.id)
    if start is None:
        raise not_found("span", last.id)
    spans = _spans(connection, row[0], row[1], (start[0], last.id))
    return as_cut(
        spans,
        [_with_texts(connection, row[0], span) if span.id == trace.root_span_id else span for span in spans],
    )


def _spans(
    connection: Connection, trace_key: str, trace_id: str, after: tuple[int, str] | None
) -> list[Span]:
    """Spans with their scores, by start; a `Cut` when there are more."""
    rows = bounded_rows(
        connection,
        _SPAN,
        ("input", "output", "metadata", "error"),
        f"FROM spans WHERE trace_key = ?{' AND (start_us, id) > (?, ?)' if after else ''} ORDER BY start_us, id",
        [trace_key, *(after or ())],
        MOST_SPANS + 1,
    )
    if len(rows) > MOST_SPANS:
        rows = Cut(rows[:MOST_SPANS])
    found = lengths_of_spans(connection, trace_key)
    lengths = {
        row[0]: sum(len(row[place] or "") for place in (6, 7, 11, 12)) + found.get(row[0], (0, 0))[1]
        for row in rows
    }
    rows = fitting(rows, lengths, lambda row: str(row[0]))
    scored = {row[0]: found[row[0]] for row in rows if row[0] in found}
    scores = scores_of_targets(connection, scored, trace_key)
    return as_cut(rows, [_span(row, trace_id, scores) for row in rows])


def get_trace_row(
    connection: Connection, trace_id: str, *, scope: Scope, project_id: str | None = None
) -> tuple[str, TraceRow]:
    """The trace's key, and the trace without its spans."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    return row[0], _trace_row(row)


def traces_by_id(connection: Connection, trace_ids: Sequence[str], *, project_id: str) -> dict[str, TraceRow]:
    """Traces of a project; what is not there is left out."""
    if not trace_ids:
        return {}
    rows = connection.look_up(_TRACE, "FROM traces WHERE id IN [?]", sorted(set(trace_ids)))()
    return {row[1]: _trace_row(row) for row in rows if row[2] == project_id}


def get_span(
    connection: Connection, trace_key: str, trace_id: str, span_id: str, *, root_id: str | None
) -> Span:
    """One span of a trace that the caller may see, with its scores, as `get_trace` shows it."""
    row = connection.one(
        f"SELECT {_SPAN} FROM spans WHERE trace_key = ? AND id = ?",  # noqa: S608  constant columns
        trace_key,
        span_id,
    )
    if row is None:
        raise not_found("span", span_id)
    scores = scores_of_targets(connection, lengths_of_spans(connection, trace_key, span_id), trace_key)
    span = _span(row, trace_id, scores)
    return _with_texts(connection, trace_key, span) if span_id == root_id else span


def _with_texts(connection: Connection, trace_key: str, span: Span) -> Span:
    """A root; without texts of its own it shows those of the first model call, and says so."""
    if span.input is not None or span.output is not None:
        return span
    call = first_call(connection, trace_key)
    if call is None:
        return span
    return replace(
        span,
        input=raw(call[1]),
        output=raw(call[2]),
        input_from_span_id=None if call[1] is None else call[0],
        output_from_span_id=None if call[2] is None else call[0],
    )


def newer_trace(connection: Connection, *, project_id: str, narrow: TraceFilter, after: str) -> str | None:
    """The id of the trace before the one with key `after` in `list_traces`."""
    conditions, values = _conditions(connection, narrow)
    row = connection.one(
        "SELECT id FROM traces WHERE (project_id, trace_key) > (?, ?) AND (project_id, trace_key) < (?, ?)"  # noqa: S608  constant texts
        f"{conditions} ORDER BY project_id, trace_key LIMIT 1",
        project_id,
        after,
        project_id,
        narrow.before or LAST,
        *values,
    )
    return None if row is None else str(row[0])


def first_call(connection: Connection, trace_key: str) -> Row | None:
    """Id, input and output of the model call whose texts a root without any shows."""
    calls = (
        "FROM spans WHERE trace_key = ? AND is_total = 0 AND (input IS NOT NULL OR output IS NOT NULL)"
        " AND (model IS NOT NULL OR tokens_input IS NOT NULL OR tokens_output IS NOT NULL)"
    )
    rows = connection.all(
        f"SELECT id, input, output {calls} AND start_us = (SELECT MIN(start_us) {calls})",
        trace_key,
        trace_key,
    )
    return min(rows, default=None, key=itemgetter(0))


def list_traces(
    connection: Connection, *, project_id: str, narrow: TraceFilter, before: str | None, limit: int
) -> list[tuple[str, TraceRow]]:
    """Newest first, each with the key that a cursor continues from. Limits of the traces' own time order them by it."""
    if narrow.started_after is not None or narrow.started_before is not None:
        return _listed_by_start(connection, project_id, narrow, before, limit)
    newest, oldest = min(before or LAST, narrow.before or LAST), narrow.after or ""
    wanted = wanted_marks(
        narrow.name,
        narrow.min_duration_ms,
        [facet_line(name, text) for name, text in narrow.metadata],
        None if narrow.model is None else model_line(narrow.model),
    )
    if not wanted or narrow.session_id is not None or narrow.user_id is not None:
        return _listed(connection, project_id, narrow, newest, oldest, limit)
    # By their marks, as far back as there are any; what is older is looked at one by one.
    unmarked = last_unmarked(connection)
    first = max(oldest, f"{unmarked}!")  # sorts right after it
    found: list[tuple[str, TraceRow]] = []
    used = 0
    for stretch in stretches(connection, project_id, wanted, newest=newest[:LENGTH], oldest=first[:LENGTH]):
        end, start = min(newest, stretch + LAST), max(first, stretch)
        more = _listed(connection, project_id, narrow, end, start, limit - len(found), used)
        found += more
        used += sum(len(row.metadata) for _, row in more)
        if isinstance(more, Cut):
            return Cut(found)
        if len(found) >= limit:
            return found
    if unmarked:
        end = min(newest, first)
        more = _listed(connection, project_id, narrow, end, oldest, limit - len(found), used)
        return as_cut(more, found + more)
    return found


def _listed(
    connection: Connection,
    project_id: str,
    narrow: TraceFilter,
    newest: str,
    oldest: str,
    limit: int,
    used: int = 0,
) -> list[tuple[str, TraceRow]]:
    """Traces with keys before `newest`, down to `oldest`; `used` of the page's bytes are taken already."""
    conditions, values = _conditions(connection, narrow)
    owner: dict[str, str] = {"project_id": project_id}
    if narrow.session_id is not None:
        owner["session_id"] = narrow.session_id
    elif narrow.user_id is not None:
        owner["user_id"] = narrow.user_id
    # As `newest_first`, with a limit at the other end too, and by the index of the session or user where one is asked for.
    key = f"({', '.join((*owner, 'trace_key'))})"
    places = ", ".join("?" * (len(owner) + 1))
    order = ", ".join(f"{column} DESC" for column in (*owner, "trace_key"))
    between, limits = f"{key} < ({places}) AND {key} >= ({places})", [newest, *owner.values(), oldest]
    if oldest and len(owner) == 1:
        # PostgreSQL ends a comparison of rows only at the oldest trace of the project. With both limits of the key given
        # apart, it reads at worst what other projects got between them.
        between, limits = "project_id = ? AND trace_key < ? AND trace_key >= ?", [newest, oldest]
    rows = bounded_rows(
        connection,
        _TRACE,
        ("metadata", "models"),
        f"FROM traces WHERE {between}{conditions} ORDER BY {order}",
        [*owner.values(), *limits, *values],
        limit,
        used=used,
    )
    return as_cut(rows, [(row[0], _trace_row(row)) for row in rows])


def _listed_by_start(
    connection: Connection, project_id: str, narrow: TraceFilter, before: str | None, limit: int
) -> list[tuple[str, TraceRow]]:
    """By the time that the traces tell, the latest first; the place in the list is that time and the key."""
    conditions, values = _conditions(connection, narrow)
    start, key = (narrow.started_before if narrow.started_before is not None else MOST_US, "")
    if before is not None:
        text, _, key = before.partition(" ")
        start = int(text)
    least = -MOST_US if narrow.started_after is None else narrow.started_after + 1
    rows = bounded_rows(
        connection,
        _TRACE,
        ("metadata", "models"),
        "FROM traces WHERE project_id = ? AND started_us >= ? AND started_us <= ? AND (started_us, trace_key) < (?, ?)"
        f" AND trace_key >= ? AND trace_key < ?{conditions}"
        " ORDER BY project_id DESC, started_us DESC, trace_key DESC",
        [project_id, least, start, start, key, narrow.after or "", narrow.before or LAST, *values],
        limit,
    )
    return as_cut(rows, [(f"{row[19]} {row[0]}", _trace_row(row)) for row in rows])


def _conditions(connection: Connection, narrow: TraceFilter) -> tuple[str, list[Bound]]:
    """Constant SQL for each filter that is given; everything from the caller is a bound value."""
    holds = "instr(%s, ?) > 0" if connection.kind == "sqlite" else "strpos(%s, ?) > 0"
    parts: list[str] = []
    values: list[Bound] = []
    for condition, value in (
        ("session_id = ?", narrow.session_id),
        ("user_id = ?", narrow.user_id),
        ("root_name = ?", narrow.name),
        ("root_duration_ms >= ?", narrow.min_duration_ms),
        (holds % "models", None if narrow.model is None else f"\n{model_line(narrow.model)}\n"),
        *((holds % "facets", f"\n{facet_line(name, text)}\n") for name, text in narrow.metadata),
    ):
        if value is not None:
            parts.append(condition)
            values.append(value)
    if narrow.has_error is not None:
        parts.append("error_count > 0" if narrow.has_error else "error_count = 0")
    if narrow.in_queue is not None:
        parts.append("queue_key IS NOT NULL" if narrow.in_queue else "queue_key IS NULL")
    return "".join(f" AND {part}" for part in parts), values


def queue_trace(
    connection: Connection, trace_id: str, *, scope: Scope, project_id: str | None = None
) -> QueuedSince:
    """Put the trace into the queue; one that is there keeps its place."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    queue_key: str = row[10] or new_id()
    if row[10] is None:
        connection.run("UPDATE traces SET queue_key = ? WHERE trace_key = ?", queue_key, row[0])
    return QueuedSince(trace_id=trace_id, queued=True, queued_at=created_at_of(queue_key))


def unqueue_trace(
    connection: Connection, trace_id: str, *, scope: Scope, project_id: str | None = None
) -> Queued:
    """Take the trace out of the queue; one that is not there stays so."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    connection.run("UPDATE traces SET queue_key = NULL WHERE trace_key = ?", row[0])
    return Queued(trace_id=trace_id, queued=False)


def list_queue(
    connection: Connection,
    *,
    project_id: str,
    status: QueueStatus | None,
    after: str | None,
    limit: int,
    annotator: str | None = None,
) -> list[tuple[str, QueueItem]]:
    """Oldest first, each with the place that a cursor continues from; `annotator`: only what this person annotated."""
    rows = connection.all(
        f"SELECT {_TRACE} FROM traces WHERE queue_key IS NOT NULL{_QUEUE_STATUS[status]} AND (? = 0 OR {_ANNOTATED_BY})"  # noqa: S608  constant texts
        f" AND {_OLDEST_IN_QUEUE_FIRST}",
        int(annotator is not None),
        annotator or "",
        project_id,
        after or "",
        project_id,
        limit,
    )
    return _queue_items(connection, rows)


def queued_at_places(
    connection: Connection, places: Sequence[str], *, project_id: str, status: QueueStatus | None
) -> list[tuple[str, QueueItem]]:
    """What stands at some places of the queue, in the order of `places`; those that are gone are left out."""
    rows = connection.look_up(
        _TRACE,
        f"FROM traces WHERE project_id = ? AND queue_key IN [?]{_QUEUE_STATUS[status]}",
        project_id,
        list(places),
    )()
    found = dict(_queue_items(connection, rows))
    return [(place, found[place]) for place in places if place in found]


def queued_before(connection: Connection, *, project_id: str, place: str) -> str | None:
    """The trace that stands before a place of the queue."""
    row = connection.one(
        "SELECT id FROM traces WHERE project_id = ? AND queue_key < ? ORDER BY project_id DESC, queue_key DESC LIMIT 1",
        project_id,
        place,
    )
    return None if row is None else str(row[0])


def queued_trace(connection: Connection, trace_id: str, *, project_id: str) -> tuple[str, QueueItem]:
    """A trace that is in the queue, with its place there; `NOT_FOUND` for others."""
    row = find_trace(connection, trace_id, scope=project_id, project_id=project_id)
    if row[10] is None:
        raise not_found("trace in the queue", trace_id)
    return _queue_items(connection, [row])[0]


def _queue_items(connection: Connection, rows: list[Row]) -> list[tuple[str, QueueItem]]:
    rows = _as_long_as_allowed(connection, rows)
    roots = _roots(connection, rows)
    made = [
        (
            row[10],
            QueueItem(
                trace_id=row[1],
                queued_at=created_at_of(row[10]),
                status="annotated" if row[13] else "pending",
                annotation_count=row[13],
                root_span=roots.get(row[0]),
            ),
        )
        for row in rows
    ]
    return as_cut(rows, made)


def _as_long_as_allowed(connection: Connection, rows: list[Row]) -> list[Row]:
    """The first of the traces, as many as a page's bytes allow with the texts of their roots."""
    lengths: dict[str, int] = dict(
        connection.look_up(
            "traces.trace_key, COALESCE(LENGTH(spans.input), 0) + COALESCE(LENGTH(spans.output), 0)",
            "FROM traces JOIN spans ON spans.trace_key = traces.trace_key AND spans.id = traces.root_span_id"
            " WHERE traces.trace_key IN [?]",
            [row[0] for row in rows],
        )()
    )
    return fitting(rows, lengths, lambda row: str(row[0]))


def _roots(connection: Connection, rows: Sequence[Row]) -> dict[str, QueuedRoot]:
    return root_values(connection, [row[0] for row in rows])


def root_values(connection: Connection, keys: Sequence[str]) -> dict[str, QueuedRoot]:
    """What the roots of traces read and wrote, by the trace's key; absent where no root has arrived."""
    found = connection.look_up(
        "spans.trace_key, spans.id, spans.name, spans.input, spans.output, spans.duration_ms",
        "FROM traces JOIN spans ON spans.trace_key = traces.trace_key AND spans.id = traces.root_span_id"
        " WHERE traces.trace_key IN [?]",
        list(keys),
    )()
    return {key: _queued_root(connection, key, root) for key, *root in found}


def _queued_root(connection: Connection, key: str, root: Sequence[Any]) -> QueuedRoot:
    span_id, name, read, written, duration = root
    source: str | None = None
    if read is None and written is None:
        source, read, written = first_call(connection, key) or (None, None, None)
    return QueuedRoot(
        id=span_id,
        name=name,
        input=raw(read),
        output=raw(written),
        input_from_span_id=None if read is None else source,
        output_from_span_id=None if written is None else source,
        duration_ms=duration,
    )


def raw(text: str | None) -> Raw | None:
    """Stored JSON text, ready to be sent."""
    return None if text is None else Raw(text.encode())


def _span(row: Row, trace_id: str, scores: ScoresOf) -> Span:
    return Span(
        id=row[0],
        trace_id=trace_id,
        parent_span_id=row[1],
        name=row[2],
        start_time=format_instant(instant(row[3])),
        end_time=None if row[4] is None else format_instant(instant(row[4])),
        duration_ms=row[5],
        input=raw(row[6]),
        output=raw(row[7]),
        input_from_span_id=None,
        output_from_span_id=None,
        tokens_input=row[8],
        tokens_output=row[9],
        model=row[10],
        session_id=row[15],
        user_id=row[16],
        cost_usd=dollars(row[17]),
        cost_source=row[18],
        is_total=bool(row[19]),
        metadata=Raw(row[11].encode()),
        error=None if row[12] is None else msgspec.json.decode(row[12], type=SpanError),
        clock_skew=bool(row[13]),
        received_at=row[14],
        scores=scores.scores.get(row[0], []),
        scores_left_out=scores.left_out.get(row[0], 0),
    )


def _queued_at(row: Row) -> str | None:
    return None if row[10] is None else created_at_of(row[10])


def _trace_row(row: Row) -> TraceRow:
    return TraceRow(
        id=row[1],
        project_id=row[2],
        root_span_id=row[3],
        name=row[4],
        duration_ms=row[5],
        span_count=row[6],
        error_count=row[7],
        tokens=row[8],
        session_id=row[14],
        user_id=row[15],
        cost_usd=dollars(row[16]),
        cost_known_calls=row[17],
        cost_unknown_calls=row[18],
        models=[msgspec.json.decode(line) for line in row[9].split("\n") if line],
        queued_at=_queued_at(row),
        created_at=row[11],
        started_at=format_instant(instant(row[19])),
        metadata=Raw(row[12].encode()),
    )
