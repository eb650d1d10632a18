"""Chat completions as OpenAI, vLLM, Ollama, llama.cpp and most gateways speak them."""

import math
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, encode
from evenhand.models.dialect import Parsed, bad_reply
from evenhand.models.port import ChatRequest, Message

# The body's own numbers are checked by hand; `encode` would walk the whole conversation for them.
_ENCODER = msgspec.json.Encoder()


class _Body(Struct, omit_defaults=True, gc=False):
    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    response_format: dict[str, Any] | None = None


class _Message(Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None


class _Choice(Struct):
    message: _Message | None = None
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None


class OpenAIDialect:
    """`POST {base}/chat/completions`."""

    path = "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        found = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            found["Authorization"] = f"Bearer {key}"
        return found

    def body(self, request: ChatRequest, *, model: str, structured: bool, max_tokens: int | None) -> bytes:
        found = _Body(
            model=model,
            messages=request.messages,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            max_tokens=max_tokens,
            stop=request.stop,
        )
        if structured and request.response_schema is not None:
            found.response_format = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": request.response_schema},
            }
        if request.extra:
            return encode({**msgspec.to_builtins(found), **request.extra})
        for number in (request.temperature, request.top_p):
            if number is not None and not math.isfinite(number):
                raise ValueError("temperature and top_p must be finite")
        return _ENCODER.encode(found)

    def parse(self, body: bytes) -> Parsed:
        try:
            completion = decode(body, type=_Completion)
        except InputError as error:
            raise bad_reply(str(error)) from None
        if not completion.choices or completion.choices[0].message is None:
            raise bad_reply("it holds no choices")
        choice = completion.choices[0]
        message = choice.message
        assert message is not None
        usage = completion.usage or _Usage()
        reasoning = message.reasoning_content or message.reasoning
        return Parsed(
            text=message.refusal or _text(message.content),
            finish_reason=choice.finish_reason or "stop",
            input_tokens=_count(usage.prompt_tokens),
            output_tokens=_count(usage.completion_tokens),
            model=completion.model or "",
            reasoning=reasoning if isinstance(reasoning, str) else None,
        )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def _count(tokens: int | None) -> int | None:
    return tokens if tokens is not None and tokens >= 0 else None
