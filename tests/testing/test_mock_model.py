"""The mock model is a real HTTP endpoint: what it says and does wrong is seen through sockets."""

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from evenhand.core.errors import InputError
from evenhand.testing import FaultPlan, MockAnswer, MockCall, MockModel, read_script
from evenhand.testing.faults import KINDS, FaultKind

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "The capital of France?"}]}


class Said:
    """Status, headers and body of one answer."""

    def __init__(self, model: MockModel, body: Any, path: str = "/chat/completions", **headers: str) -> None:
        parts = urlsplit(model.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        try:
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", parts.path + path, sent, headers)
            answer = connection.getresponse()
            self.status, self.headers, self.raw = answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    @property
    def json(self) -> Any:
        return json.loads(self.raw.decode("utf-8"))

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["choices"][0]["message"]
        return found


def test_one_text_for_all_and_what_it_saw() -> None:
    with MockModel("Paris") as model:
        said = Said(model, QUESTION, authorization="Bearer k")
        assert (said.status, said.message["content"]) == (200, "Paris")
        assert said.json["usage"] == {"prompt_tokens": 4, "completion_tokens": 1, "total_tokens": 5}
        (call,) = model.calls
        assert (call.prompt, call.model, call.seen) == ("The capital of France?", "m", 0)
        assert call.headers["authorization"] == "Bearer k"
        assert (model.requests, model.in_flight, model.most_in_flight) == (1, 0, 1)
        assert model.delivered == {"The capital of France?": 1}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(urlsplit(model.url).port or 0)), timeout=5)


async def test_in_a_running_loop() -> None:
    import aiohttp

    async with (
        MockModel({"France": "Paris"}) as model,
        aiohttp.ClientSession() as session,
        session.post(f"{model.url}/chat/completions", json=QUESTION) as answer,
    ):
        assert (await answer.json())["choices"][0]["message"]["content"] == "Paris"


def test_tables_functions_and_answers_with_more_than_a_text() -> None:
    table: dict[str, str | MockAnswer] = {"France": "Paris", "Japan": MockAnswer(text="no", status=503)}
    with MockModel(table) as model:
        assert Said(model, QUESTION).message["content"] == "Paris"
        asked = {"model": "m", "messages": [{"role": "user", "content": "And of Japan?"}]}
        assert Said(model, asked).status == 503

    def third_time(call: MockCall) -> str:
        return f"call {call.seen}"

    with MockModel(third_time) as model:
        assert [Said(model, QUESTION).message["content"] for _ in range(3)] == ["call 0", "call 1", "call 2"]


@pytest.mark.parametrize(
    ("answer", "message", "reason"),
    [
        (MockAnswer(text="4", reasoning="2+2"), {"content": "4", "reasoning_content": "2+2"}, "stop"),
        (
            MockAnswer(text="4", reasoning="2+2", reasoning_field="reasoning"),
            {"content": "4", "reasoning": "2+2"},
            "stop",
        ),
        (MockAnswer(text="<think>Let", finish_reason="length"), {"content": "<think>Let"}, "length"),
        (
            MockAnswer(content=[{"type": "text", "text": "4"}]),
            {"content": [{"type": "text", "text": "4"}]},
            "stop",
        ),
        (
            MockAnswer(tool_calls=({"name": "f", "arguments": {"x": 1}},)),
            {
                "content": None,
                "tool_calls": [
                    {
                        "id": "mock-call-0",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"x":1}'},
                    }
                ],
            },
            "tool_calls",
        ),
    ],
)
def test_answers_as_openai_shapes_them(answer: MockAnswer, message: dict[str, Any], reason: str) -> None:
    with MockModel(answer) as model:
        said = Said(model, QUESTION)
    assert said.message == {"role": "assistant", **message}
    assert said.json["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize(
    ("answer", "content", "reason"),
    [
        (
            MockAnswer(text="4", reasoning="2+2"),
            [{"type": "thinking", "thinking": "2+2"}, {"type": "text", "text": "4"}],
            "end_turn",
        ),
        (MockAnswer(text="4", finish_reason="length"), [{"type": "text", "text": "4"}], "max_tokens"),
        (
            MockAnswer(tool_calls=({"name": "f"},)),
            [{"type": "tool_use", "id": "mock-call-0", "name": "f", "input": {}}],
            "tool_use",
        ),
    ],
)
def test_answers_as_anthropic_shapes_them(
    answer: MockAnswer, content: list[dict[str, Any]], reason: str
) -> None:
    with MockModel(answer) as model:
        said = Said(model, QUESTION, "/messages")
    assert said.json["content"] == content
    assert said.json["stop_reason"] == reason


