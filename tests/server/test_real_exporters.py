"""Real clients, unchanged: the OpenTelemetry SDK with its OTLP/HTTP exporter, and an OpenAI instrumentation."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.trace import format_span_id, format_trace_id
from tests.service_harness import Client

from evenhand.testing.mock_model import MockModel


def provider(client: Client, **options: Any) -> TracerProvider:
    exporter = OTLPSpanExporter(
        endpoint=f"{client.address}/v1/traces",
        headers={"authorization": f"Bearer {client.token}", "x-project-id": client.project},
        timeout=300,
        **options,
    )
    made = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    made.add_span_processor(BatchSpanProcessor(exporter))
    return made


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip, Compression.Deflate])
def test_the_SDKs_own_exporter(client: Client, compression: Compression) -> None:
    made = provider(client, compression=compression)
    tracer = made.get_tracer("test.library")
    with tracer.start_as_current_span("handle request") as root:
        with tracer.start_as_current_span("chat small-1") as child:
            child.set_attribute("gen_ai.request.model", "small-1")
            child.set_attribute("gen_ai.usage.input_tokens", 12)
            child.set_attribute("gen_ai.usage.output_tokens", 3)
            child.set_attribute("input.value", "Hi")
            child.set_attribute("tags", ["a", "b"])
        with pytest.raises(ValueError, match="out of stock"), tracer.start_as_current_span("failing"):
            raise ValueError("out of stock")
    assert made.force_flush(120_000)
    made.shutdown()
    context = root.get_span_context()
    trace = client.get(f"/v1/traces/{format_trace_id(context.trace_id)}", project_id=client.project).body
    assert trace["root_span_id"] == format_span_id(context.span_id)
    assert trace["metadata"]["service.name"] == "shop"
    spans = {span["name"]: span for span in trace["spans"]}
    chat = spans["chat small-1"]
    assert chat["parent_span_id"] == trace["root_span_id"]
    assert (chat["model"], chat["tokens_input"], chat["tokens_output"], chat["input"]) == (
        "small-1",
        12,
        3,
        "Hi",
    )
    assert (chat["metadata"]["tags.0"], chat["metadata"]["tags.1"]) == ("a", "b")
    assert chat["metadata"]["otel.scope.name"] == "test.library"
    error = spans["failing"]["error"]
    assert (error["message"], error["type"]) == ("out of stock", "ValueError")
    assert "Traceback" in error["stack"]


def test_a_thousand_spans_in_batches_arrive_once_each(client: Client) -> None:
    made = provider(client)
    tracer = made.get_tracer("load")
    with tracer.start_as_current_span("root") as root:
        for number in range(1000):
            with tracer.start_as_current_span(f"step {number}"):
                pass
    assert made.force_flush(120_000)
    made.shutdown()
    trace_id = format_trace_id(root.get_span_context().trace_id)
    trace = client.get(f"/v1/traces/{trace_id}", project_id=client.project).body
    assert trace["span_count"] == 1001
    assert len({span["id"] for span in trace["spans"]}) == 1001


@pytest.fixture
def model() -> Iterator[MockModel]:
    with MockModel("The capital is Paris.") as running:
        yield running


def test_an_instrumented_OpenAI_client(client: Client, model: MockModel) -> None:
    exporter = OTLPSpanExporter(
        endpoint=f"{client.address}/v1/traces",
        headers={"authorization": f"Bearer {client.token}", "x-project-id": client.project},
        timeout=300,
    )
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=made)
    try:
        with openai.OpenAI(base_url=model.url, api_key="none") as chat:
            reply = chat.chat.completions.create(
                model="small-1", messages=[{"role": "user", "content": "Capital of France?"}]
            )
        assert reply.choices[0].message.content == "The capital is Paris."
    finally:
        instrumentor.uninstrument()
        made.shutdown()
    [row] = client.get("/v1/traces", project_id=client.project).body["items"]
    assert row["models"] == ["small-1"]
    [got] = client.get(f"/v1/traces/{row['id']}", project_id=client.project).body["spans"]
    assert got["model"] == "small-1"
    assert got["tokens_input"] > 0
    assert got["tokens_output"] > 0
    assert "Capital of France?" in str(got["input"])
    assert "The capital is Paris." in str(got["output"])
    assert got["metadata"]["openinference.span.kind"] == "LLM"
    # what the exporter sent can be scored like any span
    asked = {
        "target_id": got["id"],
        "target_type": "span",
        "scorer_name": "regex",
        "config": {"pattern": "Paris"},
    }
    assert client.post("/v1/scores", asked).body["value"] == 1.0
