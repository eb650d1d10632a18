"""OTLP over HTTP: `OTEL_EXPORTER_OTLP_ENDPOINT` pointed at the server just works.

Every answer, errors included, is in the request's own encoding, as OTLP asks. What an exporter may retry is 429 or 503
with `Retry-After`; a full disk is 503 here, because exporters throw away what is refused with 507.
"""

import asyncio
import time
from collections.abc import Mapping
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
from evenhand.server.ingest.otlp_wire import (
    JSON,
    PROTOBUF,
    read_json,
    read_protobuf,
    response_body,
    status_body,
)
from evenhand.store.arrivals import Batch, prepare
from evenhand.store.ingest import faults_of, store_export, store_exports

NAMED = 5
"""How many rejected spans a partial success explains."""
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
    limits = call.service.config.limits
    body = await read_body(call.receive, call.headers, limit_for(call.route, limits), call.service.budget)
    call.take_fingerprint(body)
    project_id, received_us = span_project(call, None), time.time_ns() // 1000
    if len(body) > OFF_LOOP_BYTES:
        batch, reasons = await asyncio.to_thread(
            _batch, project_id, call.media_type, body, received_us, call.service.prices
        )
    else:
        batch, reasons = _batch(project_id, call.media_type, body, received_us, call.service.prices)
    if reasons and not batch.spans:
        raise InputError(_explain(reasons))
    if batch.spans:
        reasons += await _store(call, batch)
    return Answer(
        200,
        response_body(call.media_type, len(reasons), _explain(reasons)),
        content_type=call.media_type.encode(),
    )


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


async def _store(call: Call, batch: Batch) -> list[str]:
    if call.idempotency_key is not None:
        answer = await call.write(partial(store_export, sender=sender_of(call), batch=batch))
        call.service.jobs.wake()
        return msgspec.json.decode(answer.body, type=list[str])
    result = await call.service.database.write_item(store_exports, (sender_of(call), batch))
    if result.job_count:
        call.service.jobs.wake()
    return faults_of(result)


def _explain(reasons: list[str]) -> str:
    more = f"; and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return "; ".join(reasons[:NAMED]) + more


def rpc_error(error: Exception, headers: Mapping[bytes, bytes]) -> Answer:
    """The error as a `Status` in the request's encoding."""
    given = headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower()
    media_type = JSON if given == JSON.encode() else PROTOBUF
    known = answer_for(error)
    status = 503 if isinstance(error, StoreFull) else 500 if known is None else known.status
    sent = [] if known is None else [pair for pair in known.headers if pair[0] != b"content-type"]
    if status == 503 and not sent:
        sent = [(b"retry-after", str(RETRY_AFTER["UNAVAILABLE"]).encode())]
    is_ours = isinstance(error, InputError | Refusal)
    message = str(error) if is_ours else "the server cannot store spans just now"
    code = _RPC_CODES.get(status, UNAVAILABLE if status == 503 else INTERNAL)
    return Answer(
        status, status_body(media_type, code, message), content_type=media_type.encode(), headers=sent
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/traces",
        handler=export,
        audience="token:write",
        reads_body=True,
        media_types=(PROTOBUF, JSON),
        body_limit="otlp",
        render_error=rpc_error,
        errors=("NOT_FOUND",),
        summary="Store spans sent by an OpenTelemetry exporter (OTLP/HTTP, protobuf or JSON)",
        tag="Traces",
    ),
)
