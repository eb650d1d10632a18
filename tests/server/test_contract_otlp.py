"""OTLP over HTTP, on both databases: both encodings, gzip, resends, partial success, errors in the request's encoding."""

import gzip
import json
import secrets
from typing import Any

import pytest
from google.rpc.status_pb2 import Status as RpcStatus
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from tests.service_harness import Client, Reply

PROTOBUF = "application/x-protobuf"


def message(trace_id: bytes | None = None, span_id: bytes | None = None, **fields: Any) -> Span:
    settings: dict[str, Any] = {
        "name": "chat",
        "start_time_unix_nano": 1_771_711_200_000_000_000,
        "end_time_unix_nano": 1_771_711_201_000_000_000,
        **fields,
    }
    return Span(
        trace_id=secrets.token_bytes(16) if trace_id is None else trace_id,
        span_id=secrets.token_bytes(8) if span_id is None else span_id,
        **settings,
    )


def body_of(*spans: Span) -> bytes:
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    body: bytes = request.SerializeToString()
    return body


def export(client: Client, *spans: Span, **headers: str) -> Reply:
    return client.post_raw("/v1/traces", body_of(*spans), PROTOBUF, X_Project_Id=client.project, **headers)


def result(reply: Reply) -> ExportTraceServiceResponse:
    assert reply.status == 200, reply.raw
    assert reply.headers["content-type"] == PROTOBUF
    answer = ExportTraceServiceResponse()
    answer.ParseFromString(reply.raw)
    return answer


def trace_of(client: Client, one: Span) -> Any:
    return client.get(f"/v1/traces/{one.trace_id.hex()}", project_id=client.project).body


def test_protobuf_is_stored_and_read(client: Client) -> None:
    root = message()
    child = message(root.trace_id, parent_span_id=root.span_id)
    assert result(export(client, root, child)).partial_success.rejected_spans == 0
    trace = trace_of(client, root)
    assert trace["root_span_id"] == root.span_id.hex()
    assert [got["id"] for got in trace["spans"]] == sorted([root.span_id.hex(), child.span_id.hex()])
    assert trace["spans"][0]["start_time"] == "2026-02-21T22:00:00.000Z"
    assert trace["spans"][0]["duration_ms"] == 1000


def test_gzip_is_unpacked(client: Client) -> None:
    one = message()
    packed = gzip.compress(body_of(one))
    reply = client.post_raw(
        "/v1/traces", packed, PROTOBUF, Content_Encoding="gzip", X_Project_Id=client.project
    )
    result(reply)
    assert trace_of(client, one)["span_count"] == 1


def test_JSON_is_stored_and_answered_in_JSON(client: Client) -> None:
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    one = {
        "traceId": trace_id.upper(),
        "spanId": span_id,
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": "1771711200000000000",
        "endTimeUnixNano": "1771711201000000000",
        "attributes": [
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
            {"key": "ratio", "value": {"doubleValue": "NaN"}},
        ],
        "status": {},
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}).encode()
    reply = client.post_raw("/v1/traces", body, "application/json", X_Project_Id=client.project)
    assert (reply.status, reply.body) == (200, {})
    [got] = client.get(f"/v1/traces/{trace_id}", project_id=client.project).body["spans"]
    assert got["tokens_input"] == 7
    assert got["metadata"] == {"otel.span.kind": "client", "ratio": "NaN"}


def test_case_13_a_span_resent_is_one_row_and_no_error(client: Client) -> None:
    one, two = message(), message()
    result(export(client, one, one))
    answer = result(export(client, one, two))
    assert answer.partial_success.rejected_spans == 0
    assert trace_of(client, one)["span_count"] == 1
    assert trace_of(client, two)["span_count"] == 1


def test_case_13_a_cycle_is_a_partial_success(client: Client) -> None:
    good = message()
    a = message(good.trace_id, parent_span_id=b"\x02" * 8, span_id=b"\x01" * 8)
    b = message(good.trace_id, parent_span_id=b"\x01" * 8, span_id=b"\x02" * 8)
    answer = result(export(client, good, a, b))
    assert answer.partial_success.rejected_spans == 2
    assert "CIRCULAR_SPAN_REFERENCE" in answer.partial_success.error_message
    assert trace_of(client, good)["span_count"] == 1


def test_case_11_bad_ids_among_good_ones_are_a_partial_success(client: Client) -> None:
    good = message()
    answer = result(export(client, good, message(b""), message(span_id=b"\x00" * 8), message(b"\x00" * 16)))
    assert answer.partial_success.rejected_spans == 3
    assert "8 bytes" in answer.partial_success.error_message
    assert trace_of(client, good)["span_count"] == 1


