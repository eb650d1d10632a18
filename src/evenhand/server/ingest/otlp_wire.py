"""OTLP trace requests off the wire: protobuf and JSON both end in `WireSpan`.

The two encodings differ in three ways that matter: JSON writes ids in hexadecimal (protobuf in bytes), 64-bit
integers as strings or numbers, and bytes in base64. NaN and infinite doubles become the strings "NaN", "Infinity"
and "-Infinity", because JSON cannot carry them and a span must not be lost over an attribute.
"""

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.server.ingest.otlp_limits import (
    LOGS,
    MAX_PARTS,
    UNCOUNTED_BYTES,
    PartCounter,
    count_parts,
    malformed,
    too_many_parts,
)

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

STATUS_ERROR = 2
NO_TIME = -1
"""A time that could not be read: the span is rejected, the others are not."""
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


class WireEvent(Struct, kw_only=True, gc=False):
    """Something that happened during a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


class WireLink(Struct, kw_only=True, gc=False):
    """Another span that a span belongs with."""

    trace_id: str
    span_id: str
    attributes: dict[str, Any]


class WireLog(Struct, kw_only=True, gc=False):
    """A log record, independent of the encoding."""

    name: str
    """The event's name; empty for a plain line of a log."""
    trace_id: str
    span_id: str
    time_ns: int
    body: Any
    attributes: dict[str, Any]


class Origin(Struct, kw_only=True, gc=False):
    """The resource and scope that a group of spans shares."""

    attributes: dict[str, Any]
    """`service.name` and so on."""
    scope: str
    """The instrumentation library."""
    scope_version: str = ""
    """Its version."""
    scope_attributes: dict[str, Any] = {}
    """What it says about itself."""
    common: dict[str, Any] | None = None
    """Metadata that all spans share; computed with the first one."""


class WireSpan(Struct, kw_only=True, gc=False):
    """A span, independent of the encoding. The mapping removes the attributes and events that it uses."""

    trace_id: str
    """Hexadecimal, possibly of the wrong length."""
    span_id: str
    """The same."""
    parent_span_id: str
    """The same; empty or all zero for a root."""
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: list[WireEvent]
    status_code: int
    status_message: str
    origin: Origin
    links: list[WireLink] = []


