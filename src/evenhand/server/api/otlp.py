"""OTLP over HTTP: `OTEL_EXPORTER_OTLP_ENDPOINT` pointed at the server just works.

Every answer, errors included, is in the request's own encoding, as OTLP asks. What an exporter may retry is 429 or 503
with `Retry-After`; a full disk is 503 here, because exporters throw away what is refused with 507.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import msgspec

from evenhand.core.errors import InputError, Refusal, StoreFull
from evenhand.core.spans import SpanRecord
from evenhand.server.api.traces import sender_of, span_project
from evenhand.server.call import Call
from evenhand.server.http.answers import RETRY_AFTER, Answer, answer_for
from evenhand.server.http.bodies import OFF_LOOP_BYTES, limit_for, read_body
from evenhand.server.http.routes import Route
from evenhand.server.ingest.costs import PriceBook
from evenhand.server.ingest.otlp import Rejected, to_record
from evenhand.server.ingest.otlp_logs import NOT_KEPT, span_texts
from evenhand.server.ingest.otlp_replies import (
    DATA_POINTS,
    JSON,
    LOG_RECORDS,
    PROTOBUF,
    SPANS,
    response_body,
    status_body,
)
from evenhand.server.ingest.otlp_wire import read_json, read_json_logs, read_protobuf, read_protobuf_logs
from evenhand.server.service import Service
from evenhand.store.arrivals import Batch, prepare
from evenhand.store.ingest import Sender, faults_of, store_export, store_exports, store_texts
from evenhand.store.projects import not_found
from evenhand.store.texts import SpanText, Texts

NAMED = 5
"""How many rejected spans a partial success explains."""
NO_METRICS = "metrics are not kept; set OTEL_METRICS_EXPORTER=none, or send them to a metrics store"
LANGFUSE_TRACES = "/api/public/otel/v1/traces"
"""Where the SDK of Langfuse sends spans, below the address that it is given."""
INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = 3, 4, 5, 6, 7
RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 8, 13, 14, 16
_RPC_CODES = {
    400: INVALID_ARGUMENT,
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: NOT_FOUND,
    408: DEADLINE_EXCEEDED,
    409: ALREADY_EXISTS,
    413: RESOURCE_EXHAUSTED,
    415: INVALID_ARGUMENT,
    429: RESOURCE_EXHAUSTED,
}


async def export(call: Call) -> Answer:
    """Store what can be stored, and say how many spans could not."""
    body = await _body(call)

    async def store(batch: Batch) -> list[str]:
        if call.idempotency_key is None:
            return await store_batch(call.service, sender_of(call), batch)
        answer = await call.write(partial(store_export, sender=sender_of(call), batch=batch))
        call.service.jobs.wake()
        return msgspec.json.decode(answer.body, type=list[str])

    reasons = await take_spans(call.service, span_project(call, None), call.media_type, body, store)
    return _answer(call, len(reasons), explain(reasons), SPANS)


async def export_logs(call: Call) -> Answer:
    """Give spans the messages that come as log records; say how many other records there were."""
    project_id = _own_project(call)
    body = await _body(call)

    async def store(texts: Texts) -> list[str]:
        work = partial(store_texts, sender=sender_of(call), texts=texts)
        if call.idempotency_key is None:
            return await call.service.database.write(work)
        return msgspec.json.decode((await call.write(work)).body, type=list[str])

    rejected, message = await take_logs(project_id, call.media_type, body, store)
    return _answer(call, rejected, message, LOG_RECORDS)


async def export_metrics(call: Call) -> Answer:
    """Read and forget: exporters that send all signals to one address need not fail over this one."""
    _own_project(call)
    await _body(call)
    await call.respond_idempotently([])  # metrics leave nothing but the key that they were sent with
    return _answer(call, 0, NO_METRICS, DATA_POINTS)


def _own_project(call: Call) -> str:
    """Where records go; `NOT_FOUND` for a project that the token does not belong to, even where nothing is stored."""
    project_id = span_project(call, None)
    if call.scope not in (None, project_id):
        raise not_found("project", project_id)
    return project_id


async def _body(call: Call) -> bytes:
    limits = call.service.config.limits
    body = await read_body(call.receive, call.headers, limit_for(call.route, limits), call.service.budget)
    call.take_fingerprint(body)
    return body


def _answer(call: Call, rejected: int, message: str, counted: str) -> Answer:
    body = response_body(call.media_type, rejected, message, counted)
    return Answer(200, body, content_type=call.media_type.encode())


async def take_spans(
    service: Service,
    project_id: str,
    media_type: str,
    body: bytes,
    store: Callable[[Batch], Awaitable[list[str]]],
) -> list[str]:
    """Store the spans of a request; why some of them were left out. `InputError` when none can be stored."""
    read = partial(_batch, project_id, media_type, body, time.time_ns() // 1000, service.prices)
    batch, reasons = await asyncio.to_thread(read) if len(body) > OFF_LOOP_BYTES else read()
    if reasons and not batch.spans:
        raise InputError(explain(reasons))
    return reasons + (await store(batch) if batch.spans else [])


def _batch(
    project_id: str, media_type: str, body: bytes, received_us: int, prices: PriceBook
) -> tuple[Batch, list[str]]:
    """The spans that can be stored, and why the others cannot."""
    records: list[SpanRecord] = []
    reasons: list[str] = []
    for wire in read_json(body) if media_type == JSON else read_protobuf(body):
        try:
            records.append(to_record(wire, received_us, prices))
        except Rejected as error:
            reasons.append(str(error))
    return prepare(project_id, records), reasons


async def store_batch(service: Service, sender: Sender, batch: Batch) -> list[str]:
    """Store a batch of an exporter; why spans were left out."""
    result = await service.database.write_item(store_exports, (sender, batch))
    if result.job_count:
        service.jobs.wake()
    return faults_of(result)


async def take_logs(
    project_id: str, media_type: str, body: bytes, store: Callable[[Texts], Awaitable[list[str]]]
) -> tuple[int, str]:
    """Store the messages of spans in a request; how many records were left out, and why."""
    texts, left_out = (
        await asyncio.to_thread(_read_logs, media_type, body)
        if len(body) > OFF_LOOP_BYTES
        else _read_logs(media_type, body)
    )
    reasons = [NOT_KEPT] if left_out else []
    if texts:
        full = await store(Texts(project_id, texts))
        reasons += full
        left_out += len(full)
    return left_out, explain(reasons)


def _read_logs(media_type: str, body: bytes) -> tuple[list[SpanText], int]:
    return span_texts(read_json_logs(body) if media_type == JSON else read_protobuf_logs(body))


def explain(reasons: list[str]) -> str:
    """The first reasons, and how many more there are."""
    more = f"; and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return "; ".join(reasons[:NAMED]) + more


def rpc_status(error: Exception) -> tuple[int, int, str]:
    """The HTTP status, the code of gRPC and the message for an error."""
    known = answer_for(error)
    status = 503 if isinstance(error, StoreFull) else 500 if known is None else known.status
    is_ours = isinstance(error, InputError | Refusal)
    message = str(error) if is_ours else "the server cannot store spans just now"
    return status, _RPC_CODES.get(status, UNAVAILABLE if status == 503 else INTERNAL), message


def rpc_error(error: Exception, headers: Mapping[bytes, bytes]) -> Answer:
    """The error as a `Status` in the request's encoding."""
    given = headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower()
    media_type = JSON if given == JSON.encode() else PROTOBUF
    status, code, message = rpc_status(error)
    known = answer_for(error)
    sent = [] if known is None else [pair for pair in known.headers if pair[0] != b"content-type"]
    if status == 503 and not sent:
        sent = [(b"retry-after", str(RETRY_AFTER["UNAVAILABLE"]).encode())]
    return Answer(
        status, status_body(media_type, code, message), content_type=media_type.encode(), headers=sent
    )