def test_fields_that_are_rejected() -> None:
    with MockModel("x", rejects=("max_tokens", "temperature")) as model:
        assert Said(model, QUESTION).status == 200
        said = Said(model, {**QUESTION, "max_tokens": 5})
        assert said.status == 400
        assert said.json["error"]["param"] == "max_tokens"
        assert "Use 'max_completion_tokens' instead" in said.json["error"]["message"]
        assert Said(model, {**QUESTION, "temperature": 0}).json["error"]["code"] == "unsupported_parameter"
        assert Said(model, {**QUESTION, "max_completion_tokens": 5}).status == 200


def test_keys_paths_and_bodies_that_are_wrong() -> None:
    with MockModel("x", api_key="right") as model:
        assert Said(model, QUESTION).status == 401
        assert Said(model, QUESTION, authorization="Bearer right").status == 200
        assert Said(model, QUESTION, "/messages", **{"x-api-key": "right"}).status == 200
        assert Said(model, QUESTION, "/elsewhere").status == 404
    with MockModel("x") as model:
        for body in (b"no JSON", b"[]", b"{}", b'{"model": "m", "messages": 3}'):
            assert Said(model, body).status == 400
        large = {**QUESTION, "metadata": "x" * 2_000_000}
        assert Said(model, large).status == 200
    with MockModel(lambda call: 1 / 0) as model:  # type: ignore[arg-type,return-value]
        assert "ZeroDivisionError" in Said(model, QUESTION).json["error"]["message"]


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind() -> None:
    with MockModel("x") as model:
        taken = int(urlsplit(model.url).port or 0)
        with pytest.raises(OSError, match="address already in use"), MockModel("y", port=taken):
            pass
        assert Said(model, QUESTION).status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_by_answer(kind: FaultKind) -> None:
    plan = FaultPlan(slow_seconds=0.02)
    with MockModel(MockAnswer(text="fine", fault=kind), faults=plan) as model:
        start = time.monotonic()
        try:
            said = Said(model, QUESTION)
        except (http.client.HTTPException, ConnectionError):
            assert kind in ("cut", "cut_body")
        else:
            assert kind not in ("cut", "cut_body")
            if kind in ("slow", "drip"):
                assert said.message["content"] == "fine"
                assert time.monotonic() - start >= 0.02
            elif said.status == 200:
                with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
                    said.message["content"].lower()
            if kind == "rate_limit":
                assert (said.status, said.headers["Retry-After"]) == (429, "0")
        assert model.injected == {kind: 1}
        while model.in_flight:  # the client may have the last byte before the server has come to its end
            time.sleep(0.01)


def test_a_rate_limit_without_a_hint() -> None:
    plan = FaultPlan(rate=1.0, kinds=("rate_limit",), retry_after=None)
    with MockModel("x", faults=plan) as model:
        said = Said(model, QUESTION)
    assert said.status == 429
    assert "Retry-After" not in said.headers


def test_a_client_that_goes_away_is_not_in_flight_any_more() -> None:
    with MockModel("x", latency=600.0) as model:
        parts = urlsplit(model.url)
        body = json.dumps(QUESTION).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((str(parts.hostname), int(parts.port or 0))) as connection:
            connection.sendall(head.encode() + body)
            while model.in_flight == 0:
                time.sleep(0.01)
        while model.in_flight:
            time.sleep(0.01)


def test_a_script_with_more_than_texts(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(
        '{"contains": "France", "answer": "<think>Hm", "finish_reason": "length"}\n'
        '{"contains": "call", "tool_calls": [{"name": "f", "arguments": {}}]}\n'
        '{"contains": "html", "fault": "html"}\n'
    )
    with MockModel(read_script(path)) as model:
        assert Said(model, QUESTION).json["choices"][0]["finish_reason"] == "length"
        asked = {"model": "m", "messages": [{"role": "user", "content": "call it"}]}
        assert Said(model, asked).message["tool_calls"][0]["function"]["name"] == "f"
        asked["messages"] = [{"role": "user", "content": "html"}]
        assert Said(model, asked).headers["Content-Type"].startswith("text/html")
    path.write_text('{"contains": "x"}\n')
    with pytest.raises(InputError, match="a line needs"):
        read_script(path)