def plain_double(value: float) -> float | str:
    """The number itself, or the name of what JSON cannot carry."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def read_protobuf(body: bytes) -> Iterator[WireSpan]:
    """The spans of an `ExportTraceServiceRequest`; `InputError` when the bytes are none, `PAYLOAD_TOO_LARGE` when they
    hold too much."""
    if len(body) > UNCOUNTED_BYTES:
        count_parts(body)
    return _proto_spans(_parsed(body), PartCounter(len(body)))


def _parsed(body: bytes) -> "ExportTraceServiceRequest":
    # protobuf takes a third of a second to import: servers that never see it should start without.
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise malformed() from None
    return request


def _proto_spans(request: "ExportTraceServiceRequest", counter: PartCounter) -> Iterator[WireSpan]:
    counter.add(len(request.resource_spans))
    for group in request.resource_spans:
        pairs = group.resource.attributes
        counter.add(len(pairs) + len(group.scope_spans))
        resource = _proto_attributes(pairs)
        for scoped in group.scope_spans:
            counter.add(len(scoped.spans) + len(scoped.scope.attributes))
            origin = Origin(
                attributes=resource,
                scope=scoped.scope.name,
                scope_version=scoped.scope.version,
                scope_attributes=_proto_attributes(scoped.scope.attributes),
            )
            for span in scoped.spans:
                yield _proto_span(span, origin, counter)


# Each access to a sub-message creates an object, so avoid needless ones. Slicing a repeated field gives a list, which
# is faster to iterate than the field itself.
def _proto_span(span: "Span", origin: Origin, counter: PartCounter) -> WireSpan:
    pairs, events, links = span.attributes, span.events, span.links
    counter.add(len(pairs) + len(events) + len(links))
    code, message = (span.status.code, span.status.message) if span.HasField("status") else (0, "")
    return WireSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_proto_attributes(pairs),
        events=[
            WireEvent(
                name=event.name, time_ns=event.time_unix_nano, attributes=_proto_attributes(event.attributes)
            )
            for event in events[:]
        ],
        status_code=code,
        status_message=message,
        origin=origin,
        links=[
            WireLink(
                trace_id=link.trace_id.hex(),
                span_id=link.span_id.hex(),
                attributes=_proto_attributes(link.attributes),
            )
            for link in links[:]
        ],
    )


def _proto_attributes(pairs: "Sequence[KeyValue]") -> dict[str, Any]:
    # Nearly always a string or an integer is set; trying both is faster than asking which field is.
    return {
        pair.key: (value := pair.value).string_value or value.int_value or _proto_value(value)
        for pair in pairs[:]
    }


def _proto_value(value: "AnyValue") -> Any:
    match value.WhichOneof("value"):
        case "int_value":
            return value.int_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "double_value":
            return plain_double(value.double_value)
        case "array_value":
            return [_proto_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return _proto_attributes(value.kvlist_value.values)
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode("ascii")
        case _:
            return None


class _JsonValue(Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    array_value: "_JsonArray | None" = None
    kvlist_value: "_JsonMap | None" = None
    bytes_value: str | None = None


class _JsonArray(Struct):
    values: list[_JsonValue] = []


class _JsonPair(Struct):
    key: str = ""
    value: _JsonValue | None = None


class _JsonMap(Struct):
    values: list[_JsonPair] = []


class _JsonEvent(Struct, rename="camel"):
    name: str = ""
    time_unix_nano: int | str = 0
    attributes: list[_JsonPair] = []


class _JsonLink(Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    attributes: list[_JsonPair] = []


class _JsonStatus(Struct):
    code: int | str = 0
    message: str = ""


class _JsonSpan(Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    kind: int | str = 0
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: list[_JsonPair] = []
    events: list[_JsonEvent] = []
    links: list[_JsonLink] = []
    status: _JsonStatus = field(default_factory=_JsonStatus)


class _JsonScope(Struct):
    name: str = ""
    version: str = ""
    attributes: list[_JsonPair] = []


class _JsonScopeSpans(Struct):
    scope: _JsonScope = field(default_factory=_JsonScope)
    spans: list[_JsonSpan] = []


class _JsonResource(Struct):
    attributes: list[_JsonPair] = []


class _JsonResourceSpans(Struct, rename="camel"):
    resource: _JsonResource = field(default_factory=_JsonResource)
    scope_spans: list[_JsonScopeSpans] = []


class _JsonRequest(Struct, rename="camel"):
    resource_spans: list[_JsonResourceSpans] = []


def read_json(body: bytes) -> Iterator[WireSpan]:
    """The spans of an `ExportTraceServiceRequest` in OTLP's JSON; `InputError` when the text is none."""
    if body.count(b"{") > 2 * MAX_PARTS:  # an attribute and its value are two
        raise too_many_parts()
    request = jsontext.decode(body, type=_JsonRequest)
    key = jsontext.repeated_key(body)
    if key is not None:
        raise InputError(f"the key '{key[:200]}' is given twice in one object")
    return _json_spans(request)


def _json_spans(request: _JsonRequest) -> Iterator[WireSpan]:
    for group in request.resource_spans:
        resource = _json_attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            origin = Origin(
                attributes=resource,
                scope=scoped.scope.name,
                scope_version=scoped.scope.version,
                scope_attributes=_json_attributes(scoped.scope.attributes),
            )
            for span in scoped.spans:
                yield _json_span(span, origin)


def _json_span(span: _JsonSpan, origin: Origin) -> WireSpan:
    return WireSpan(
        trace_id=_hexadecimal(span.trace_id),
        span_id=_hexadecimal(span.span_id),
        parent_span_id=_hexadecimal(span.parent_span_id),
        name=span.name,
        kind=span.kind if isinstance(span.kind, int) else _named_kind(span.kind),
        start_ns=_unsigned(span.start_time_unix_nano),
        end_ns=_unsigned(span.end_time_unix_nano),
        attributes=_json_attributes(span.attributes),
        events=[
            WireEvent(
                name=event.name,
                time_ns=_unsigned(event.time_unix_nano),
                attributes=_json_attributes(event.attributes),
            )
            for event in span.events
        ],
        status_code=_status_code(span.status.code),
        status_message=span.status.message,
        origin=origin,
        links=[
            WireLink(
                trace_id=_hexadecimal(link.trace_id),
                span_id=_hexadecimal(link.span_id),
                attributes=_json_attributes(link.attributes),
            )
            for link in span.links
        ],
    )