def _route(
    operation: str,
    path: str,
    handler: Callable[[Call], Awaitable[Answer]],
    summary: str,
    *,
    basic: bool = False,
) -> Route:
    return Route(
        operation=operation,
        method="POST",
        path=path,
        handler=handler,
        audience="token:write",
        takes_basic=basic,
        reads_body=True,
        body_text="An OTLP export request, as an OpenTelemetry exporter writes it.",
        media_types=(PROTOBUF, JSON),
        body_limit="otlp",
        render_error=rpc_error,
        errors=("NOT_FOUND",),
        summary=summary,
        tag="Traces",
    )


ROUTES = (
    _route(
        "export_otlp_traces",
        "/v1/traces",
        export,
        "Store spans sent by an OpenTelemetry exporter (OTLP/HTTP, protobuf or JSON)",
    ),
    _route(
        "export_otlp_logs",
        "/v1/logs",
        export_logs,
        "Give spans the messages that an OpenTelemetry exporter sends as log records; other records are not kept",
    ),
    _route(
        "export_otlp_metrics",
        "/v1/metrics",
        export_metrics,
        "Answer an OpenTelemetry exporter of metrics, which are not kept",
    ),
    _route(
        "export_langfuse_traces",
        LANGFUSE_TRACES,
        export,
        "Store spans sent by the SDK of Langfuse",
        basic=True,
    ),
)
