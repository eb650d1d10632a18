"""langfuse: its decorator and its OpenAI client, over its own path and with its own kind of keys."""

import contextlib
import os

from langfuse import Langfuse, observe, propagate_attributes
from langfuse.openai import openai

# The public key may be anything; the secret key is a token of ours.
langfuse = Langfuse(
    public_key="pk-anything", secret_key=os.environ["TOKEN"], host=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
)
model = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="right", max_retries=0)
refused = openai.OpenAI(base_url=os.environ["MODEL_URL"], api_key="wrong", max_retries=0)


@observe(name="answer question")
def answer(question: str) -> str:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    with propagate_attributes(session_id="conversation-1", user_id="ada"):
        reply = model.chat.completions.create(model="small-1", messages=messages)
        with contextlib.suppress(openai.AuthenticationError):
            refused.chat.completions.create(model="small-1", messages=messages)
    return reply.choices[0].message.content


answer("What is the capital of France?")
langfuse.flush()
langfuse.shutdown()
