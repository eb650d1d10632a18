"""Spans on their way in: durable native and OTLP batches, beside a bare prototype on the same stack.

With `EVENHAND_BENCH_SPANS=5000` also beside five million spans that are stored already: a server with a new database and
one with the large one take turns. Kept and used again are `EVENHAND_BENCH_STORE` (a SQLite file) and
`EVENHAND_BENCH_POSTGRES` (the address of a database).
"""

import json
import os
import random
from datetime import UTC, datetime, timedelta

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from bench.harness import Report
from bench.large_store import chosen_size, fill_up, sqlite_store
from bench.service_process import Sent, bare, on_postgres, send_all, serving

CLIENTS = 4
ROUNDS = 5
NATIVE, OTLP = 1_000, 512
PER_TRACE = 8
BATCHES = 32
JSON, PROTOBUF = "application/json", "application/x-protobuf"
TEXT = "Which city is the capital of the country that was named in the question? " * 4


def native_body(source: random.Random) -> bytes:
    """A batch of model calls in traces of eight."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    spans = []
    for n in range(NATIVE):
        if n % PER_TRACE == 0:
            trace, root = f"{source.getrandbits(128):032x}", f"{source.getrandbits(64):016x}"
        began = start + timedelta(milliseconds=n)
        spans.append(
            {
                "id": root if n % PER_TRACE == 0 else f"{source.getrandbits(64):016x}",
                "trace_id": trace,
                "parent_span_id": None if n % PER_TRACE == 0 else root,
                "name": "chat",
                "start_time": began.isoformat(),
                "end_time": (began + timedelta(milliseconds=340)).isoformat(),
                "input": {"messages": [{"role": "user", "content": TEXT}]},
                "output": TEXT,
                "tokens_input": 60,
                "tokens_output": 70,
                "model": "small-1",
                "metadata": {"user": n % 17, "stage": "answer", "cached": False},
            }
        )
    return json.dumps({"spans": spans}).encode()


def otlp_body(source: random.Random, size: int = OTLP, per_trace: int = PER_TRACE) -> bytes:
    """The same as an exporter sends it."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.append(_attribute("service.name", "bench"))
    scope = resource.scope_spans.add()
    start = 1_767_225_600_000_000_000
    for n in range(size):
        if n % per_trace == 0:
            trace, root = source.randbytes(16), source.randbytes(8)
        span = scope.spans.add(trace_id=trace, span_id=source.randbytes(8), name="chat", kind=3)
        if n % per_trace == 0:
            span.span_id = root
        else:
            span.parent_span_id = root
        span.start_time_unix_nano = start + n * 1_000_000
        span.end_time_unix_nano = span.start_time_unix_nano + 340_000_000
        attributes: dict[str, str | int] = {
            "input.value": TEXT,
            "output.value": TEXT,
            "gen_ai.request.model": "small-1",
            "gen_ai.usage.input_tokens": 60,
            "gen_ai.usage.output_tokens": 70,
            "user": n % 17,
            "stage": "answer",
        }
        span.attributes.extend(_attribute(key, value) for key, value in attributes.items())
    return bytes(request.SerializeToString())


def _attribute(key: str, value: str | int) -> KeyValue:
    given = AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
    return KeyValue(key=key, value=given)


def batches(report: Report, name: str, ours_url: str, bare_url: str) -> None:
    """Both kinds of batches, ours and the prototype by turns; every round has spans of its own."""
    source = random.Random(0)
    kinds = (
        ("native batches of 1,000 spans", "/v1/traces/ingest", JSON, NATIVE, native_body),
        ("OTLP batches of 512 spans (protobuf)", "/v1/traces", PROTOBUF, OTLP, otlp_body),
    )
    with serving(ours_url) as server, bare(bare_url) as (bare_port, bare_pid):
        for what, path, media_type, size, body in kinds:
            ours: list[Sent] = []
            theirs: list[Sent] = []
            for _ in range(ROUNDS):
                bodies = [body(source) for _ in range(BATCHES)]
                for found, port, pid in (
                    (ours, server.port, server.process.pid),
                    (theirs, bare_port, bare_pid),
                ):
                    found.append(send_all(port, pid, path, bodies, content_type=media_type, clients=CLIENTS))
            spans = size * BATCHES
            best, bare_best = (spans / min(s.seconds for s in found) for found in (ours, theirs))
            cpu, bare_cpu = (min(s.cpu_seconds for s in found) / spans * 1e6 for found in (ours, theirs))
            report.add(
                f"{name}: {what}, {CLIENTS} clients",
                f"{best:,.0f} spans/s; bare prototype {bare_best:,.0f}/s; ratio {best / bare_best:.2f}; "
                f"CPU {cpu:.0f} µs against {bare_cpu:.0f} µs a span",
                "ratio ≥ 0.60",
            )
        report.add(f"{name}: resident memory after this", f"{server.memory_mib():.0f} MiB")


def beside_many(report: Report, name: str, new_url: str, large_url: str, spans: int) -> None:
    """Native batches to a new database and to a large one by turns: the large one should keep most of the rate."""
    source = random.Random()
    fill_up(large_url, spans)
    sent: dict[str, list[Sent]] = {"new": [], "large": []}
    with serving(new_url) as new, serving(large_url) as large:
        for _ in range(ROUNDS):
            for which, server in (("new", new), ("large", large)):
                bodies = [native_body(source) for _ in range(BATCHES)]
                pid = server.process.pid
                sent[which].append(
                    send_all(
                        server.port, pid, "/v1/traces/ingest", bodies, content_type=JSON, clients=CLIENTS
                    )
                )
    count = NATIVE * BATCHES
    rate = {which: count / min(s.seconds for s in found) for which, found in sent.items()}
    cpu = {which: min(s.cpu_seconds for s in found) / count * 1e6 for which, found in sent.items()}
    report.add(
        f"{name}: native batches beside {spans:,} stored spans",
        f"{rate['large']:,.0f} spans/s; a new database {rate['new']:,.0f}/s; ratio {rate['large'] / rate['new']:.2f}; "
        f"CPU {cpu['large']:.0f} µs against {cpu['new']:.0f} µs a span",
        "ratio ≥ 0.80",
    )


def run(report: Report) -> None:
    report.add("load of the machine at the start", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    spans = chosen_size()
    with sqlite_store() as (large, folder):
        if spans:
            report.command = f"EVENHAND_BENCH_SPANS={spans // 1_000} make bench ONLY=spans"
            beside_many(report, "SQLite", f"sqlite:///{folder / 'new.db'}", large, spans)
        batches(report, "SQLite", f"sqlite:///{folder / 'ours.db'}", str(folder / "bare.db"))
    if spans:
        kept = os.environ.get("EVENHAND_BENCH_POSTGRES")
        on_postgres(report, lambda new, other: beside_many(report, "PostgreSQL", new, kept or other, spans))
    on_postgres(report, lambda ours, plain: batches(report, "PostgreSQL", ours, plain))
