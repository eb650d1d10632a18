"""Traces: native ingest, reading, listing, deleting."""

import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from evenhand.core.errors import InputError, Refusal
from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.traces import Span, SpansAccepted, Trace, TraceRow
from evenhand.core.spans import SpanRecord, microseconds
from evenhand.core.timestamps import parse_instant
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, StreamingAnswer, encode_json, json_answer
from evenhand.server.http.fields import MAX_NAME, Name
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.server.ingest.span_input import (
    MAX_SPANS,
    SpanInput,
    checked_records,
    malformed_batch,
    wrong_count,
)
from evenhand.server.jobs.computing import compute_scores, run_off_loop
from evenhand.server.jobs.score_requests import InlineScore, ScoreToCompute, quick_to_read, read_score
from evenhand.store import traces as store
from evenhand.store.arrivals import prepare
from evenhand.store.deleting import delete_trace
from evenhand.store.ingest import Sender, SpanBatch, store_batches
from evenhand.store.inline import InlineResult, ScoreResult
from evenhand.store.pages import Cut
from evenhand.store.projects import DEFAULT
from evenhand.store.scores import Measurement
from evenhand.store.targets import Material, Target

LISTING = "traces"
MOST_FILTERS = 20
"""Entries of metadata that one list is narrowed to."""
PROJECT_HEADER = b"x-project-id"


class IngestRequest(Struct, frozen=True, kw_only=True):
    """A batch of spans."""

    spans: list[SpanInput]
    """1 to 10,000 spans, of one trace or of several; all are stored or none."""
    project_id: Name | None = None
    """Where they belong; otherwise the header X-Project-Id, the token's project, or `default` decides."""


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
    started_after: str | None = None
    """Begun after this instant by the trace's own clock (ISO 8601); the list is then in the order of these times."""
    started_before: str | None = None
    """Begun before this instant by the trace's own clock (ISO 8601)."""
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
    session_id: str | None = None
    """The session that a span names."""
    user_id: str | None = None
    """The user that a span names."""
    metadata: dict[str, str] = field(default_factory=dict)
    """`metadata.<key>=<value>`: an entry of the root span's metadata."""


def span_project(call: Call, given: str | None) -> str:
    """Where spans go: what the request names, else the token's project, else `default`."""
    return given or named_project(call.headers.get(PROJECT_HEADER), call.scope)


def named_project(header: bytes | None, scope: str | None) -> str:
    """The project that the header X-Project-Id names, else the token's, else `default`."""
    if header is None:
        return scope or DEFAULT
    try:
        name = header.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("INVALID_REQUEST", "The header X-Project-Id is not valid UTF-8.") from None
    if not 1 <= len(name) <= MAX_NAME or "\x00" in name:
        raise Refusal("INVALID_REQUEST", f"The header X-Project-Id has 1 to {MAX_NAME} characters.")
    return name


async def ingest(call: Call, body: IngestRequest) -> Answer:
    if not 1 <= len(body.spans) <= MAX_SPANS:
        raise wrong_count()
    records = checked_records(body.spans, call.service.prices)
    scores = await inline_scores(call, body.spans, records)
    batch = SpanBatch(
        sender_of(call),
        prepare(span_project(call, body.project_id), records),
        list(dict.fromkeys(span.trace_id for span in records)),
        scores,
        [],
    )
    answer = await call.write_item(store_batches, batch)
    if any(batch.job_counts):
        call.service.jobs.wake()
    return answer


def sender_of(call: Call) -> Sender:
    """Who sends spans."""
    return Sender(call.scope, call.access.may_create_projects)


async def inline_scores(
    call: Call, given_spans: Sequence[SpanInput], records: Sequence[SpanRecord]
) -> list[InlineResult]:
    """What the scores of the spans come to, in the order they were given."""
    given = [
        (index, score_index, score)
        for index, span in enumerate(given_spans)
        for score_index, score in enumerate(span.scores or ())
    ]

    def read_all() -> list[Measurement | ScoreToCompute]:
        return [_read_score(call, index, records[index].id, score) for index, _, score in given]

    quick = quick_to_read((score for _, _, score in given), call.service.scorers)
    read = read_all() if quick else await run_off_loop(read_all)
    wanted = [
        (score, _material(records[index]))
        for (index, _, _), score in zip(given, read, strict=True)
        if isinstance(score, ScoreToCompute)
    ]
    computed: Iterator[ScoreResult] = iter(())
    if wanted:
        limit = call.service.config.limits.scoring_seconds
        computed = iter(await compute_scores(wanted, seconds=limit))
    return [
        InlineResult(
            index,
            score_index,
            score.scorer_name,
            score if isinstance(score, Measurement) else next(computed),
        )
        for (index, score_index, _), score in zip(given, read, strict=True)
    ]


