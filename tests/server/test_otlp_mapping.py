"""OTLP spans become ours: both encodings give the same record, and nothing odd loses a span."""

import base64
import json
from typing import Any

import pytest
from google.rpc.status_pb2 import Status as RpcStatus
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from evenhand.core.errors import InputError
from evenhand.core.spans import SpanRecord
from evenhand.server.ingest.costs import PriceBook
from evenhand.server.ingest.otlp import Rejected, to_record
from evenhand.server.ingest.otlp_replies import JSON, PROTOBUF, response_body, status_body
from evenhand.server.ingest.otlp_wire import read_json, read_protobuf

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
RECEIVED = 1_700_000_000_000_000


def any_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    return AnyValue()


def pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def json_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        special = value != value or value in (float("inf"), float("-inf"))
        names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return {"doubleValue": names[str(value)] if special else value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [json_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": json_pairs(value)}}
    return {}


def json_pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": json_value(value)} for key, value in attributes.items()]


def span_message(attributes: dict[str, Any], **fields: Any) -> Span:
    settings: dict[str, Any] = {
        "trace_id": bytes.fromhex(TRACE),
        "span_id": bytes.fromhex(SPAN),
        "name": "chat",
        "start_time_unix_nano": 1_700_000_000_000_000_000,
        "end_time_unix_nano": 1_700_000_001_500_000_000,
    } | fields
    return Span(attributes=pairs(attributes), **settings)


def wire_body(*spans: Span, resource: dict[str, Any] | None = None) -> bytes:
    group = ResourceSpans(
        resource=Resource(attributes=pairs(resource or {})), scope_spans=[ScopeSpans(spans=spans)]
    )
    body: bytes = ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()
    return body


def record(attributes: dict[str, Any], **fields: Any) -> SpanRecord:
    [wire] = read_protobuf(wire_body(span_message(attributes, **fields)))
    return to_record(wire, RECEIVED, PriceBook())


def test_a_GenAI_span_maps_to_model_tokens_input_and_output() -> None:
    messages = '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]'
    made = record(
        {
            "gen_ai.request.model": "small-1",
            "gen_ai.usage.input_tokens": 12,
            "gen_ai.usage.output_tokens": 3,
            "gen_ai.input.messages": messages,
            "gen_ai.output.messages": '[{"role":"assistant"}]',
            "gen_ai.operation.name": "chat",
        }
    )
    assert (made.trace_id, made.id, made.name, made.parent_span_id) == (TRACE, SPAN, "chat", None)
    assert (made.model, made.tokens_input, made.tokens_output) == ("small-1", 12, 3)
    assert made.input == messages
    assert made.output == '[{"role":"assistant"}]'
    assert json.loads(made.metadata) == {"gen_ai.operation.name": "chat"}
    assert (made.start_us, made.end_us, made.duration_ms) == (RECEIVED, RECEIVED + 1_500_000, 1500.0)


def test_OpenInference_values_are_read_by_their_mime_type() -> None:
    made = record(
        {
            "input.value": '{"q": 1}',
            "input.mime_type": "application/json",
            "output.value": "42",
            "output.mime_type": "text/plain",
            "llm.model_name": "small-2",
            "llm.token_count.prompt": 5,
            "llm.token_count.completion": 6,
        }
    )
    assert made.input == '{"q": 1}'
    assert made.output == '"42"'
    assert (made.model, made.tokens_input, made.tokens_output) == ("small-2", 5, 6)
    assert made.metadata == "{}"


def test_prompt_and_completion_events_are_input_and_output() -> None:
    events = [
        Span.Event(name="gen_ai.content.prompt", attributes=pairs({"gen_ai.prompt": "Why?"})),
        Span.Event(name="gen_ai.content.completion", attributes=pairs({"gen_ai.completion": '["Because"]'})),
        Span.Event(name="cache.miss", time_unix_nano=7, attributes=pairs({"key": "k"})),
    ]
    made = record({}, events=events)
    assert made.input == '"Why?"'
    assert made.output == '["Because"]'
    assert json.loads(made.metadata) == {
        "event.0.name": "cache.miss",
        "event.0.time_unix_nano": 7,
        "event.0.key": "k",
    }


def test_indexed_prompt_attributes_become_messages() -> None:
    made = record(
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Hi",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Ho",
        }
    )
    assert json.loads(made.input or "") == [{"role": "user", "content": "Hi"}]
    assert json.loads(made.output or "") == [{"role": "assistant", "content": "Ho"}]
    assert made.metadata == "{}"


def test_an_exception_event_becomes_the_error() -> None:
    event = Span.Event(
        name="exception",
        attributes=pairs(
            {"exception.type": "ValueError", "exception.message": "bad", "exception.stacktrace": "at line 1"}
        ),
    )
    made = record({}, events=[event], status=Status(code=Status.StatusCode.STATUS_CODE_ERROR, message="x"))
    assert json.loads(made.error or "") == {"message": "bad", "type": "ValueError", "stack": "at line 1"}


def test_an_error_status_alone_is_an_error() -> None:
    made = record({}, status=Status(code=Status.StatusCode.STATUS_CODE_ERROR, message="quota"))
    assert json.loads(made.error or "") == {"message": "quota"}
    assert record({}).error is None


def test_nested_attributes_are_flattened_with_dots() -> None:
    made = record({"a": {"b": {"c": 1}, "d": [True, "x"]}, "empty": [], "raw": b"\x00\xff", "nothing": None})
    assert json.loads(made.metadata) == {
        "a.b.c": 1,
        "a.d.0": True,
        "a.d.1": "x",
        "empty": "[]",
        "raw": "AP8=",
        "nothing": None,
    }


def test_resource_attributes_are_metadata_and_the_span_wins() -> None:
    body = wire_body(
        span_message({"env": "span"}),
        resource={"service.name": "shop", "env": "resource", "telemetry.sdk.language": "python"},
    )
    [wire] = read_protobuf(body)
    assert json.loads(to_record(wire, RECEIVED, PriceBook()).metadata) == {
        "service.name": "shop",
        "env": "span",
    }


@pytest.mark.parametrize(
    ("value", "stored"),
    [(float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (0.5, 0.5)],
)
def test_case_7_a_double_that_JSON_cannot_carry_is_kept_as_a_string(value: float, stored: object) -> None:
    assert json.loads(record({"x": value}).metadata) == {"x": stored}
    [wire] = read_json(json_body({"x": value}))
    assert json.loads(to_record(wire, RECEIVED, PriceBook()).metadata) == {"x": stored}


def json_body(attributes: dict[str, Any], **fields: Any) -> bytes:
    span = {
        "traceId": TRACE.upper(),
        "spanId": SPAN,
        "name": "chat",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": 1700000001500000000,
        "attributes": json_pairs(attributes),
    } | fields
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def test_case_8_int64_written_as_a_string_is_an_integer() -> None:
    [wire] = read_json(json_body({"gen_ai.usage.input_tokens": 7, "other": 7}))
    made = to_record(wire, RECEIVED, PriceBook())
    assert made.tokens_input == 7
    assert json.loads(made.metadata) == {"other": 7}


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=6))
def test_both_encodings_give_the_same_record(attributes: dict[str, Any]) -> None:
    [binary] = read_protobuf(wire_body(span_message(attributes)))
    [text] = read_json(json_body(attributes))
    made = to_record(binary, RECEIVED, PriceBook())
    assert made == to_record(text, RECEIVED, PriceBook())
    for value in json.loads(made.metadata).values():
        assert value is None or isinstance(value, str | int | float | bool)


