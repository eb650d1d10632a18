"""Anthropic's messages."""

from typing import Any

from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, encode, encode_text
from evenhand.models.dialect import Parsed, bad_reply
from evenhand.models.port import ChatRequest

VERSION = "2023-06-01"
TOOL = "reply"
REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class _Block(Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    input: Any = None


class _TokenCounts(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _TokenCounts | None = None
    model: str = ""


class AnthropicDialect:
    """`POST {base}/messages`. A wanted schema becomes a tool that must be called: its input is the reply."""

    path = "/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        found = {"Content-Type": "application/json", "anthropic-version": VERSION}
        if key is not None:
            found["x-api-key"] = key
        return found

    def body(self, request: ChatRequest, *, model: str, structured: bool) -> bytes:
        instructions = "\n\n".join(m.text for m in request.messages if m.role == "system")
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens or request.max_completion_tokens,
            "messages": [message for message in request.messages if message.role != "system"],
        }
        if instructions:
            body["system"] = instructions
        for name in ("temperature", "top_p"):
            value = getattr(request, name)
            if value is not None:
                body[name] = value
        if request.stop:
            body["stop_sequences"] = request.stop
        if structured and request.response_schema is not None:
            body["tools"] = [
                {"name": TOOL, "description": "Give the reply.", "input_schema": request.response_schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": TOOL}
        body.update(request.extra)
        return encode(body)

    def parse(self, body: bytes) -> Parsed:
        try:
            answer = decode(body, type=_Answer)
        except InputError as error:
            raise bad_reply(str(error)) from None
        if not answer.content:
            raise bad_reply("it holds no content")
        usage = answer.usage
        asked = None
        if usage is not None:
            cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
            asked = usage.input_tokens + cached
        tools = [block.input for block in answer.content if block.type == "tool_use"]
        texts = [block.text or "" for block in answer.content if block.type == "text"]
        thoughts = [block.thinking or "" for block in answer.content if block.type == "thinking"]
        reason = answer.stop_reason or "end_turn"
        return Parsed(
            text=encode_text(tools[0]) if tools else "".join(texts),
            finish_reason=REASONS.get(reason, reason),
            input_tokens=asked,
            output_tokens=usage.output_tokens if usage is not None else None,
            model=answer.model,
            reasoning="\n".join(thoughts) or None,
        )
