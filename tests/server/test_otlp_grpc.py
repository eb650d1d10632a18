"""OTLP over gRPC: the SDK's own exporter, unchanged, and what hostile callers meet."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import format_trace_id
from tests.postgres import PostgresServer, free_port
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess

from evenhand.cli.serve import command
from evenhand.core.ids import new_id

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
OURS = (("authorization", f"Bearer {ADMIN_TOKEN}"), ("x-project-id", "shop"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, int]]:
    folder, port = tmp_path_factory.mktemp("grpc"), free_port()
    with ExitStack() as stack:
        url = f"sqlite:///{folder}/e.db"
        if request.param == "postgresql":
            postgres: PostgresServer = request.getfixturevalue("postgres_server")
            url = stack.enter_context(postgres.database())
        options = ["--grpc-port", str(port), "--log-level", "info"]
        server = ServerProcess(url, folder=folder, options=options)
        server.start()
        stack.callback(server.stop)
        yield server, port


@pytest.fixture
def call(servers: tuple[ServerProcess, int]) -> Iterator[Any]:
    """Calls a method with bytes; the answer's bytes, or the code."""
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{servers[1]}", options=options) as channel:

        def ask(method: str, body: bytes, metadata: Any = OURS, **more: Any) -> Any:
            try:
                return channel.unary_unary(method)(body, metadata=metadata, timeout=120, **more)
            except grpc.RpcError as error:
                return error

        yield ask


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_the_SDKs_own_exporter_over_gRPC(
    servers: tuple[ServerProcess, int], compression: grpc.Compression
) -> None:
    server, port = servers
    exporter = OTLPSpanExporter(
        endpoint=f"http://127.0.0.1:{port}", insecure=True, headers=OURS, compression=compression, timeout=120
    )
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("handle") as root:
        root.set_attribute("input.value", "Hi")
    assert provider.force_flush(120_000)
    provider.shutdown()
    trace_id = format_trace_id(root.get_span_context().trace_id)
    with closing(Client(server.address, ADMIN_TOKEN)) as client:
        trace = client.get(f"/v1/traces/{trace_id}", project_id="shop").body
        assert [span["input"] for span in trace["spans"]] == ["Hi"]
        assert f'path="{TRACES}",status="200"' in client.get("/metrics").raw.decode()
    assert '"grpc":"127.0.0.1:' in server.log()


def one_span(trace_id: bytes = b"") -> bytes:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = (
        trace_id or bytes.fromhex(new_id().replace("-", "")),
        b"12345678",
        "n",
    )
    span.start_time_unix_nano = 1
    return bytes(request.SerializeToString())


def test_tokens_roles_and_projects_are_those_of_HTTP(servers: tuple[ServerProcess, int], call: Any) -> None:
    assert call(TRACES, one_span()) == b""
    assert call(TRACES, one_span(), ()).code() is grpc.StatusCode.UNAUTHENTICATED
    wrong = (("authorization", "Bearer evh_wrong"),)
    assert call(TRACES, one_span(), wrong).code() is grpc.StatusCode.UNAUTHENTICATED
    with closing(Client(servers[0].address, ADMIN_TOKEN)) as client:
        client.post("/v1/projects", {"id": "own", "name": "own"})
        made = {
            role: client.made("/v1/tokens", {"name": "t", "role": role, "project_id": "own"})["token"]
            for role in ("read", "write")
        }
        reading = (("authorization", f"Bearer {made['read']}"),)
        assert call(TRACES, one_span(), reading).code() is grpc.StatusCode.PERMISSION_DENIED
        writing = (("authorization", f"Bearer {made['write']}"),)
        trace_id = bytes.fromhex(new_id().replace("-", ""))
        assert call(TRACES, one_span(trace_id), writing) == b""
        assert client.get(f"/v1/traces/{trace_id.hex()}", project_id="own").status == 200
        foreign = (*writing, ("x-project-id", "shop"))
        for method in (TRACES, LOGS, METRICS):
            assert call(method, one_span(), foreign).code() is grpc.StatusCode.NOT_FOUND


def test_a_partial_success_a_bad_message_and_metrics(call: Any) -> None:
    request = ExportTraceServiceRequest.FromString(one_span())
    request.resource_spans[0].scope_spans[0].spans.add().name = "no ids"
    partial = ExportTraceServiceResponse.FromString(call(TRACES, request.SerializeToString())).partial_success
    assert partial.rejected_spans == 1
    assert "16 bytes" in partial.error_message
    assert call(TRACES, b"\xff\xff").code() is grpc.StatusCode.INVALID_ARGUMENT
    assert b"metrics are not kept" in call(METRICS, b"")
    assert call(LOGS, b"") == b""
    assert call("/some.Service/Other", b"").code() is grpc.StatusCode.UNIMPLEMENTED


def test_what_is_too_large_is_refused_packed_or_not(servers: tuple[ServerProcess, int], call: Any) -> None:
    too_large = b"\x00" * (64 * 1024 * 1024 + 1)
    assert call(TRACES, too_large).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    # A few kilobytes that would become a gigabyte.
    bomb = b"\x00" * (256 * 1024 * 1024)
    before = memory(servers[0].pid)
    refused = call(TRACES, bomb, compression=grpc.Compression.Gzip)
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert memory(servers[0].pid) - before < 200 * 1024 * 1024
    assert call(TRACES, one_span()) == b""


def memory(pid: int) -> int:
    """The most memory that the process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def test_gRPC_at_the_HTTP_port_is_a_line_in_the_log(tmp_path: Path) -> None:
    server = ServerProcess(f"sqlite:///{tmp_path}/e.db", folder=tmp_path)
    server.start()
    try:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
                raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 9)
                answer = b"".join(iter(lambda raw=raw: raw.recv(65536), b""))  # type: ignore[misc]
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"port of its own" in answer
        [line] = [json.loads(line) for line in server.log().splitlines() if "gRPC (HTTP/2)" in line]
        assert line["level"] == "warning"
        assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in line["message"]
    finally:
        server.stop()


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--database", f"sqlite:///{tmp_path}/e.db", "--port", "0", "--grpc-port", str(port)]
        done = CliRunner().invoke(command, options)
        assert done.exit_code != 0
        assert f"cannot listen on 127.0.0.1:{port}" in str(done.exception)
