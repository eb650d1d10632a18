"""Chat completions as OpenAI, vLLM, Ollama, llama.cpp and most gateways speak them."""

import math
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, encode
from evenhand.models.dialect import Parsed, bad_reply
from evenhand.models.port import ChatRequest, Message
from evenhand.models.reasoning import join_reasoning

CUT_OFF = ("length", "max_tokens", "max_output_tokens")
"""What endpoints call it when a reply reached its limit."""
# The body's own numbers are checked by hand; `encode` would walk the whole conversation for them.
_ENCODER = msgspec.json.Encoder()


class _Body(Struct, omit_defaults=True, gc=False):
    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    stop: tuple[str, ...] = ()
    response_format: dict[str, Any] | None = None


class _Function(Struct):
    name: str = ""
    arguments: Any = None


class _ToolCall(Struct):
    function: _Function | None = None


class _Message(Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct):
    message: _Message | None = None
    finish_reason: str | None = None


class _TokenCounts(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(Struct):
    choices: list[_Choice] | None = None
    usage: _TokenCounts | None = None
    model: str | None = None


class OpenAIDialect:
    """`POST {base}/chat/completions`."""

    path = "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        found = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            found["Authorization"] = f"Bearer {key}"
        return found

    def body(self, request: ChatRequest, *, model: str, structured: bool) -> bytes:
        found = _Body(
            model=model,
            messages=request.messages,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            max_tokens=request.max_tokens,
            max_completion_tokens=request.max_completion_tokens,
            reasoning_effort=request.reasoning_effort,
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
        usage = completion.usage or _TokenCounts()
        shown = message.reasoning_content or message.reasoning
        reason = choice.finish_reason or "stop"
        return Parsed(
            text=message.refusal or _text(message.content) or _calls(message.tool_calls),
            finish_reason="length" if reason.lower() in CUT_OFF else reason,
            input_tokens=_count(usage.prompt_tokens),
            output_tokens=_count(usage.completion_tokens),
            model=completion.model or "",
            reasoning=join_reasoning(shown if isinstance(shown, str) else None, _thoughts(message.content)),
        )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def _thoughts(content: str | list[dict[str, Any]] | None) -> str | None:
    """The thinking among content parts; some endpoints put it into text parts of its own."""
    if not isinstance(content, list):
        return None
    found = []
    for part in content:
        if part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking") or part.get("text")
            if isinstance(inner, list):
                inner = _text([piece for piece in inner if isinstance(piece, dict)])
            if isinstance(inner, str):
                found.append(inner)
    return join_reasoning(*found)


def _calls(calls: list[_ToolCall] | None) -> str:
    """Tool calls as JSON text, for scorers that compare them; a reply may consist of nothing else."""
    named = [call.function for call in calls or () if call.function is not None]
    if not named:
        return ""
    return encode([{"name": call.name, "arguments": _arguments(call.arguments)} for call in named]).decode()


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except InputError:
        return value


def _count(tokens: int | None) -> int | None:
    return tokens if tokens is not None and tokens >= 0 else None
