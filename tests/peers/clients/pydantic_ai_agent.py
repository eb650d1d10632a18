"""pydantic-ai: an agent with a tool."""

import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def agent(key: str) -> Agent:
    model = OpenAIChatModel("small-1", provider=OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key=key))
    made = Agent(model, system_prompt="Be brief.", name="answer question", retries=0)

    @made.tool_plain
    def population(city: str) -> int:
        return 2_100_000

    return made


agent("right").run_sync("What is the capital of France?", conversation_id="conversation-1")
try:
    agent("wrong").run_sync("What is the capital of France?", conversation_id="conversation-1")
except Exception as error:
    print(type(error).__name__)
provider.shutdown()
