"""Traces: native ingest, reading, listing, deleting."""

import asyncio
import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field

from evenhand.core.errors import InputError, Refusal
from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.traces import Trace, TraceRow
from evenhand.core.spans import SpanRecord, microseconds
from evenhand.core.timestamps import parse_instant
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.auth import Access
from evenhand.server.call import Call
from evenhand.server.fields import MAX_NAME, Name
from evenhand.server.measuring import JUDGE, InlineScore, Unmeasured, Wanted, measure, read_score, unhurried
from evenhand.server.paging import Paging, make_cursor
from evenhand.server.routes import Route
from evenhand.server.scoring_jobs import judge_jobs
from evenhand.server.span_input import MAX_SPANS, SpanInput, checked_records, malformed_batch, wrong_count
from evenhand.store import spans
from evenhand.store import traces as store
from evenhand.store.arrivals import Batch, prepare
from evenhand.store.connection import Connection
from evenhand.store.jobs import add_jobs
from evenhand.store.projects import DEFAULT, create_project, must_be_made
from evenhand.store.scores import Measurement, insert_scores
from evenhand.store.targets import Material, Target

LISTING = "traces"
PROJECT_HEADER = b"x-project-id"


class IngestRequest(Struct, frozen=True, kw_only=True):
    """A batch of spans."""

    spans: list[SpanInput]
    """1 to 10,000 spans, of one trace or of several; all are stored or none."""
    project_id: Name | None = None
    """Where they belong; otherwise the header X-Project-Id, the token's project, or `default` decides."""


class Ingested(Struct, frozen=True, kw_only=True):
    """The batch is stored."""

    accepted: int
    """How many spans."""
    trace_ids: list[str]
    """The traces that they belong to, in the order they came."""


class OneTraceQuery(Struct, frozen=True, kw_only=True):
    """What tells traces of the same id apart."""

    project_id: str | None = None
    """The project; needed only where a token for all projects meets an id twice."""


class TraceQuery(Paging, frozen=True, kw_only=True):
    """What a list of traces can be narrowed to."""

    project_id: str | None = None
    """The project; required."""
    created_after: str | None = field(default=None, name="after")
    """Created after this instant (ISO 8601)."""
    created_before: str | None = field(default=None, name="before")
    """Created before this instant (ISO 8601)."""
    has_error: bool | None = None
    """Whether a span failed."""
    in_queue: bool | None = None
    """Whether the trace is in the review queue."""
    name: str | None = None
    """The root span's name."""
    model: str | None = None
    """A model that some span names."""
    min_duration_ms: Annotated[float, Meta(ge=0, le=1e15)] | None = None
    """The root span took at least this long."""
    metadata: dict[str, str] = field(default_factory=dict)
    """`metadata.<key>=<value>`: an entry of the root span's metadata."""


def span_project(call: Call, given: str | None) -> str:
    """Where spans go: what the request names, else the token's project, else `default`."""
    named = given or _header_project(call)
    return named or call.scope or DEFAULT


def _header_project(call: Call) -> str | None:
    header = call.headers.get(PROJECT_HEADER)
    if header is None:
        return None
    try:
        name = header.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("INVALID_REQUEST", "The header X-Project-Id is not valid UTF-8.") from None
    if not 1 <= len(name) <= MAX_NAME:
        raise Refusal("INVALID_REQUEST", f"The header X-Project-Id has 1 to {MAX_NAME} characters.")
    return name


async def ingest(call: Call, body: IngestRequest) -> Answer:
    if not 1 <= len(body.spans) <= MAX_SPANS:
        raise wrong_count()
    records = checked_records(body.spans)
    scores = await inline_scores(call, body.spans, records)
    project_id = span_project(call, body.project_id)
    answer = Ingested(accepted=len(records), trace_ids=list(dict.fromkeys(span.trace_id for span in records)))

    batch = _Batch(call.access, prepare(project_id, records), scores, answer, [])
    written = await call.write_item(_store, batch, large=True)
    if any(batch.asked):
        call.service.jobs.wake()
    return written