@pytest.mark.parametrize(
    "fields",
    [
        {"trace_id": b""},
        {"trace_id": b"\x00" * 16},
        {"trace_id": b"\x01" * 8},
        {"span_id": b""},
        {"span_id": b"\x00" * 8},
        {"span_id": b"\x01" * 16},
        {"parent_span_id": b"\x01\x02"},
    ],
)
def test_case_11_a_span_without_a_usable_identity_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="bytes"):
        record({}, **fields)


def test_a_parent_of_zeros_means_a_root() -> None:
    assert record({}, parent_span_id=b"\x00" * 8).parent_span_id is None
    assert record({}, parent_span_id=bytes.fromhex(SPAN)).parent_span_id == SPAN


def test_case_17_an_end_before_the_start_is_kept_and_flagged() -> None:
    made = record({}, start_time_unix_nano=2_000_000, end_time_unix_nano=1_000_000)
    assert (made.start_us, made.end_us, made.duration_ms, made.clock_skew) == (2000, 1000, 0.0, True)


def test_a_span_without_a_start_takes_the_end_or_the_time_of_arrival() -> None:
    made = record({}, start_time_unix_nano=0, end_time_unix_nano=5_000_000)
    assert (made.start_us, made.duration_ms, made.clock_skew) == (5000, 0.0, True)
    made = record({}, start_time_unix_nano=0, end_time_unix_nano=0)
    assert (made.start_us, made.end_us, made.clock_skew) == (RECEIVED, None, True)


def test_a_NUL_in_a_name_does_not_lose_the_span() -> None:
    assert record({"gen_ai.request.model": "m\x00"}, name="a\x00b").name == "a\ufffdb"


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"{", b"[]", b"null", b'{"resourceSpans": 3}'])
def test_bytes_that_are_no_request_are_an_input_error(body: bytes) -> None:
    with pytest.raises(InputError):
        read_json(body)
    if body[0] == 0xFF:
        with pytest.raises(InputError):
            read_protobuf(body)


@pytest.mark.parametrize("time", ["-1", "x", "9" * 30, "18446744073709551616"])
def test_a_time_that_is_none_rejects_the_span_alone(time: str) -> None:
    [wire] = read_json(json_body({}, startTimeUnixNano=time))
    with pytest.raises(Rejected, match="nanoseconds"):
        to_record(wire, RECEIVED, PriceBook())


def test_a_very_long_name_is_kept_in_the_metadata() -> None:
    made = record({}, name="n" * 5000)
    assert made.name == "n" * 1000
    assert json.loads(made.metadata) == {"otel.span.name": "n" * 5000}


def test_partial_success_is_written_in_the_request_encoding() -> None:
    answer = ExportTraceServiceResponse()
    answer.ParseFromString(response_body(PROTOBUF, 300, "why"))
    assert (answer.partial_success.rejected_spans, answer.partial_success.error_message) == (300, "why")
    assert response_body(PROTOBUF) == b""
    assert json.loads(response_body(JSON)) == {}
    assert json.loads(response_body(JSON, 2, "why")) == {
        "partialSuccess": {"rejectedSpans": "2", "errorMessage": "why"}
    }


def test_status_is_written_in_the_request_encoding() -> None:
    status = RpcStatus()
    status.ParseFromString(status_body(PROTOBUF, 3, "no é"))
    assert (status.code, status.message) == (3, "no é")
    assert json.loads(status_body(JSON, 3, "no")) == {"code": 3, "message": "no"}
