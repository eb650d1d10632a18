"""openinference-instrumentation-openai (Arize Phoenix)."""

import contextlib
import os

import openai
from openinference.instrumentation import using_attributes
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIInstrumentor().instrument(tracer_provider=provider)
model = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="right", max_retries=0)
refused = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="wrong", max_retries=0)
question = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the capital of France?"},
]
with (
    using_attributes(session_id="conversation-1", user_id="ada"),
    provider.get_tracer("shop").start_as_current_span("answer question"),
):
    model.chat.completions.create(model="small-1", messages=question)
    with contextlib.suppress(openai.AuthenticationError):
        refused.chat.completions.create(model="small-1", messages=question)
provider.shutdown()
