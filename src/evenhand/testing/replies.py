"""What the mock endpoint answers: good replies in both dialects, errors, and replies that are wrong on purpose."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, encode
from evenhand.testing.faults import FaultKind
from evenhand.testing.script import MockAnswer, MockCall

SUCCESSORS = {"max_tokens": "max_completion_tokens"}
"""What an endpoint that rejects a field tells its caller to use."""


class Reply(Struct, frozen=True, kw_only=True):
    """A whole HTTP answer, before it is sent."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}

    def response(self) -> web.Response:
        """The answer as aiohttp sends it."""
        return web.Response(status=self.status, body=self.body, headers=self._fields())

    async def prepared(self, request: web.BaseRequest) -> web.StreamResponse:
        """The head of the answer, sent; the body is the caller's to write."""
        fields = {**self._fields(), "Content-Length": str(len(self.body))}
        response = web.StreamResponse(status=self.status, headers=fields)
        await response.prepare(request)
        return response

    def _fields(self) -> dict[str, str]:
        return {"Content-Type": self.content_type, **self.headers}


def json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """An answer with a JSON body."""
    return Reply(status=status, body=encode(body), headers=headers or {})


def error_reply(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error in the shape that chat endpoints use."""
    return json_reply(status, {"error": {"message": message, "type": "mock_error"}}, headers)


def rejected_reply(name: str) -> Reply:
    """The 400 for a field that the model does not take."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    if name in SUCCESSORS:
        message += f" Use '{SUCCESSORS[name]}' instead."
    return json_reply(
        400,
        {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": name,
                "code": "unsupported_parameter",
            }
        },
    )


def good_reply(call: MockCall, answer: MockAnswer) -> Reply:
    """A success in the dialect that was asked."""
    asked = answer.input_tokens
    if asked is None:
        asked = len(call.prompt.split()) + len(call.system.split())
    given = answer.output_tokens if answer.output_tokens is not None else len(answer.text.split())
    made = _anthropic_body if call.path.endswith("/messages") else _openai_body
    return json_reply(200, made(call, answer, asked, given), answer.headers)


def _openai_body(call: MockCall, answer: MockAnswer, asked: int, given: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text if answer.content is None else answer.content,
    }
    if answer.reasoning is not None:
        message[answer.reasoning_field] = answer.reasoning
    reason = answer.finish_reason
    if answer.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"mock-call-{number}",
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "arguments": encode(tool.get("arguments", {})).decode(),
                },
            }
            for number, tool in enumerate(answer.tool_calls)
        ]
        if not answer.text and answer.content is None:
            message["content"] = None
        reason = "tool_calls" if reason == "stop" else reason
    return {
        "id": "mock-completion",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given},
    }


def _anthropic_body(call: MockCall, answer: MockAnswer, asked: int, given: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.reasoning is not None:
        content.append({"type": "thinking", "thinking": answer.reasoning})
    if call.body.get("tool_choice"):
        try:
            value = decode(answer.text)
        except InputError:
            value = {"text": answer.text}
        name = call.body["tool_choice"]["name"]
        content.append({"type": "tool_use", "id": "mock-tool", "name": name, "input": value})
    elif answer.content is not None:
        content += answer.content
    elif answer.text or not answer.tool_calls:
        content.append({"type": "text", "text": answer.text})
    for number, tool in enumerate(answer.tool_calls):
        content.append(
            {
                "type": "tool_use",
                "id": f"mock-call-{number}",
                "name": tool["name"],
                "input": tool.get("arguments", {}),
            }
        )
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    reason = "tool_use" if answer.tool_calls and answer.finish_reason == "stop" else answer.finish_reason
    return {
        "id": "mock-message",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": content,
        "stop_reason": reasons.get(reason, reason),
        "usage": {"input_tokens": asked, "output_tokens": given},
    }


def faulty_reply(fault: FaultKind, good: Reply, retry_after: str | None) -> Reply:
    """One of the faults that are an answer, if a bad one."""
    match fault:
        case "rate_limit":
            return error_reply(
                429, "too many requests", {} if retry_after is None else {"Retry-After": retry_after}
            )
        case "server_error":
            return error_reply(500, "an injected fault")
        case "unavailable":
            return Reply(status=503, content_type="text/html", body=b"<h1>Service Unavailable</h1>")
        case "html":
            return Reply(
                status=200,
                content_type="text/html; charset=utf-8",
                body=b"<html><body>Welcome</body></html>",
            )
        case "half_json":
            return Reply(status=200, body=good.body[: len(good.body) // 2])
        case "empty_choices":
            return json_reply(200, {"choices": [], "content": [], "model": "mock"})
        case "event_stream":
            body = b"data: " + good.body + b"\n\ndata: [DONE]\n\n"
            return Reply(status=200, content_type="text/event-stream", body=body)
        case "bad_charset":
            body = good.body.decode().encode("utf-16")
            return Reply(status=200, content_type="application/json; charset=utf-16", body=body)
        case "too_long":
            return Reply(status=200, body=b'{"choices": "' + b"a" * (5 * 1024 * 1024) + b'"}')
    raise AssertionError(fault)
