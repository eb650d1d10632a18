"""A local chat endpoint for tests and demos: real HTTP, scripted answers, latency and faults.

It speaks OpenAI's chat completions and Anthropic's messages.
"""

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.testing.faults import FaultKind, FaultPlan
from evenhand.testing.replies import Reply, error_reply, faulty_reply, good_reply, json_reply, rejected_reply
from evenhand.testing.script import DEFAULT_ANSWER, Answerer, MockAnswer, MockCall, Script, with_nonce

MAX_BODY = 64 * 1024 * 1024
MODELS = {"object": "list", "data": [{"id": "mock", "object": "model"}]}


class MockModel:
    """A chat endpoint: `with MockModel("Paris") as model:` and `model.url` is its base URL.

    `answer` is one text or `MockAnswer` for all, a table from parts of prompts to answers, or a function of the call.
    As a plain context manager it runs on a thread of its own, with `async with` in the running event loop.
    """

    def __init__(
        self,
        answer: Answerer | str | MockAnswer | Mapping[str, str | MockAnswer] = DEFAULT_ANSWER,
        *,
        latency: float = 0.0,
        faults: FaultPlan | None = None,
        rejects: Collection[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        structured_output: bool = True,
        keep_calls: bool = True,
    ) -> None:
        self.answer = _answerer(answer)
        self.latency = latency
        """Seconds before each answer."""
        self.faults = faults or FaultPlan()
        self.rejects = frozenset(rejects)
        """Fields of a request that are answered with 400, such as `max_tokens` and `temperature`."""
        self.api_key = api_key
        """The key that requests must show; None takes any."""
        self.structured_output = structured_output
        """Whether `response_format` is taken."""
        self.keep_calls = keep_calls
        """Whether `calls` and `delivered` are kept; not keeping them saves memory in long runs."""
        self.calls: list[MockCall] = []
        """Every request that was understood, faulty ones included."""
        self.requests = 0
        """How many requests came."""
        self.injected: Counter[str] = Counter()
        """Faults by kind."""
        self.delivered: Counter[str] = Counter()
        """Good answers by prompt."""
        self.in_flight = 0
        """Requests that wait for their answer."""
        self.most_in_flight = 0
        """The largest value of `in_flight` so far."""
        self._host, self._port = host, port
        self._seen: Counter[bytes] = Counter()
        self._runner: web.ServerRunner | None = None
        self._thread: _LoopThread | None = None

    @property
    def url(self) -> str:
        """The base URL, `/v1` included."""
        return f"http://{self._host}:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        try:
            self._thread.wait_for(self.start())
        except BaseException:
            self._thread.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._thread.wait_for(self.stop())
        self._thread.close()

    async def __aenter__(self) -> Self:
        if self._runner is None:
            await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen in the running event loop; entering the context does it too."""
        server = web.Server(
            self._respond, request_factory=_request, handler_cancellation=True, access_log=None
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=2048)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        assert self._runner is not None
        await self._runner.cleanup()
        self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = await self._reply(request)
            return reply if isinstance(reply, web.StreamResponse) else reply.response()
        finally:
            self.in_flight -= 1

    async def _reply(self, request: web.BaseRequest) -> Reply | web.StreamResponse:
        path = request.path
        if request.method == "GET" and path.endswith("/models"):
            return json_reply(200, MODELS)
        if request.method != "POST" or not path.endswith(("/chat/completions", "/messages")):
            return error_reply(404, f"there is nothing at {path}")
        headers = {name.lower(): value for name, value in request.headers.items()}
        shown = (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
        if self.api_key is not None and self.api_key not in shown:
            return error_reply(401, "the key is wrong")
        body = await request.read()
        try:
            call = understood(path, headers, decode(body), self._seen_before(body))
        except (InputError, TypeError, AttributeError, KeyError):
            return error_reply(400, "the body is not a chat request")
        if self.keep_calls:
            self.calls.append(call)
        if "response_format" in call.body and not self.structured_output:
            return error_reply(400, "response_format is not supported")
        for name in sorted(self.rejects.intersection(call.body)):
            return rejected_reply(name)
        fault = self.faults.pick(body, call.seen)
        try:
            answer = self.answer(call)
        except Exception as error:
            # A script with a mistake must be seen at once: a refusal is not tried again.
            return error_reply(400, f"the script raised {type(error).__name__}: {error}")
        if isinstance(answer, str):
            answer = MockAnswer(text=answer)
        wait = self.latency if answer.latency is None else answer.latency
        if wait > 0:
            await asyncio.sleep(wait)
        fault = fault or answer.fault
        if fault is not None:
            self.injected[fault] += 1
            return await self._inject(fault, request, good_reply(call, answer))
        if answer.status == 200:
            if self.keep_calls:
                self.delivered[call.prompt] += 1
            return good_reply(call, answer)
        return error_reply(answer.status, answer.text, answer.headers)

    async def _inject(
        self, fault: FaultKind, request: web.BaseRequest, good: Reply
    ) -> Reply | web.StreamResponse:
        plan = self.faults
        match fault:
            case "cut":
                _abort(request)
                return good
            case "cut_body":
                response = await good.prepared(request)
                await response.write(good.body[:-20])
                _abort(request)
                return response
            case "slow":
                await asyncio.sleep(plan.slow_seconds)
                return good
            case "drip":
                # A byte at a time: the slow client attack, from the server's side.
                response = await good.prepared(request)
                for place in range(len(good.body)):
                    await response.write(good.body[place : place + 1])
                    await asyncio.sleep(plan.slow_seconds / 20)
                return response
            case _:
                return faulty_reply(fault, good, plan.retry_after)

    def _seen_before(self, body: bytes) -> int:
        """How often `body` came before; counts this time."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        seen = self._seen[digest]
        self._seen[digest] = seen + 1
        return seen


class _LoopThread:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mock-model", daemon=True)
        self._thread.start()

    def wait_for(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: "asyncio.Task[None]"
) -> web.BaseRequest:
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=MAX_BODY
    )


def _abort(request: web.BaseRequest) -> None:
    if isinstance(request.transport, asyncio.Transport):
        request.transport.abort()


def _answerer(answer: Answerer | str | MockAnswer | Mapping[str, str | MockAnswer]) -> Answerer:
    if isinstance(answer, MockAnswer):
        return lambda _: answer
    if isinstance(answer, str):
        return Script([], default=answer)
    if isinstance(answer, Mapping):
        return _table(answer)
    return answer


def _table(answers: Mapping[str, str | MockAnswer]) -> Answerer:
    """The first entry whose key is part of the prompt answers."""
    found = dict(answers)

    def answer(call: MockCall) -> str | MockAnswer:
        said = next((text for part, text in found.items() if part in call.prompt), DEFAULT_ANSWER)
        return said if isinstance(said, MockAnswer) else with_nonce(said, call.prompt)

    return answer


def understood(path: str, headers: dict[str, str], body: Any, seen: int) -> MockCall:
    """The call that a body stands for."""
    messages = body["messages"]
    prompt = next((_plain(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")
    instructions = [_plain(m["content"]) for m in messages if m["role"] in ("system", "developer")]
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
