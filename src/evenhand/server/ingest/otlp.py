"""From OTLP spans to ours: which attribute means what.

Conventions that are understood, in this order of preference:

| ours | OpenTelemetry GenAI | OpenInference | older |
|---|---|---|---|
| model | gen_ai.request.model, gen_ai.response.model | llm.model_name, embedding.model_name | |
| tokens_input | gen_ai.usage.input_tokens | llm.token_count.prompt | gen_ai.usage.prompt_tokens |
| tokens_output | gen_ai.usage.output_tokens | llm.token_count.completion | gen_ai.usage.completion_tokens |
| input | gen_ai.input.messages | input.value | gen_ai.prompt (event or attribute), gen_ai.prompt.N.* |
| output | gen_ai.output.messages | output.value | gen_ai.completion (the same) |
| error | exception event, else an error status | | |

An attribute that was used is not repeated in the metadata; every other one is there, nested ones flattened with dots.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.core.spans import MAX_TOKENS, SpanRecord
from evenhand.server.ingest.costs import REPORTED, Cost, PriceBook, reported
from evenhand.server.ingest.otlp_wire import KINDS, NO_TIME, STATUS_ERROR, Origin, WireEvent, WireSpan

MODELS = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "embedding.model_name")
TOKENS_INPUT = ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens")
TOKENS_OUTPUT = ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens")
SESSIONS = (
    "session.id",
    "langfuse.session.id",
    "gen_ai.conversation.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.sessionId",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session_id",
    "mlflow.trace.session",
    "langsmith.trace.session_id",
)
USERS = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "traceloop.association.properties.userId",
    "ai.telemetry.metadata.userId",
    "ai.telemetry.metadata.user_id",
    "mlflow.trace.user",
)
COSTS = (
    "gen_ai.usage.cost",
    "gen_ai.usage.total_cost",
    "llm.usage.total_cost",
    "llm.cost.total",
    "operation.cost",
    "langfuse.observation.cost_details",
    "mlflow.llm.cost",
)
CACHE_READS = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)
CACHE_WRITES = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
_NAMED_SESSIONS, _NAMED_USERS, _NAMED_COSTS = frozenset(SESSIONS), frozenset(USERS), frozenset(COSTS)
_CACHED = frozenset((*CACHE_READS, *CACHE_WRITES))
UNNAMED = "(unnamed)"
NO_TRACE, NO_SPAN = "0" * 32, "0" * 16
MAX_NAME = 1_000

_NESTED = (dict, list)
_ENCODER = msgspec.json.Encoder()


class Places(NamedTuple):
    """Where an input (or output) may be found."""

    messages: str
    value: str
    mime_type: str
    older: str
    events: tuple[str, ...]


INPUT = Places(
    "gen_ai.input.messages",
    "input.value",
    "input.mime_type",
    "gen_ai.prompt",
    ("gen_ai.prompt", "gen_ai.content.prompt"),
)
OUTPUT = Places(
    "gen_ai.output.messages",
    "output.value",
    "output.mime_type",
    "gen_ai.completion",
    ("gen_ai.completion", "gen_ai.content.completion"),
)


class Rejected(Exception):
    """A span that cannot be stored, with the reason."""


def to_record(wire: WireSpan, received_us: int, prices: PriceBook) -> SpanRecord:
    """Our span; `Rejected` when it has no usable ids. Attributes and events that are used are removed from `wire`."""
    parent = _parent(wire)
    attributes, events = wire.attributes, wire.events
    error = _error(wire, events) if events or wire.status_code == STATUS_ERROR else None
    read = _content(attributes, events, INPUT)
    written = _content(attributes, events, OUTPUT)
    start_us, end_us, duration_ms, skewed = _times(wire, received_us)
    model = _text(attributes, MODELS)
    tokens_input, tokens_output = _count(attributes, TOKENS_INPUT), _count(attributes, TOKENS_OUTPUT)
    cost, cost_source = _cost(attributes, model, tokens_input, tokens_output, prices)
    names = attributes.keys()
    return SpanRecord(
        id=wire.span_id,
        trace_id=wire.trace_id,
        parent_span_id=parent,
        name=_storable(wire.name)[:MAX_NAME] or UNNAMED,
        start_us=start_us,
        end_us=end_us,
        duration_ms=duration_ms,
        model=model,
        tokens_input=tokens_input,
        tokens_output=tokens_output,
        session_id=None if names.isdisjoint(_NAMED_SESSIONS) else _text(attributes, SESSIONS),
        user_id=None if names.isdisjoint(_NAMED_USERS) else _text(attributes, USERS),
        cost_pico=cost,
        cost_source=cost_source,
        input=read,
        output=written,
        error=None if error is None else _ENCODER.encode(error).decode(),
        metadata=_ENCODER.encode(_metadata(wire, attributes, events)).decode(),
        clock_skew=int(skewed),
    )


def _parent(wire: WireSpan) -> str | None:
    """The parent's id, None for a root; `Rejected` unless all ids are as OTLP defines them."""
    trace_id, span_id, parent = wire.trace_id, wire.span_id, wire.parent_span_id
    if len(trace_id) != 32 or trace_id == NO_TRACE:
        raise Rejected(f"span '{span_id[:32]}': the trace id must be 16 bytes and not all zero")
    if len(span_id) != 16 or span_id == NO_SPAN:
        raise Rejected(f"a span of trace '{trace_id}': the span id must be 8 bytes and not all zero")
    if len(parent) == 16 and parent != NO_SPAN:
        return parent
    if parent.strip("0"):
        raise Rejected(f"span '{span_id}': the parent span id must be 8 bytes")
    return None