def _read_score(call: Call, index: int, span_id: str, given: InlineScore) -> Measurement | ScoreToCompute:
    try:
        return read_score(given, call.service.scorers)
    except Refusal as error:
        place = {"index": index, "id": span_id}
        raise Refusal(error.code, f"span '{span_id}': {error}", {**error.details, **place}) from None


def _material(record: SpanRecord) -> Material:
    return Material(
        target=Target(type="span", id=record.id, project_id=""),
        output=record.output,
        input=record.input,
        expected_output=None,
        metadata=record.metadata,
    )


async def get(call: Call, query: OneTraceQuery) -> Answer:
    trace_id = call.params["trace_id"]
    trace = await call.read(
        lambda connection: store.get_trace(
            connection, trace_id, scope=call.scope, project_id=query.project_id
        )
    )
    if isinstance(trace.spans, Cut):
        return StreamingAnswer(trace_pieces(call, trace), content_type=b"application/json")
    return json_answer(trace)


async def trace_pieces(call: Call, trace: Trace) -> AsyncGenerator[bytes, None]:
    """The JSON of a trace, a page of its spans at a time: never all of a long one is in memory. The spans that came in
    after the first page was read may be in it."""
    yield encode_json(replace(trace, spans=[])).removesuffix(b"]}")
    separator = b""
    async with aclosing(span_pages(call, trace)) as pages:
        async for spans in pages:
            yield separator + b",".join(encode_json(span) for span in spans)
            separator = b","
    yield b"]}"


async def span_pages(call: Call, trace: Trace) -> AsyncGenerator[list[Span], None]:
    """The spans that came with a trace, then those that had no room there."""
    spans = trace.spans
    yield spans
    while isinstance(spans, Cut):
        last = spans[-1]
        spans = await call.read(lambda connection, last=last: store.more_spans(connection, trace, last))  # type: ignore[misc]
        yield spans


async def list_all(call: Call, query: TraceQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    if query.min_duration_ms is not None and not math.isfinite(query.min_duration_ms):
        raise Refusal("INVALID_REQUEST", "'min_duration_ms' must be a number.", {"field": "min_duration_ms"})
    if len(query.metadata) > MOST_FILTERS:
        raise Refusal(
            "INVALID_REQUEST",
            f"At most {MOST_FILTERS} entries of metadata can be asked for.",
            {"field": "metadata"},
        )
    narrow = store.TraceFilter(
        after=_first_key_after("after", query.created_after),
        before=_first_key("before", query.created_before),
        started_after=_own_time("started_after", query.started_after),
        started_before=_own_time("started_before", query.started_before),
        has_error=query.has_error,
        in_queue=query.in_queue,
        name=query.name,
        model=query.model,
        min_duration_ms=query.min_duration_ms,
        session_id=query.session_id,
        user_id=query.user_id,
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
    page = page_of(rows, limit, LISTING, lambda row: (row[0],))
    return json_answer(Page(items=[row for _, row in page.items], next_cursor=page.next_cursor, limit=limit))


def _own_time(name: str, text: str | None) -> int | None:
    """An instant in microseconds."""
    if text is None:
        return None
    try:
        return microseconds(parse_instant(text))
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}': {error.reason}", {"field": name}) from None


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
    return await call.write(
        partial(
            delete_trace,
            trace_id=trace_id,
            scope=call.scope,
            actor=call.access.token_id,
            project_id=query.project_id,
        )
    )


ROUTES = (
    Route(
        operation="ingest_spans",
        method="POST",
        path="/v1/traces/ingest",
        handler=ingest,
        audience="token:write",
        request=IngestRequest,
        explain_malformed=malformed_batch,
        response=SpansAccepted,
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
        operation="list_traces",
        method="GET",
        path="/v1/traces",
        handler=list_all,
        audience="token:read",
        query=TraceQuery,
        response=Page[TraceRow],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's traces, newest first",
        tag="Traces",
    ),
    Route(
        operation="get_trace",
        method="GET",
        path="/v1/traces/{trace_id}",
        handler=get,
        audience="token:read",
        query=OneTraceQuery,
        response=Trace,
        errors=("NOT_FOUND",),
        summary="Read a trace with its spans",
        tag="Traces",
    ),
    Route(
        operation="delete_trace",
        method="DELETE",
        path="/v1/traces/{trace_id}",
        handler=delete,
        audience="token:write",
        query=OneTraceQuery,
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a trace and its spans; annotations stay",
        tag="Traces",
    ),
)
