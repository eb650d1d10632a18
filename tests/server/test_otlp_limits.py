"""An OTLP body with too many parts is refused before it takes memory."""

import gzip
from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.service_harness import Client

from evenhand.core.errors import InputError, Refusal
from evenhand.server.ingest.otlp_limits import MAX_PARTS, UNCOUNTED_BYTES, count_parts
from evenhand.server.ingest.otlp_replies import JSON, PROTOBUF, bytes_field
from evenhand.server.ingest.otlp_wire import read_json, read_protobuf

SPAN = bytes_field(1, b"\1" * 16) + bytes_field(2, b"\2" * 8) + b"\x39" + b"\1" * 8


def request(spans: int, size: int) -> ExportTraceServiceRequest:
    """Spans with an attribute of this size and an event each."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "a"
    scoped = group.scope_spans.add()
    scoped.scope.name = "s"
    for number in range(spans):
        span = scoped.spans.add(trace_id=b"\1" * 16, span_id=number.to_bytes(8, "big"), name="n")
        span.start_time_unix_nano = number
        span.attributes.add(key="text").value.string_value = "x" * size
        span.events.add(name="e").attributes.add(key="k").value.array_value.values.add().int_value = 1
    return made


@pytest.mark.parametrize(("spans", "size"), [(30_000, 100), (3, 3_000_000)])
def test_a_large_body_is_read_like_a_small_one(spans: int, size: int) -> None:
    body = request(spans, size).SerializeToString()
    assert len(body) > UNCOUNTED_BYTES
    found = list(read_protobuf(body))
    assert [int(span.span_id, 16) for span in found] == list(range(spans))
    assert {(span.origin.attributes["service.name"], span.origin.scope) for span in found} == {("a", "s")}
    assert {len(span.attributes["text"]) for span in found} == {size}


def nested(levels: list[int], content: bytes) -> bytes:
    for number in reversed(levels):
        content = bytes_field(number, content)
    return content


FLOODS = {
    "resources": ([], 1),
    "resource": ([1], 1),
    "resource attributes": ([1, 1], 1),
    "scopes": ([1], 2),
    "scope attributes": ([1, 2, 1], 3),
    "spans": ([1, 2], 2),
    "attributes": ([1, 2, 2], 9),
    "events": ([1, 2, 2], 11),
    "links": ([1, 2, 2], 13),
    "event attributes": ([1, 2, 2, 11], 3),
    "array": ([1, 2, 2, 9, 2, 5], 1),
    "map": ([1, 2, 2, 9, 2, 6], 1),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_empty_messages_is_refused_unread(name: str) -> None:
    levels, number = FLOODS[name]
    body = nested(levels, bytes_field(number, b"") * 2_200_000)
    assert len(body) > UNCOUNTED_BYTES
    with pytest.raises(Refusal, match="too many spans"):
        list(read_protobuf(body))


@pytest.mark.parametrize("name", ["resources", "scopes", "spans", "attributes", "events"])
def test_a_small_flood_is_refused_as_well(name: str) -> None:
    levels, number = FLOODS[name]
    body = nested(levels, bytes_field(number, b"") * 400_000)
    with pytest.raises(Refusal, match="too many spans"):
        list(read_protobuf(body))


def test_a_flood_in_json_is_refused_undecoded() -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{}," * (2 * MAX_PARTS) + b"{}]}]}]}"
    with pytest.raises(Refusal, match="too many spans"):
        read_json(body)


@pytest.mark.parametrize(
    "end",
    [b"\x0a", b"\x0a\xff", b"\x0a\x05ab", b"\x0b", b"\x0f", b"\x80" * 11, b"\x0a\x03\x12\x05a"],
    ids=["no length", "cut length", "too long", "group", "unknown type", "long number", "inner too long"],
)
def test_a_large_body_that_is_no_otlp_is_malformed(end: bytes) -> None:
    body = nested([1, 2, 2], SPAN + bytes_field(5, b"x" * 5_000_000)) + end
    with pytest.raises(InputError, match="not an OTLP"):
        list(read_protobuf(body))


@given(st.binary(max_size=200))
def test_any_bytes_are_counted_or_malformed(body: bytes) -> None:
    with suppress(InputError):
        count_parts(body)


@given(st.integers(0, 20), st.integers(0, 300))
def test_what_the_parser_writes_is_never_malformed(spans: int, size: int) -> None:
    count_parts(request(spans, size).SerializeToString())


def test_messages_inside_each_other_have_a_limit() -> None:
    """`AnyValue` in `ArrayValue` in `AnyValue` …; the parser refuses a hundred levels as well."""
    value = nested([5, 1] * 100, b"")
    with pytest.raises(InputError, match="not an OTLP"):
        count_parts(nested([1, 2, 2, 9, 2], value))
    with pytest.raises(DecodeError):
        ExportTraceServiceRequest.FromString(nested([1, 2, 2, 9, 2], value))


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_packed_flood_is_413_and_the_server_goes_on(client: Client, kind: str) -> None:
    """A few hundred kilobytes that would take gigabytes."""
    if kind == JSON:
        body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{}," * 15_000_000 + b"{}]}]}]}"
    else:
        body = nested([1, 2, 2], SPAN + bytes_field(11, b"") * 30_000_000)
    packed = gzip.compress(body, 1)
    assert len(packed) < 1_000_000
    refused = client.post_raw("/v1/traces", packed, kind, Content_Encoding="gzip")
    assert refused.status == 413
    assert client.get("/v1/projects").status == 200
