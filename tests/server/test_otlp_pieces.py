"""Large OTLP bodies are read in pieces and mean the same; what holds too much is refused before it takes memory."""

import gzip
from contextlib import suppress

import msgspec
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.service_harness import Client

from evenhand.core.errors import InputError, Refusal
from evenhand.server.bodies import LARGE
from evenhand.server.otlp_pieces import MOST_PARTS, PIECE, Room, bytes_field, pieces
from evenhand.server.otlp_wire import JSON, PROTOBUF, read_json, read_protobuf

SPAN = bytes_field(1, b"\1" * 16) + bytes_field(2, b"\2" * 8) + b"\x39" + b"\1" * 8


def request(groups: list[tuple[str, list[tuple[str, list[int]]]]]) -> ExportTraceServiceRequest:
    """Resources, each with scopes, each with spans of these sizes."""
    made, number = ExportTraceServiceRequest(), 0
    for service, scopes in groups:
        group = made.resource_spans.add()
        pair = group.resource.attributes.add(key="service.name")
        pair.value.string_value = service
        for name, sizes in scopes:
            scoped = group.scope_spans.add()
            scoped.scope.name = name
            for size in sizes:
                number += 1
                span = scoped.spans.add(trace_id=b"\1" * 16, span_id=number.to_bytes(8, "big"), name="n")
                span.start_time_unix_nano = number
                span.attributes.add(key="text").value.string_value = "x" * size
                span.events.add(name="e").attributes.add(key="k").value.array_value.values.add().int_value = 1
    return made


_SIZES = st.lists(st.sampled_from([0, 10, 100_000, PIECE - 100, PIECE, 2 * PIECE]), max_size=5)


@given(st.lists(st.tuples(st.text(max_size=3), st.lists(st.tuples(st.text(max_size=3), _SIZES), max_size=3)), max_size=3))  # fmt: skip
def test_the_pieces_hold_the_same_spans(groups: list[tuple[str, list[tuple[str, list[int]]]]]) -> None:
    whole = request(groups)
    body = whole.SerializeToString()
    parts = [ExportTraceServiceRequest.FromString(piece) for piece in pieces(body, Room(len(body)))]

    def spans(messages: list[ExportTraceServiceRequest]) -> list[tuple[bytes, bytes, bytes]]:
        return [
            (
                group.resource.SerializeToString(deterministic=True),
                scoped.scope.SerializeToString(deterministic=True),
                span.SerializeToString(deterministic=True),
            )
            for message in messages
            for group in message.resource_spans
            for scoped in group.scope_spans
            for span in scoped.spans
        ]

    assert spans(parts) == spans([whole])


def test_a_large_body_means_what_a_small_one_means() -> None:
    made = request([("a", [("s", [10] * 3_000), ("t", [300_000] * 3)]), ("b", [("u", [PIECE * 5, 1])])])
    large = made.SerializeToString()
    assert len(large) > 2_000_000
    small = [
        span
        for part in pieces(large, Room(len(large)))
        for span in read_protobuf(part)  # each is small enough, or one span alone
    ]
    found = list(read_protobuf(large))
    assert len(found) == 3_005
    assert [msgspec.to_builtins(span) for span in found] == [msgspec.to_builtins(span) for span in small]
    assert {(span.origin.attributes["service.name"], span.origin.scope) for span in found} == {
        ("a", "s"),
        ("a", "t"),
        ("b", "u"),
    }


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
    body = nested(levels, bytes_field(number, b"") * 600_000)
    assert len(body) > LARGE
    with pytest.raises(Refusal, match="too many spans"):
        list(read_protobuf(body))


@pytest.mark.parametrize("name", ["resources", "scopes", "spans", "attributes", "events"])
def test_a_small_flood_is_refused_as_well(name: str) -> None:
    levels, number = FLOODS[name]
    body = nested(levels, bytes_field(number, b"") * 400_000)
    with pytest.raises(Refusal, match="too many spans"):
        list(read_protobuf(body))


def test_a_flood_in_json_is_refused_undecoded() -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{}," * (2 * MOST_PARTS) + b"{}]}]}]}"
    with pytest.raises(Refusal, match="too many spans"):
        read_json(body)


@pytest.mark.parametrize(
    "end",
    [b"\x0a", b"\x0a\xff", b"\x0a\x05ab", b"\x0b", b"\x0f", b"\x80" * 11, b"\x0a\x03\x12\x05a"],
    ids=["no length", "cut length", "too long", "group", "unknown type", "long number", "inner too long"],
)
def test_a_large_body_that_is_no_otlp_is_malformed(end: bytes) -> None:
    body = nested([1, 2, 2], SPAN + bytes_field(5, b"x" * 2_000_000)) + end
    with pytest.raises(InputError, match="not an OTLP"):
        list(read_protobuf(body))


@given(st.binary(max_size=200))
def test_any_bytes_are_spans_or_an_error(tail: bytes) -> None:
    with suppress(InputError, DecodeError):
        for piece in pieces(tail, Room(10**9)):
            ExportTraceServiceRequest.FromString(piece)


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
