"""A local chat endpoint for tests and demos: real HTTP, scripted answers, latency and faults.

It speaks OpenAI's chat completions and Anthropic's messages. It is a protocol on a bare socket, so that a bench
measures the client and not this.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode, encode
from evenhand.models.faults import FaultKind, FaultPlan
from evenhand.models.script import DEFAULT_ANSWER, Answerer, Line, MockAnswer, MockCall, Script

MAX_BODY = 64 * 1024 * 1024


class MockModelServer:
    """`async with MockModelServer(answer) as server:` and `server.url` is a base URL.

    `answer` is a callable, one text for all, or a table from parts of prompts to answers.
    """

    def __init__(
        self,
        answer: Answerer | str | Mapping[str, str] = DEFAULT_ANSWER,
        *,
        latency: float = 0.0,
        faults: FaultPlan | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        structured_output: bool = True,
        keep_calls: bool = True,
    ) -> None:
        self.answer = _answerer(answer)
        self.latency = latency
        self.faults = faults or FaultPlan()
        self.api_key = api_key
        self.structured_output = structured_output
        self.keep_calls = keep_calls
        self.calls: list[MockCall] = []
        """Every request that was understood, faulty ones included."""
        self.requests = 0
        """How many requests came."""
        self.injected: Counter[str] = Counter()
        """Faults by kind."""
        self.delivered: Counter[str] = Counter()
        """Good answers by prompt."""
        self.in_flight = 0
        self.most_in_flight = 0
        self._host, self._port = host, port
        self._seen: Counter[bytes] = Counter()
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    @property
    def url(self) -> str:
        """The base URL, `/v1` included."""
        return f"http://{self._host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        if self._server is None:
            await self.start()
        return self

    async def start(self) -> None:
        """Listen; entering the context does it too."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self, loop), self._host, self._port, backlog=2048
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await self._server.wait_closed()

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    def joined(self, connection: "_Connection") -> None:
        self._connections.add(connection)

    def left(self, connection: "_Connection") -> None:
        self._connections.discard(connection)

    def seen_before(self, body: bytes) -> int:
        """How often `body` came before; counts this time."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        seen = self._seen[digest]
        self._seen[digest] = seen + 1
        return seen


def _answerer(answer: Answerer | str | Mapping[str, str]) -> Answerer:
    if callable(answer):
        return answer
    if isinstance(answer, str):
        return Script([], default=answer)
    return Script([Line(contains=part, answer=text) for part, text in answer.items()])


class _Connection(asyncio.Protocol):
    """One client connection: requests one after the other, kept alive."""

    def __init__(self, server: MockModelServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = bytearray()
        self._busy = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._busy:
            self._server.in_flight -= 1
            self._busy = False
        self._transport = None
        self._server.left(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def _advance(self) -> None:
        """Take one whole request off the buffer, if there is one and the last is answered."""
        if self._busy or self._transport is None:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        request, *fields = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        headers = {}
        for line in fields:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY or "transfer-encoding" in headers:
            self._send(error_answer(411, "a body with a content length is needed"), close=True)
            return
        if headers.get("expect", "").lower() == "100-continue" and len(self._buffer) == end + 4:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(self._buffer) < end + 4 + int(length):
            return
        body = bytes(self._buffer[end + 4 : end + 4 + int(length)])
        del self._buffer[: end + 4 + int(length)]
        method, _, rest = request.partition(" ")
        self._busy = True
        server = self._server
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        self._handle(method, rest.partition(" ")[0], headers, body)

    def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        server = self._server
        server.requests += 1
        if method == "GET" and path.endswith("/models"):
            self._send(plain_answer(200, {"object": "list", "data": [{"id": "mock", "object": "model"}]}))
            return
        if method != "POST" or not path.endswith(("/chat/completions", "/messages")):
            self._send(error_answer(404, f"there is nothing at {path}"))
            return
        if server.api_key is not None and server.api_key not in (
            headers.get("x-api-key"),
            headers.get("authorization", "").removeprefix("Bearer "),
        ):
            self._send(error_answer(401, "the key is wrong"))
            return
        try:
            call = understood(path, headers, decode(body), server.seen_before(body))
        except (InputError, TypeError, AttributeError, KeyError):
            self._send(error_answer(400, "the body is not a chat request"))
            return
        if server.keep_calls:
            server.calls.append(call)
        if "response_format" in call.body and not server.structured_output:
            self._send(error_answer(400, "response_format is not supported"))
            return
        fault = server.faults.pick(body, call.seen)
        try:
            answer = server.answer(call)
        except Exception as error:
            # A script with a mistake must be seen at once: a refusal is not tried again.
            self._send(error_answer(400, f"the script raised {type(error).__name__}: {error}"))
            return
        if isinstance(answer, str):
            answer = MockAnswer(text=answer)
        wait = server.latency if answer.latency is None else answer.latency
        if wait > 0:
            self._loop.call_later(wait, self._finish, call, answer, fault)
        else:
            self._finish(call, answer, fault)

    def _finish(self, call: MockCall, answer: MockAnswer, fault: FaultKind | None) -> None:
        if self._transport is None:
            return
        server = self._server
        if fault is not None:
            server.injected[fault] += 1
            self._inject(fault, call, answer)
            return
        if answer.status == 200:
            if server.keep_calls:
                server.delivered[call.prompt] += 1
            self._send(good_answer(call, answer))
        else:
            self._send(error_answer(answer.status, answer.text, answer.headers))

    def _inject(self, fault: FaultKind, call: MockCall, answer: MockAnswer) -> None:
        plan = self._server.faults
        assert self._transport is not None
        if fault == "cut":
            self._transport.abort()
            return
        good = good_answer(call, answer)
        if fault == "cut_body":
            self._transport.write(good[: len(good) - 20])
            self._transport.close()
        elif fault == "slow":
            self._loop.call_later(plan.slow_seconds, self._send, good)
        elif fault == "drip":
            self._drip(good, plan.slow_seconds / 20)
        else:
            self._send(faulty_answer(fault, good, plan.retry_after))

    def _drip(self, rest: bytes, pause: float) -> None:
        """A byte at a time: the slow client attack, from the server's side."""
        if self._transport is None:
            return
        self._transport.write(rest[:1])
        if len(rest) > 1:
            self._loop.call_later(pause, self._drip, rest[1:], pause)

    def _send(self, answer: bytes, *, close: bool = False) -> None:
        if self._transport is None:
            return
        self._transport.write(answer)
        if self._busy:
            self._busy = False
            self._server.in_flight -= 1
        if close:
            self._transport.close()
        elif self._buffer:
            self._advance()


