"""Traces: read, listed, deleted, and put into the review queue."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from evenhand.core.ids import new_id
from evenhand.core.objects.annotations import Queued, QueuedRoot, QueuedSince, QueueItem, QueueStatus
from evenhand.core.objects.scores import Score
from evenhand.core.objects.traces import Span, SpanError, Trace, TraceRow
from evenhand.core.spans import dollars, instant
from evenhand.core.timestamps import format_instant
from evenhand.store.arrivals import facet_line, model_line
from evenhand.store.connection import Bound, Connection, Row
from evenhand.store.pages import LAST, MOST_BYTES, Cut, as_cut, oldest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.scores import scores_of_span, scores_of_trace
from evenhand.store.spans import created_at_of
from evenhand.store.trace_marks import LENGTH, last_unmarked, stretches, wanted_marks

_TRACE = (
    "trace_key, id, project_id, root_span_id, root_name, root_duration_ms, span_count, error_count, tokens, models, "
    "queue_key, created_at, metadata, annotation_count, session_id, user_id, cost_pico, cost_known, cost_unknown"
)
_SPAN = (
    "id, parent_span_id, name, start_us, end_us, duration_ms, input, output, tokens_input, tokens_output, model, "
    "metadata, error, clock_skew, received_at, session_id, user_id, cost_pico, cost_source, is_total"
)
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


class TraceFilter(Struct, frozen=True, kw_only=True):
    """What a list of traces is narrowed to."""

    after: str | None = None
    """Keys from here on (`key_from`)."""
    before: str | None = None
    """Keys before this one."""
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
    """The trace with all its spans."""
    row = find_trace(connection, trace_id, scope=scope, project_id=project_id)
    spans = connection.all(
        f"SELECT {_SPAN} FROM spans WHERE trace_key = ? ORDER BY start_us, id",  # noqa: S608  constant columns
        row[0],
    )
    scores = scores_of_trace(connection, row[0])
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
        metadata=Raw(row[12].encode()),
        spans=_with_texts_of_root([_span(span, row[1], scores.get(span[0], [])) for span in spans], row[3]),
    )


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
    span = _span(row, trace_id, scores_of_span(connection, trace_key, span_id))
    if span_id != root_id or span.input is not None or span.output is not None:
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


def _with_texts_of_root(spans: list[Span], root_id: str | None) -> list[Span]:
    """The spans by start; a root without texts shows those of the first model call, and says so."""
    place = next((index for index, span in enumerate(spans) if span.id == root_id), None)
    if place is None or spans[place].input is not None or spans[place].output is not None:
        return spans
    call = next((span for span in spans if _shows_texts(span)), None)
    if call is not None:
        spans[place] = replace(
            spans[place],
            input=call.input,
            output=call.output,
            input_from_span_id=None if call.input is None else call.id,
            output_from_span_id=None if call.output is None else call.id,
        )
    return spans


def _shows_texts(span: Span) -> bool:
    is_call = span.model is not None or span.tokens_input is not None or span.tokens_output is not None
    return is_call and not span.is_total and (span.input is not None or span.output is not None)


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
    """Newest first, each with the key that a cursor continues from."""
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
    for stretch in stretches(connection, project_id, wanted, newest=newest[:LENGTH], oldest=first[:LENGTH]):
        end, start = min(newest, stretch + LAST), max(first, stretch)
        found += _listed(connection, project_id, narrow, end, start, limit - len(found))
        if len(found) >= limit:
            return found
    if unmarked:
        found += _listed(connection, project_id, narrow, min(newest, first), oldest, limit - len(found))
    return found


def _listed(
    connection: Connection, project_id: str, narrow: TraceFilter, newest: str, oldest: str, limit: int
) -> list[tuple[str, TraceRow]]:
    """Traces with keys before `newest`, down to `oldest`."""
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
    rows = connection.all(
        f"SELECT {_TRACE} FROM traces WHERE {key} < ({places}) AND {key} >= ({places}){conditions}"  # noqa: S608  constant texts
        f" ORDER BY {order} LIMIT ?",
        *owner.values(),
        newest,
        *owner.values(),
        oldest,
        *values,
        limit,
    )
    return [(row[0], _trace_row(row)) for row in rows]


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
    total = 0
    for place, row in enumerate(rows):
        total += lengths.get(row[0], 0)
        if total > MOST_BYTES and place:
            return Cut(rows[:place])
    return rows


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


def _span(row: Row, trace_id: str, scores: list[Score]) -> Span:
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
        scores=scores,
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
        metadata=Raw(row[12].encode()),
    )
