"""From OTLP spans to ours: which attribute means what (docs/traces.md has the table).

An attribute that was used is not repeated in the metadata; every other one is there, nested ones flattened with dots.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from evenhand.core.spans import MAX_TOKENS, SpanRecord
from evenhand.server.ingest.costs import REPORTED, Cost, PriceBook, reported
from evenhand.server.ingest.otlp_texts import take_texts
from evenhand.server.ingest.otlp_wire import KINDS, NO_TIME, STATUS_ERROR, Origin, WireEvent, WireSpan

MODELS = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "llm.model_name",
    "embedding.model_name",
    "langfuse.observation.model.name",
    "ai.model.id",
    "mlflow.llm.model",
    "llm.request.model",
)
TOKENS_INPUT = (
    "gen_ai.usage.input_tokens",
    "llm.token_count.prompt",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.aggregated_usage.input_tokens",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "ai.usage.tokens",
    "llm.usage.prompt_tokens",
)
TOKENS_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "llm.token_count.completion",
    "gen_ai.usage.completion_tokens",
    "gen_ai.aggregated_usage.output_tokens",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "llm.usage.completion_tokens",
)
USAGE = (
    "langfuse.observation.usage_details",
    "mlflow.chat.tokenUsage",
)
"""Attributes that hold both counts in one JSON object."""
_USAGE_INPUT = ("prompt_tokens", "input_tokens", "input")
_USAGE_OUTPUT = ("completion_tokens", "output_tokens", "output")
CONTAINERS: dict[str, frozenset[str]] = {
    "gen_ai.operation.name": frozenset(("invoke_agent", "create_agent", "invoke_workflow", "execute_tool")),
    "ai.operationId": frozenset(
        f"ai.{name}"
        for name in ("generateText", "streamText", "generateObject", "streamObject", "embed", "embedMany")
    ),
    "openinference.span.kind": frozenset(("AGENT", "CHAIN", "TOOL", "RETRIEVER", "GUARDRAIL", "EVALUATOR")),
    "traceloop.span.kind": frozenset(("workflow", "agent", "task", "tool")),
    "langfuse.observation.type": frozenset(
        ("span", "agent", "chain", "tool", "retriever", "evaluator", "guardrail")
    ),
    "mlflow.spanType": frozenset(("AGENT", "CHAIN", "WORKFLOW", "TASK", "TOOL")),
}
"""Which spans only hold model calls: tokens that they report are those of the calls below them."""
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
ERROR_TYPE = "error.type"
MLFLOW_TYPE = "mlflow.spanType"
MLFLOW_CALLS = ("CHAT_MODEL", "LLM", "EMBEDDING")
UNNAMED = "(unnamed)"
NO_TRACE, NO_SPAN = "0" * 32, "0" * 16
MAX_NAME = 1_000

_NESTED = (dict, list)
_ENCODER = msgspec.json.Encoder()


class Rejected(Exception):
    """A span that cannot be stored, with the reason."""


def to_record(wire: WireSpan, received_us: int, prices: PriceBook) -> SpanRecord:
    """Our span; `Rejected` when it has no usable ids. Attributes and events that are used are removed from `wire`."""
    parent = _parent(wire)
    attributes, events = wire.attributes, wire.events
    error = (
        _error(wire, events)
        if events or wire.status_code == STATUS_ERROR or ERROR_TYPE in attributes
        else None
    )
    if MLFLOW_TYPE in attributes:
        _unquote(attributes)
    read, written = take_texts(attributes, events)
    start_us, end_us, duration_ms, skewed = _times(wire, received_us)
    model = _text(attributes, MODELS) or _requested_model(attributes)
    is_total = _is_container(attributes)
    tokens_input, tokens_output = _count(attributes, TOKENS_INPUT), _count(attributes, TOKENS_OUTPUT)
    if tokens_input is None and tokens_output is None:
        tokens_input, tokens_output = _usage(attributes)
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
        is_total=int(is_total and (model, tokens_input, tokens_output, cost) != (None, None, None, None)),
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
    kind = wire.attributes.pop(ERROR_TYPE, None)
    if kind:
        return {"message": wire.status_message or str(kind), "type": str(kind)}
    if wire.status_code == STATUS_ERROR:
        return {"message": wire.status_message or "error"}
    return None


def _unquote(attributes: dict[str, Any]) -> None:
    """MLflow writes every attribute as JSON, texts too: `"CHAT_MODEL"` with its quotation marks."""
    for name, value in attributes.items():
        if (
            isinstance(value, str)
            and value[:1] == '"'
            and name not in ("mlflow.spanInputs", "mlflow.spanOutputs")
        ):
            try:
                attributes[name] = msgspec.json.decode(value)
            except msgspec.DecodeError:
                continue


def _requested_model(attributes: dict[str, Any]) -> str | None:
    """The model that a call asked for, of a call that got no answer to name one."""
    parameters = attributes.get("llm.invocation_parameters")
    if isinstance(parameters, str):
        try:
            parameters = msgspec.json.decode(parameters)
        except msgspec.DecodeError:
            return None
    if isinstance(parameters, dict):
        return _text(parameters, ("model", "model_name"))
    return _text(attributes, ("model",)) if attributes.get(MLFLOW_TYPE) in MLFLOW_CALLS else None


def _is_container(attributes: Mapping[str, Any]) -> bool:
    for name in attributes.keys() & CONTAINERS.keys():
        kind = attributes[name]
        if isinstance(kind, str) and kind in CONTAINERS[name]:
            return True
    return False


def _usage(attributes: dict[str, Any]) -> tuple[int | None, int | None]:
    """Both counts of tokens from an attribute that holds them together."""
    for name in attributes.keys() & set(USAGE):
        usage = attributes[name]
        try:
            counts = msgspec.json.decode(usage) if isinstance(usage, str) else usage
        except msgspec.DecodeError:
            continue
        if isinstance(counts, dict):
            found = _count(counts, _USAGE_INPUT), _count(counts, _USAGE_OUTPUT)
            if found != (None, None):
                return found
    return None, None


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
    for index, link in enumerate(wire.links):
        flat[f"link.{index}.trace_id"] = link.trace_id
        flat[f"link.{index}.span_id"] = link.span_id
        flatten(f"link.{index}", link.attributes, flat)
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
        if origin.scope_version:
            flat["otel.scope.version"] = origin.scope_version
        for name, value in origin.scope_attributes.items():
            flatten(f"otel.scope.{name}", value, flat)
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
