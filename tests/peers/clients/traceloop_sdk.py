"""traceloop-sdk (OpenLLMetry)."""

import contextlib
import os
from urllib.parse import unquote

import openai
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import tool, workflow

Traceloop.init(
    app_name="shop",
    api_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    headers=dict(pair.split("=", 1) for pair in unquote(os.environ["OTEL_EXPORTER_OTLP_HEADERS"]).split(",")),
    disable_batch=False,
    telemetry_enabled=False,
)
model = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="right", max_retries=0)
refused = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="wrong", max_retries=0)


@tool(name="population")
def population(city: str) -> int:
    return 2_100_000


@workflow(name="answer question")
def answer(question: str) -> str:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    reply = model.chat.completions.create(model="small-1", messages=messages)
    population("Paris")
    with contextlib.suppress(openai.AuthenticationError):
        refused.chat.completions.create(model="small-1", messages=messages)
    return reply.choices[0].message.content


Traceloop.set_association_properties({"session_id": "conversation-1", "user_id": "ada"})
answer("What is the capital of France?")
from opentelemetry import trace  # noqa: E402

trace.get_tracer_provider().force_flush()
