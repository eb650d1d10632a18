"""Reads spans of the native ingest and names every bad one.

The whole batch is decoded into types at once. Only if that fails is it decoded again span by span, to say which spans
are wrong and why.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, field

from evenhand.core import jsontext
from evenhand.core.errors import InputError, Refusal
from evenhand.core.spans import MAX_COST_PICO, MAX_DURATION_MS, MAX_TOKENS, PICO, SpanRecord, microseconds
from evenhand.core.timestamps import parse_instant
from evenhand.server.ingest.costs import REPORTED, PriceBook, reported
from evenhand.server.jobs.score_requests import InlineScore, malformed_score

MAX_SPANS = 10_000
MAX_ID = 200
MAX_NAME = 1_000
MAX_NAMED = 100
"""How many bad spans an answer names."""

SpanId = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
SpanText = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Cost = Annotated[float, Meta(ge=0, le=MAX_COST_PICO / PICO)]
Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]


class ErrorInput(Struct, frozen=True, kw_only=True, gc=False):
    """Why an operation failed."""

    message: str
    """What happened."""
    type: str | None = None
    """The kind of exception."""
    stack: str | None = None
    """Where it happened."""


class SpanInput(Struct, frozen=True, kw_only=True, gc=False):
    """A span as a client sends it."""

    id: SpanId
    """Unique within its trace."""
    trace_id: SpanId
    """The trace it belongs to."""
    name: SpanText
    """What the operation is called."""
    start_time: str
    """ISO 8601."""
    parent_span_id: SpanId | None = None
    """The span that caused it; absent for the root. It may arrive later."""
    end_time: str | None = None
    """ISO 8601."""
    duration_ms: float | None = None
    """Worked out from the times where both are given."""
    input: Raw = field(default_factory=Raw)
    """Any JSON."""
    output: Raw = field(default_factory=Raw)
    """Any JSON."""
    tokens_input: Tokens | None = None
    """Tokens that the model read."""
    tokens_output: Tokens | None = None
    """Tokens that the model wrote."""
    model: SpanText | None = None
    """The model that was asked for."""
    session_id: SpanText | None = None
    """The conversation that it belongs to."""
    user_id: SpanText | None = None
    """The person whom the application works for."""
    cost_usd: Cost | None = None
    """What it cost in US dollars; worked out from the prices that the server knows where it is absent."""
    metadata: Raw = field(default_factory=Raw)
    """A flat object: strings, numbers, booleans and nulls."""
    error: ErrorInput | None = None
    """Why it failed."""
    scores: Annotated[list[InlineScore], Meta(max_length=1_000)] | None = None
    """Its scores: values, or scorers that the service knows."""


class SpanFault(Exception):
    """Why one span is refused."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"field '{field}': {reason}")


_METADATA: msgspec.json.Decoder[dict[str, str | int | float | bool | None] | None] = msgspec.json.Decoder(
    dict[str, str | int | float | bool | None] | None
)
_NO_PRICES = PriceBook()
_ANY = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_AT = re.compile(r"at `\$\.(\w+)")
_MISSING = re.compile(r"Object missing required field `(\w+)`")


def checked_records(spans: Sequence[SpanInput], prices: PriceBook) -> list[SpanRecord]:
    """What will be stored; `INVALID_SPAN` naming every bad span when there is one."""
    try:
        return [record_of(span, prices) for span in spans]
    except SpanFault:
        faults: list[dict[str, Any]] = []
        for index, span in enumerate(spans):
            try:
                record_of(span, prices)
            except SpanFault as fault:
                faults.append(_named(index, span.id, fault))
        raise invalid_spans(faults) from None


def invalid_spans(faults: Sequence[dict[str, Any]]) -> Refusal:
    first = faults[0]
    more = f" ({len(faults)} spans are bad)" if len(faults) > 1 else ""
    place = f"span '{first['id']}'" if first["id"] is not None else f"span number {first['index']}"
    message = f"{place}: field '{first['field']}': {first['reason']}{more}"
    return Refusal("INVALID_SPAN", message, {**first, "spans": list(faults[:MAX_NAMED])})


def _named(index: int, span_id: str | None, fault: SpanFault) -> dict[str, Any]:
    shown = None if span_id is None else span_id[:MAX_ID]
    return {"index": index, "id": shown, "field": fault.field, "reason": fault.reason}


def wrong_count() -> Refusal:
    message = f"'spans' must hold 1 to {MAX_SPANS} spans."
    return Refusal("INVALID_REQUEST", message, {"field": "spans", "limit": MAX_SPANS})


