"""mlflow-tracing, exporting over OTLP (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)."""

import contextlib
import os

# For spans only: asked for metrics too, mlflow-tracing 3.17 without mlflow itself sends nothing at all.
address = os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT")
os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = address + "/v1/traces"
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
os.environ["MLFLOW_TRACKING_URI"] = address  # any address: nothing goes there
import mlflow  # noqa: E402
import openai  # noqa: E402

mlflow.openai.autolog()
model = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="right", max_retries=0)
refused = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="wrong", max_retries=0)


@mlflow.trace(name="answer question")
def answer(question: str) -> str:
    mlflow.update_current_trace(
        metadata={"mlflow.trace.session": "conversation-1", "mlflow.trace.user": "ada"}
    )
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    reply = model.chat.completions.create(model="small-1", messages=messages)
    with contextlib.suppress(openai.AuthenticationError):
        refused.chat.completions.create(model="small-1", messages=messages)
    return reply.choices[0].message.content


answer("What is the capital of France?")
mlflow.flush_trace_async_logging()