def test_case_11_only_bad_spans_are_400_with_a_status(client: Client) -> None:
    reply = export(client, message(b""))
    assert reply.status == 400
    status = RpcStatus()
    status.ParseFromString(reply.raw)
    assert status.code == 3
    assert "trace id" in status.message


def test_case_11_logs_posted_as_traces_are_400(client: Client) -> None:
    record = LogRecord(time_unix_nano=1, severity_text="INFO", trace_id=b"\x01" * 16, span_id=b"\x01" * 8)
    logs = ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])]
    )
    reply = client.post_raw("/v1/traces", logs.SerializeToString(), PROTOBUF)
    assert reply.status == 400
    assert reply.headers["content-type"] == PROTOBUF


def test_a_request_without_spans_is_fine(client: Client) -> None:
    assert client.post_raw("/v1/traces", b"", PROTOBUF).status == 200
    assert client.post_raw("/v1/traces", b"{}", "application/json").body == {}


def test_case_17_an_impossible_clock_is_kept_and_flagged(client: Client) -> None:
    one = message(start_time_unix_nano=2_000_000_000_000_000, end_time_unix_nano=1_000_000_000_000_000)
    result(export(client, one))
    [got] = trace_of(client, one)["spans"]
    assert (got["duration_ms"], got["clock_skew"]) == (0, True)
    assert got["start_time"] > got["end_time"]
    assert got["received_at"] > "2026"


def test_the_latest_times_of_the_format_do_not_break_reading(client: Client) -> None:
    one = message(start_time_unix_nano=2**64 - 2, end_time_unix_nano=2**64 - 1)
    result(export(client, one))
    assert trace_of(client, one)["spans"][0]["start_time"].startswith("2554-")


def test_several_roots_of_one_trace_are_kept(client: Client) -> None:
    first = message()
    second = message(first.trace_id)
    result(export(client, first))
    result(export(client, second))
    trace = trace_of(client, first)
    assert trace["span_count"] == 2
    assert trace["root_span_id"] == first.span_id.hex()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [(PROTOBUF, b"\xff\xff"), ("application/json", b"{"), ("application/json", b"[1]")],
)
def test_a_body_that_is_no_request_is_400_in_its_own_encoding(
    client: Client, content_type: str, body: bytes
) -> None:
    reply = client.post_raw("/v1/traces", body, content_type)
    assert (reply.status, reply.headers["content-type"]) == (400, content_type)
    if content_type == "application/json":
        assert reply.body["code"] == 3


@pytest.mark.parametrize(("token", "status", "code"), [(None, 401, 16), ("wrong", 401, 16)])
def test_errors_before_the_body_is_read_are_a_status_too(
    client: Client, token: str | None, status: int, code: int
) -> None:
    nobody = client.again(token=token)
    reply = nobody.post_raw("/v1/traces", b"{}", "application/json")
    assert (reply.status, reply.body["code"]) == (status, code)
    binary = nobody.post_raw("/v1/traces", b"", PROTOBUF)
    found = RpcStatus()
    found.ParseFromString(binary.raw)
    assert (binary.status, binary.headers["content-type"], found.code) == (status, PROTOBUF, code)
    nobody.close()


def test_another_content_type_is_415(client: Client) -> None:
    assert client.post_raw("/v1/traces", b"<xml/>", "application/xml").status == 415


def test_case_1_a_gzip_bomb_is_413_in_the_requests_encoding(client: Client) -> None:
    bomb = gzip.compress(b"\x00" * (80 * 1024 * 1024))
    reply = client.post_raw("/v1/traces", bomb, PROTOBUF, Content_Encoding="gzip")
    assert (reply.status, reply.headers["content-type"]) == (413, PROTOBUF)


def test_a_foreign_project_is_404(client: Client) -> None:
    token = client.made("/v1/tokens", {"name": "t", "role": "write", "project_id": client.project})["token"]
    scoped = client.again(token=token)
    reply = scoped.post_raw("/v1/traces", body_of(message()), PROTOBUF, X_Project_Id="default")
    assert reply.status == 404
    scoped.close()


def test_512_spans_at_once(client: Client) -> None:
    root = message()
    children = [message(root.trace_id, parent_span_id=root.span_id) for _ in range(511)]
    result(export(client, *children, root))
    assert trace_of(client, root)["span_count"] == 512
