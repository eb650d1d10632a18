"""A chat endpoint over real HTTP: replies, retries, refusals and limits."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from evenhand.core.errors import ModelError, ModelRejected, OptionError
from evenhand.core.secret import Secret
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.endpoint import Endpoint
from evenhand.models.port import ChatReply, ChatRequest, system, user
from evenhand.testing.faults import KINDS, FaultKind, FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

QUICK = RetryPolicy(first_delay=0.001, max_delay=0.01)


@asynccontextmanager
async def asking(server: MockModel, **options: Any) -> AsyncIterator[Endpoint]:
    options = {"retry": QUICK, "timeout": 60.0, **options}
    model = connect(EndpointConfig(base_url=server.url, model="m", **options))
    try:
        yield model
    finally:
        await model.aclose()


def ask(text: str, **options: Any) -> ChatRequest:
    return ChatRequest(messages=(user(text),), **options)


async def test_a_reply_carries_text_tokens_time_and_model() -> None:
    async with MockModel({"France": "Paris it is"}, latency=0.02) as server, asking(server) as model:
        reply = await model.complete(ask("the capital of France", max_tokens=5, temperature=0.0, seed=3))
    assert (reply.text, reply.finish_reason, reply.model) == ("Paris it is", "stop", "m")
    assert (reply.input_tokens, reply.output_tokens) == (4, 3)
    assert reply.latency_seconds >= 0.02
    assert (reply.attempts, reply.cached) == (1, False)
    sent = server.calls[0].body
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "the capital of France"}],
        "temperature": 0.0,
        "max_tokens": 5,
        "seed": 3,
    }


async def test_system_extra_and_stop_are_sent_and_the_repeat_index_is_not() -> None:
    async with MockModel() as server, asking(server) as model:
        await model.complete(
            ChatRequest(messages=(system("be brief"), user("hi")), stop=("\n",), repeat=3, extra={"top_k": 5})
        )
    body = server.calls[0].body
    assert body["stop"] == ["\n"]
    assert body["top_k"] == 5
    assert "repeat" not in body
    assert server.calls[0].system == "be brief"


async def test_reasoning_shown_apart_stays_apart() -> None:
    answer = MockAnswer(text="4", reasoning="2+2")
    async with MockModel(lambda _: answer) as server, asking(server) as model:
        reply = await model.complete(ask("2+2"))
    assert (reply.text, reply.reasoning) == ("4", "2+2")


class OneFault(FaultPlan, frozen=True, kw_only=True):
    """The first request of each body meets the fault, the next does not."""

    def pick(self, body: bytes, seen: int) -> FaultKind | None:
        return self.kinds[0] if seen == 0 else None


LATE = ("slow", "drip")
"""Faults that show only by the time that they take."""


def patience(kind: FaultKind) -> dict[str, Any]:
    """Little where the fault is to be late, much where nothing but the fault may decide."""
    retry = RetryPolicy(tries=20, first_delay=0.001, max_delay=0.01)
    return {"timeout": 0.5 if kind in LATE else 60.0, "retry": retry}


@pytest.mark.parametrize("kind", KINDS)
async def test_every_fault_is_survived_by_trying_again(kind: FaultKind) -> None:
    plan = OneFault(kinds=(kind,), slow_seconds=30.0, retry_after="0")
    async with MockModel("fine", faults=plan) as server, asking(server, **patience(kind)) as model:
        reply = await model.complete(ask("x"))
        assert reply.text == "fine"
        # A machine that stands still for half a second makes a good reply late as well: once more then.
        assert reply.attempts == 2 or (kind in LATE and reply.attempts > 2)
        assert sum(model.usage.retries.values()) == reply.attempts - 1
        assert model.usage.requests == reply.attempts
    assert server.injected == {kind: 1}


EXPECTED_KINDS = {
    "rate_limit": "rate_limit",
    "server_error": "server_error",
    "unavailable": "server_error",
    "slow": "timeout",
    "drip": "timeout",
    "cut": "connection",
    "cut_body": "bad_reply",
    "html": "bad_reply",
    "half_json": "bad_reply",
    "empty_choices": "bad_reply",
    "event_stream": "bad_reply",
    "bad_charset": "bad_reply",
    "too_long": "bad_reply",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_fault_that_stays_ends_in_its_kind_after_the_allowed_tries(kind: FaultKind) -> None:
    plan = FaultPlan(rate=1.0, kinds=(kind,), slow_seconds=30.0)
    policy = RetryPolicy(tries=3, first_delay=0.001, max_delay=0.01)
    options = {**patience(kind), "retry": policy}
    async with MockModel(faults=plan) as server, asking(server, **options) as model:
        with pytest.raises(ModelError, match="after 3 attempts") as caught:
            await model.complete(ask("x"))
        assert caught.value.kind == EXPECTED_KINDS[kind]
        assert not isinstance(caught.value, ModelRejected)
        assert model.usage.gave_up == {EXPECTED_KINDS[kind]: 1}
    # A try that ran out of time may have done so before the endpoint saw it.
    assert server.requests == 3 or (kind in LATE and server.requests < 3)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "messages is missing", "bad_request"),
        (400, "This model's maximum context length is 8192 tokens", "context_length"),
        (400, "prompt is too long: 3 > 2", "context_length"),
        (400, "The response was filtered: content_filter", "content_filter"),
        (401, "bad key", "auth"),
        (403, "no", "auth"),
        (404, "no such model", "not_found"),
        (422, "temperature", "bad_request"),
        (429, "You exceeded your current quota: insufficient_quota", "quota"),
    ],
)
async def test_a_permanent_refusal_is_not_tried_again(status: int, message: str, kind: str) -> None:
    answer = MockAnswer(text=message, status=status)
    async with MockModel(lambda _: answer) as server, asking(server) as model:
        with pytest.raises(ModelRejected) as caught:
            await model.complete(ask("x"))
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert server.requests == 1


async def test_nobody_listening_is_a_connection_error() -> None:
    policy = RetryPolicy(tries=2, first_delay=0.001)
    with socket.socket() as silent:
        # Bound, so that nobody else gets the port; not listening.
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        model = connect(EndpointConfig(base_url=url, model="m", retry=policy))
        with pytest.raises(ModelError) as caught:
            await model.complete(ask("x"))
        assert caught.value.kind == "connection"
        await model.aclose()


async def test_redirects_are_not_followed_and_the_key_stays_home() -> None:
    async with MockModel() as elsewhere:
        answer = MockAnswer(text="", status=307, headers={"Location": elsewhere.url + "/chat/completions"})
        async with MockModel(lambda _: answer) as server, asking(server, api_key=Secret("k")) as model:
            with pytest.raises(ModelRejected, match="redirect"):
                await model.complete(ask("x"))
        assert elsewhere.requests == 0
    assert server.calls[0].headers["authorization"] == "Bearer k"


async def test_a_key_belongs_to_the_address_it_was_given_with() -> None:
    config = EndpointConfig(base_url="https://a.example/v1", model="m", api_key=Secret("k"))
    assert config.key_origin == "https://a.example:443"
    assert (
        msgspec.structs.replace(config, base_url="https://a.example:443/v2").key_origin == config.key_origin
    )
    for other in ("http://a.example/v1", "https://b.example/v1", "https://a.example:444/v1"):
        with pytest.raises(OptionError, match="not sent to"):
            msgspec.structs.replace(config, base_url=other)
    keyless = msgspec.structs.replace(config, base_url="https://b.example/v1", api_key=None, key_origin=None)
    assert keyless.api_key is None


@pytest.mark.parametrize(
    "url", ["", "ftp://x/v1", "x/v1", "http://", "http://u:p@x/v1", "http://x/v1?k=1", "http://x:99999/v1"]
)
def test_an_address_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(OptionError):
        EndpointConfig(base_url=url, model="m")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_service_may_refuse_private_addresses(host: str) -> None:
    async with MockModel() as server:
        url = server.url.replace("127.0.0.1", host)
        model = connect(EndpointConfig(base_url=url, model="m", allow_private=False, retry=QUICK))
        with pytest.raises(ModelRejected) as caught:
            await model.complete(ask("x"))
        await model.aclose()
        assert caught.value.kind == "forbidden_address"
        assert server.requests == 0


async def test_retry_after_is_waited_for_and_the_slot_is_free_meanwhile() -> None:
    plan = OneFault(kinds=("rate_limit",), retry_after="1")

    def answer(call: MockCall) -> str:
        return call.prompt

    async with MockModel(answer, faults=plan) as server, asking(server, concurrency=1) as model:

        async def timed(text: str) -> tuple[ChatReply, float]:
            start = time.perf_counter()
            return await model.complete(ask(text)), time.perf_counter() - start

        replies = await asyncio.gather(*(timed(str(n)) for n in range(20)))
    assert all(seconds >= 1.0 for _, seconds in replies)
    assert server.most_in_flight == 1
    # If the slot were held while waiting, each call would be followed by its own second try.
    prompts = [call.prompt for call in server.calls]
    assert sorted(prompts) == sorted(2 * [str(n) for n in range(20)])
    assert prompts[0] != prompts[1]


async def test_an_endpoint_without_structured_output_is_asked_without_and_remembered() -> None:
    schema = {"type": "object"}
    async with MockModel("{}", structured_output=False) as server, asking(server) as model:
        first = await model.complete(ask("a", response_schema=schema))
        await model.complete(ask("b", response_schema=schema))
        assert first.text == "{}"
    assert ["response_format" in call.body for call in server.calls] == [True, False, False]


async def test_structured_output_is_asked_for_where_it_works() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number"}}}
    async with MockModel("{}") as server, asking(server) as model:
        await model.complete(ask("a", response_schema=schema))
    assert server.calls[0].body["response_format"]["json_schema"]["schema"] == schema


async def test_a_bad_request_for_another_reason_does_not_switch_structured_output_off() -> None:
    def answer(call: MockCall) -> str | MockAnswer:
        return MockAnswer(text="temperature is out of range", status=400) if "bad" in call.prompt else "{}"

    schema = {"type": "object"}
    async with MockModel(answer) as server, asking(server) as model:
        with pytest.raises(ModelRejected):
            await model.complete(ask("bad", response_schema=schema))
        await model.complete(ask("good", response_schema=schema))
    assert ["response_format" in call.body for call in server.calls] == [True, False, True]