def malformed_batch(body: bytes, error: Exception) -> Exception:
    """Why the batch could not be decoded: `INVALID_SPAN` where spans are to blame, otherwise `error`."""
    error = malformed_score(body, error)
    if not _is_utf8(body):
        return error
    try:
        spans = jsontext.decode(body, type=_Loose).spans
    except InputError:
        return error
    if len(spans) > MAX_SPANS:
        return wrong_count()
    faults: list[dict[str, Any]] = []
    for index, text in enumerate(spans):
        try:
            record_of(_readable(_typed(bytes(text))), _NO_PRICES)
        except SpanFault as fault:
            faults.append(_named(index, _id_of(bytes(text)), fault))
    return invalid_spans(faults) if faults else error


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Loose(Struct):
    spans: list[Raw]


class _OnlyId(Struct):
    id: str


def _id_of(text: bytes) -> str | None:
    try:
        return msgspec.json.decode(text, type=_OnlyId).id
    except msgspec.DecodeError:
        return None


def _typed(text: bytes) -> SpanInput:
    try:
        return msgspec.json.decode(text, type=SpanInput)
    except msgspec.DecodeError as error:
        message = str(error)
        inside, missing = _AT.search(message), _MISSING.match(message)
        if missing and not inside:
            raise SpanFault(missing.group(1), "it is required") from None
        raise SpanFault(inside.group(1) if inside else "span", message.split(" - at ")[0]) from None


def _readable(span: SpanInput) -> SpanInput:
    """The span, of a batch that was refused as a whole; `SpanFault` if it is the cause."""
    for name in ("id", "trace_id", "parent_span_id", "name", "model", "session_id", "user_id"):
        if "\x00" in (getattr(span, name) or ""):
            raise SpanFault(name, "the character NUL is not possible here")
    for name in ("input", "output", "metadata"):
        try:
            _ANY.decode(getattr(span, name) or b"null")
        except msgspec.DecodeError as error:
            raise SpanFault(name, str(error)) from None
    return span


def record_of(span: SpanInput, prices: PriceBook) -> SpanRecord:
    """The span, checked; `SpanFault` says what is wrong with it.

    Lengths were checked by the decoder. That no name holds a NUL and that all numbers in free JSON can be read was
    checked for the whole batch.
    """
    model = span.model
    if span.name.isspace():
        raise SpanFault("name", "it is empty")
    if model is not None and model.isspace():
        raise SpanFault("model", "it is empty")
    cost, cost_source = (
        prices.cost(model, span.tokens_input, span.tokens_output)
        if span.cost_usd is None
        else (reported(span.cost_usd), REPORTED)
    )
    start = _instant("start_time", span.start_time)
    end = None if span.end_time is None else _instant("end_time", span.end_time)
    if end is not None and end < start:
        raise SpanFault("end_time", "it is before start_time")
    return SpanRecord(
        id=span.id,
        trace_id=span.trace_id,
        name=span.name,
        start_us=start,
        parent_span_id=span.parent_span_id,
        end_us=end,
        duration_ms=_given_duration(span) if end is None else (end - start) / 1000,
        input=_text(span.input),
        output=_text(span.output),
        tokens_input=span.tokens_input,
        tokens_output=span.tokens_output,
        model=model,
        session_id=span.session_id,
        user_id=span.user_id,
        cost_pico=cost,
        cost_source=cost_source,
        metadata=_flat(span.metadata),
        error=None if span.error is None else _ENCODER.encode(span.error).decode(),
    )


def _instant(field: str, text: str) -> int:
    try:
        return microseconds(parse_instant(text))
    except InputError as error:
        raise SpanFault(field, error.reason) from None


def _given_duration(span: SpanInput) -> float | None:
    given = span.duration_ms
    if given is not None and not 0 <= given <= MAX_DURATION_MS:
        raise SpanFault("duration_ms", f"it must be a number from 0 to {MAX_DURATION_MS:.0f}")
    return given


def _text(value: Raw) -> str | None:
    text = str(value, "utf-8")
    return None if text in ("", "null") else text


def _flat(value: Raw) -> str:
    text = str(value, "utf-8")
    if text in ("", "null"):
        return "{}"
    # One brace and no bracket: nothing can be nested. The others may have them in strings.
    if text.rfind("{") == 0 and "[" not in text:
        return text
    try:
        _METADATA.decode(value)
    except msgspec.DecodeError as error:
        found = re.search(r"`\$\[\.\.\.\]", str(error))
        reason = "its values must be strings, numbers, booleans or null" if found else str(error)
        raise SpanFault("metadata", reason) from None
    return text
