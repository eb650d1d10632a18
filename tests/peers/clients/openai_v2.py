"""opentelemetry-instrumentation-openai-v2: texts go into log records, counts into metrics."""

import contextlib
import os

import openai
from opentelemetry import _logs, metrics, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

# Set by whoever starts this: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, and
# OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true.
traces, logs = TracerProvider(), LoggerProvider()
traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
trace.set_tracer_provider(traces)
_logs.set_logger_provider(logs)
metrics.set_meter_provider(meters)
OpenAIInstrumentor().instrument()

model = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="right", max_retries=0)
refused = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="wrong", max_retries=0)
question = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the capital of France?"},
]
with trace.get_tracer("shop").start_as_current_span("answer question") as root:
    root.set_attributes({"session.id": "conversation-1", "user.id": "ada"})
    model.chat.completions.create(model="small-1", messages=question)
    with contextlib.suppress(openai.AuthenticationError):
        refused.chat.completions.create(model="small-1", messages=question)
traces.shutdown()
logs.shutdown()
meters.shutdown()