class _Batch(NamedTuple):
    """Checked spans on their way to the writer, and what they came with."""

    access: Access
    spans: Batch
    scores: "InlineScores"
    answer: Ingested
    asked: list[int]
    """How many jobs were made, once it is stored."""


def _store(connection: Connection, batches: Sequence[_Batch]) -> list[Ingested | Exception]:
    return [_stored(connection, batch) for batch in batches]


def _stored(connection: Connection, batch: _Batch) -> Ingested | Exception:
    project_id, records = batch.spans.project_id, batch.spans.spans
    try:
        result = store_spans(connection, batch.access, batch.spans, resend=False)
    except Refusal as error:
        return error

    def target(index: int) -> Target:
        span = records[index]
        return Target(type="span", id=span.id, project_id=project_id, trace_key=result.keys[span.trace_id])

    insert_scores(connection, [(target(index), made) for index, made in batch.scores.measured])
    judged = judge_jobs((target(index), [score]) for index, score in batch.scores.judged)
    batch.asked.append(len(add_jobs(connection, judged)) + result.job_count)
    return batch.answer


def store_spans(connection: Connection, access: Access, batch: Batch, *, resend: bool) -> spans.Ingested:
    """Check, then store: a batch that is refused has changed nothing, so batches need no savepoints, for which the
    embedded database would copy every page that it changes."""
    project_id = batch.project_id
    known = spans.look(connection, batch)
    missing = must_be_made(
        project_id, known=known.project, scope=access.scope, may_create=access.may_create_projects
    )
    checked = spans.check(connection, batch, known, resend=resend)
    if missing:
        create_project(connection, project_id=project_id, name=project_id)
    return spans.write(connection, checked)


class InlineScores(NamedTuple):
    """The inline scores of a batch, by the index of their span."""

    measured: list[tuple[int, Measurement]]
    judged: list[tuple[int, Wanted]]


async def inline_scores(
    call: Call, given_spans: Sequence[SpanInput], records: Sequence[SpanRecord]
) -> InlineScores:
    """What the scores of the spans come to; a rule that has nothing to compare with is left out."""
    scores: list[tuple[int, Measurement | Wanted]] = []
    judged: list[tuple[int, Wanted]] = []
    given = [(index, span.id, score) for index, span in enumerate(given_spans) for score in span.scores or ()]
    found = await unhurried(
        (score for _, _, score in given),
        lambda: [(index, _read_score(call, index, span_id, score)) for index, span_id, score in given],
    )
    for index, read in found:
        if isinstance(read, Wanted) and read.scorer_name == JUDGE:
            judged.append((index, read))
        else:
            scores.append((index, read))
    if any(isinstance(score, Wanted) for _, score in scores):
        return InlineScores(await asyncio.to_thread(_with_rules, scores, records), judged)
    return InlineScores(_with_rules(scores, records), judged)


def _read_score(call: Call, index: int, span_id: str, given: InlineScore) -> Measurement | Wanted:
    try:
        read = read_score(given)
        if isinstance(read, Wanted) and read.scorer_name == JUDGE:
            call.service.jobs.check_judge(read.config)
    except Refusal as error:
        place = {"index": index, "id": span_id}
        raise Refusal(error.code, f"span '{span_id}': {error}", {**error.details, **place}) from None
    return read


def _with_rules(
    scores: Sequence[tuple[int, Measurement | Wanted]], records: Sequence[SpanRecord]
) -> list[tuple[int, Measurement]]:
    """In the order the scores were given."""
    found: list[tuple[int, Measurement]] = []
    for index, given in scores:
        made = given if isinstance(given, Measurement) else _measured(given, records[index])
        if isinstance(made, Measurement):
            found.append((index, made))
    return found