def _times(wire: WireSpan, received_us: int) -> tuple[int, int | None, float | None, bool]:
    """Start, end, duration and whether the client's clock was impossible."""
    if NO_TIME in (wire.start_ns, wire.end_ns):
        raise Rejected(f"span '{wire.span_id}': its times are not nanoseconds since 1970")
    end_us = wire.end_ns // 1000 if wire.end_ns else None
    if not wire.start_ns:
        return (received_us if end_us is None else end_us), end_us, None if end_us is None else 0.0, True
    start_us = wire.start_ns // 1000
    if end_us is None:
        return start_us, None, None, False
    if wire.end_ns < wire.start_ns:
        return start_us, end_us, 0.0, True
    return start_us, end_us, (wire.end_ns - wire.start_ns) / 1e6, False


def _storable(text: str) -> str:
    # PostgreSQL's text has no NUL; a span is not lost over one in its name.
    return text.replace("\x00", "\ufffd")


def _text(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            del attributes[name]
            return _storable(value)[:MAX_NAME]
    return None


def _count(attributes: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = attributes.get(name)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value <= MAX_TOKENS:  # True is no number of tokens
            del attributes[name]
            return value
    return None


def _cost(
    attributes: dict[str, Any],
    model: str | None,
    tokens_input: int | None,
    tokens_output: int | None,
    prices: PriceBook,
) -> Cost:
    """What the provider reports, else what the tokens cost by the prices that are known."""
    if not attributes.keys().isdisjoint(_NAMED_COSTS):
        for name in COSTS:
            pico = reported(_total(attributes.get(name)))
            if pico is not None:
                del attributes[name]
                return pico, REPORTED
    cached = written = 0
    if not attributes.keys().isdisjoint(_CACHED):
        # They stay in the metadata: a span has no field of its own for them.
        cached, written = _first_count(attributes, CACHE_READS), _first_count(attributes, CACHE_WRITES)
    return prices.cost(model, tokens_input, tokens_output, cached, written)


def _total(value: Any) -> Any:
    """The sum in a cost that is given with its parts (`{"input": …, "output": …, "total": …}`)."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return None
    if not isinstance(value, dict):
        return value
    given = value.get("total", value.get("total_cost"))
    if given is not None or not value:
        return given
    parts = [reported(part) for part in value.values()]
    return None if None in parts else str(Decimal(sum(part or 0 for part in parts)).scaleb(-12))


def _first_count(attributes: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((value for name in names if type(value := attributes.get(name)) is int and value > 0), 0)


def _content(attributes: dict[str, Any], events: list[WireEvent], places: Places) -> str | None:
    """The input (or output) from the first place that has it, as JSON text; it is removed there."""
    if places.messages in attributes:
        return _json_text(attributes.pop(places.messages))
    if places.value in attributes:
        value = attributes.pop(places.value)
        # OpenInference says beside the value what it is; the note is of no use once the value was read.
        is_json = attributes.pop(places.mime_type, None) == "application/json"
        return _json_text(value) if is_json else _ENCODER.encode(value).decode()
    for event in events:
        found = event.attributes.get(places.messages)
        if found is None and event.name in places.events:
            found = event.attributes.get(places.older)
        if found is not None:
            events.remove(event)
            return _json_text(found)
    if places.older in attributes:
        return _json_text(attributes.pop(places.older))
    messages = _indexed(attributes, places.older + ".")
    return _ENCODER.encode(messages).decode() if messages else None


def _json_text(value: Any) -> str:
    """JSON text of an attribute; one that carries JSON in a string is unpacked."""
    if isinstance(value, str):
        try:
            jsontext.decode(value)
        except InputError:
            pass  # a plain string after all
        else:
            return value
    return _ENCODER.encode(value).decode()


def _indexed(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`gen_ai.prompt.0.role`, `gen_ai.prompt.0.content`, ... as a list of messages, taken out of `attributes`."""
    rows: dict[int, dict[str, Any]] = {}
    for name in [name for name in attributes if name.startswith(prefix)]:
        index, _, rest = name[len(prefix) :].partition(".")
        if index.isascii() and index.isdigit() and len(index) < 6 and rest:
            rows.setdefault(int(index), {})[rest] = attributes.pop(name)
    return [rows[index] for index in sorted(rows)]


def _error(wire: WireSpan, events: list[WireEvent]) -> dict[str, str] | None:
    """The last recorded exception, else the message of an error status."""
    for event in reversed(events):
        if event.name == "exception":
            events.remove(event)
            found = event.attributes
            error = {"message": str(found.get("exception.message", "")) or wire.status_message or "error"}
            if kind := found.get("exception.type"):
                error["type"] = str(kind)
            if stack := found.get("exception.stacktrace"):
                error["stack"] = str(stack)
            return error
    if wire.status_code == STATUS_ERROR:
        return {"message": wire.status_message or "error"}
    return None


def _metadata(wire: WireSpan, attributes: Mapping[str, Any], events: list[WireEvent]) -> dict[str, Any]:
    flat = _common(wire.origin).copy()
    if 1 < wire.kind < len(KINDS):
        flat["otel.span.kind"] = KINDS[wire.kind]
    if len(wire.name) > MAX_NAME:
        flat["otel.span.name"] = wire.name
    for name, value in attributes.items():
        if isinstance(value, _NESTED):
            flatten(name, value, flat)
        else:
            flat[name] = value
    for index, event in enumerate(events):
        flat[f"event.{index}.name"] = event.name
        flat[f"event.{index}.time_unix_nano"] = event.time_ns
        flatten(f"event.{index}", event.attributes, flat)
    return flat


def _common(origin: Origin) -> dict[str, Any]:
    if origin.common is None:
        flat: dict[str, Any] = {}
        for name, value in origin.attributes.items():
            if not name.startswith("telemetry.sdk."):
                flatten(name, value, flat)
        if origin.scope:
            flat["otel.scope.name"] = origin.scope
        origin.common = flat
    return origin.common


def flatten(name: str, value: Any, into: dict[str, Any]) -> None:
    """Put `value` into `into`; objects and arrays become `name.key` and `name.0`, empty ones their JSON text."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            flatten(f"{name}.{key}", item, into)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            flatten(f"{name}.{index}", item, into)
    elif isinstance(value, dict | list):
        into[name] = "{}" if isinstance(value, dict) else "[]"
    else:
        into[name] = value