def _hexadecimal(text: str) -> str:
    """The text in small letters; something of a length that no id has when it is not hexadecimal."""
    small = text.lower()
    try:
        plain = (
            bytes.fromhex(small).hex() == small
        )  # white space between the digits is let through by the first
    except ValueError:
        plain = False
    return small if plain else "?"


def _named_kind(name: str) -> int:
    # OTLP's JSON wants numbers, but protobuf's own JSON mapping writes names, and some exporters use it.
    short = name.removeprefix("SPAN_KIND_").lower()
    return KINDS.index(short) if short in KINDS else 0


def _status_code(code: int | str) -> int:
    if isinstance(code, int):
        return code
    return STATUS_ERROR if code == "STATUS_CODE_ERROR" else 0


def _unsigned(value: int | str) -> int:
    number = _integer(value)
    return number if number is not None and 0 <= number < 1 << 64 else NO_TIME


def _integer(value: int | str) -> int | None:
    if isinstance(value, int):
        return value
    if len(value) > 20:
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _json_attributes(pairs: Iterable[_JsonPair]) -> dict[str, Any]:
    return {pair.key: None if pair.value is None else _json_value(pair.value) for pair in pairs}


def _json_value(value: _JsonValue) -> Any:
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        number = _integer(value.int_value)
        return value.int_value if number is None else number
    if value.double_value is not None:
        return _json_double(value.double_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.array_value is not None:
        return [_json_value(item) for item in value.array_value.values]
    if value.kvlist_value is not None:
        return _json_attributes(value.kvlist_value.values)
    return value.bytes_value


def _json_double(value: float | str) -> float | str:
    if isinstance(value, str):
        try:
            return plain_double(float(value))
        except ValueError:
            return value
    return value


class _JsonLog(Struct, rename="camel"):
    event_name: str = ""
    trace_id: str = ""
    span_id: str = ""
    time_unix_nano: int | str = 0
    observed_time_unix_nano: int | str = 0
    body: _JsonValue | None = None
    attributes: list[_JsonPair] = []


class _JsonScopeLogs(Struct, rename="camel"):
    log_records: list[_JsonLog] = []


class _JsonResourceLogs(Struct, rename="camel"):
    scope_logs: list[_JsonScopeLogs] = []


class _JsonLogsRequest(Struct, rename="camel"):
    resource_logs: list[_JsonResourceLogs] = []


def read_json_logs(body: bytes) -> Iterator[WireLog]:
    """The records of an `ExportLogsServiceRequest` in OTLP's JSON; `InputError` when the text is none."""
    if body.count(b"{") > 2 * MAX_PARTS:
        raise too_many_parts()
    request = jsontext.decode(body, type=_JsonLogsRequest)
    for group in request.resource_logs:
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                attributes = _json_attributes(record.attributes)
                yield WireLog(
                    name=record.event_name or _event_name(attributes),
                    trace_id=_hexadecimal(record.trace_id),
                    span_id=_hexadecimal(record.span_id),
                    time_ns=max(
                        _unsigned(record.time_unix_nano) or _unsigned(record.observed_time_unix_nano), 0
                    ),
                    body=None if record.body is None else _json_value(record.body),
                    attributes=attributes,
                )


def read_protobuf_logs(body: bytes) -> Iterator[WireLog]:
    """The records of an `ExportLogsServiceRequest`; errors as for spans."""
    if len(body) > UNCOUNTED_BYTES:
        count_parts(body, LOGS)
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise malformed("ExportLogsServiceRequest") from None
    counter = PartCounter(len(body))
    for group in request.resource_logs:
        for scoped in group.scope_logs:
            counter.add(len(scoped.log_records))
            for record in scoped.log_records:
                counter.add(len(record.attributes))
                attributes = _proto_attributes(record.attributes)
                yield WireLog(
                    name=record.event_name or _event_name(attributes),
                    trace_id=record.trace_id.hex(),
                    span_id=record.span_id.hex(),
                    time_ns=record.time_unix_nano or record.observed_time_unix_nano,
                    body=_proto_value(record.body) if record.HasField("body") else None,
                    attributes=attributes,
                )


def _event_name(attributes: dict[str, Any]) -> str:
    # Before log records had a field for it, an attribute named the event.
    name = attributes.get("event.name")
    return name if isinstance(name, str) else ""