def _measured(wanted: Wanted, record: SpanRecord) -> Measurement | Unmeasured:
    target = Target(type="span", id=record.id, project_id="")
    material = Material(target=target, output=record.output, input=record.input, expected_output=None)
    return measure(wanted, material)


async def get(call: Call, query: OneTraceQuery) -> Answer:
    trace_id = call.params["trace_id"]
    return json_answer(
        await call.read(
            lambda connection: store.get_trace(
                connection, trace_id, scope=call.scope, project_id=query.project_id
            )
        )
    )


async def list_all(call: Call, query: TraceQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    if query.min_duration_ms is not None and not math.isfinite(query.min_duration_ms):
        raise Refusal("INVALID_REQUEST", "'min_duration_ms' must be a number.", {"field": "min_duration_ms"})
    narrow = store.TraceFilter(
        after=_first_key_after("after", query.created_after),
        before=_first_key("before", query.created_before),
        has_error=query.has_error,
        in_queue=query.in_queue,
        name=query.name,
        model=query.model,
        min_duration_ms=query.min_duration_ms,
        metadata=tuple(query.metadata.items()),
    )
    # Without a filter the page is the next rows of an index; with one, there may be few such traces among very many.
    ask = call.read if narrow == store.TraceFilter(after=narrow.after, before=narrow.before) else call.search
    rows = await ask(
        lambda connection: store.list_traces(
            connection,
            project_id=project_id,
            narrow=narrow,
            before=after[0] if after else None,
            limit=limit + 1,
        )
    )
    items = [row for _, row in rows[:limit]]
    cursor = make_cursor(LISTING, [rows[limit - 1][0]]) if len(rows) > limit else None
    return json_answer(Page(items=items, next_cursor=cursor, limit=limit))


def _first_key(name: str, text: str | None) -> str | None:
    """The least key of a trace created at the instant or later."""
    if text is None:
        return None
    try:
        # Rounded up: a trace's own instant has no parts of a millisecond.
        return store.key_from(-(-microseconds(parse_instant(text)) // 1000))
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}': {error.reason}", {"field": name}) from None


def _first_key_after(name: str, text: str | None) -> str | None:
    """The least key of a trace created later than the instant."""
    if text is None:
        return None
    try:
        return store.key_from(microseconds(parse_instant(text)) // 1000 + 1)
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}': {error.reason}", {"field": name}) from None


async def delete(call: Call, query: OneTraceQuery) -> Answer:
    trace_id = call.params["trace_id"]

    def work(connection: Connection) -> Deleted:
        store.delete_trace(connection, trace_id, scope=call.scope, project_id=query.project_id)
        return Deleted(deleted=True, id=trace_id)

    return await call.write(work)


ROUTES = (
    Route(
        method="POST",
        path="/v1/traces/ingest",
        handler=ingest,
        role="write",
        request=IngestRequest,
        malformed=malformed_batch,
        response=Ingested,
        status=201,
        errors=(
            "NOT_FOUND",
            "INVALID_SPAN",
            "INVALID_SPAN_PARENT",
            "CIRCULAR_SPAN_REFERENCE",
            "DUPLICATE_SPAN",
            "INVALID_SCORE_VALUE",
            "INVALID_SCORER_CONFIG",
        ),
        summary="Store a batch of spans, all or none",
        tag="Traces",
    ),
    Route(
        method="GET",
        path="/v1/traces",
        handler=list_all,
        query=TraceQuery,
        response=Page[TraceRow],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's traces, newest first",
        tag="Traces",
    ),
    Route(
        method="GET",
        path="/v1/traces/{trace_id}",
        handler=get,
        query=OneTraceQuery,
        response=Trace,
        errors=("NOT_FOUND",),
        summary="Read a trace with its spans",
        tag="Traces",
    ),
    Route(
        method="DELETE",
        path="/v1/traces/{trace_id}",
        handler=delete,
        role="write",
        query=OneTraceQuery,
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a trace and its spans; annotations stay",
        tag="Traces",
    ),
)