def understood(path: str, headers: dict[str, str], body: Any, seen: int) -> MockCall:
    """The call that a body stands for."""
    messages = body["messages"]
    prompt = next((_plain(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")
    instructions = [_plain(m["content"]) for m in messages if m["role"] == "system"]
    if "system" in body:
        instructions.append(_plain(body["system"]))
    return MockCall(
        prompt=prompt,
        system="\n".join(instructions),
        model=str(body["model"]),
        body=body,
        headers=headers,
        path=path,
        seen=seen,
    )


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def good_answer(call: MockCall, answer: MockAnswer) -> bytes:
    """A success in the dialect that was asked."""
    asked = answer.input_tokens
    if asked is None:
        asked = len(call.prompt.split()) + len(call.system.split())
    given = answer.output_tokens if answer.output_tokens is not None else len(answer.text.split())
    body: dict[str, Any]
    if call.path.endswith("/messages"):
        body = _anthropic_body(call, answer, asked, given)
    else:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.reasoning is not None:
            message["reasoning_content"] = answer.reasoning
        body = {
            "id": "mock-completion",
            "object": "chat.completion",
            "created": 0,
            "model": call.model,
            "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
            "usage": {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given},
        }
    return plain_answer(200, body, answer.headers)


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
    else:
        content.append({"type": "text", "text": answer.text})
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    return {
        "id": "mock-message",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": content,
        "stop_reason": reasons.get(answer.finish_reason, answer.finish_reason),
        "usage": {"input_tokens": asked, "output_tokens": given},
    }


def plain_answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> bytes:
    """An answer with a JSON body."""
    return _framed(status, "application/json", encode(body), headers)


def error_answer(status: int, message: str, headers: Mapping[str, str] | None = None) -> bytes:
    """An error in the shape that chat endpoints use."""
    return plain_answer(status, {"error": {"message": message, "type": "mock_error"}}, headers)


def faulty_answer(fault: FaultKind, good: bytes, retry_after: str | None) -> bytes:
    """One of the faults that are an answer, if a bad one."""
    body = good.partition(b"\r\n\r\n")[2]
    match fault:
        case "rate_limit":
            headers = {} if retry_after is None else {"Retry-After": retry_after}
            return error_answer(429, "too many requests", headers)
        case "server_error":
            return error_answer(500, "an injected fault")
        case "unavailable":
            return _framed(503, "text/html", b"<h1>Service Unavailable</h1>")
        case "html":
            return _framed(200, "text/html; charset=utf-8", b"<html><body>Welcome</body></html>")
        case "truncated":
            return _framed(200, "application/json", body[: len(body) // 2])
        case "empty_choices":
            return plain_answer(200, {"choices": [], "content": [], "model": "mock"})
        case "event_stream":
            return _framed(200, "text/event-stream", b"data: " + body + b"\n\ndata: [DONE]\n\n")
        case "bad_charset":
            return _framed(200, "application/json; charset=utf-16", body.decode().encode("utf-16"))
        case "too_long":
            return _framed(200, "application/json", b'{"choices": "' + b"a" * (5 * 1024 * 1024) + b'"}')
    raise AssertionError(fault)


def _framed(status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Mock", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
