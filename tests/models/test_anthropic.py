"""Anthropic's messages over real HTTP."""

from typing import Any

import pytest

from evenhand.core.errors import ModelError
from evenhand.core.secret import Secret
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.port import ChatReply, ChatRequest, Message, system, user
from evenhand.testing.faults import FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer


async def asked(
    answer: MockAnswer | str, request: ChatRequest, **options: Any
) -> tuple[ChatReply, MockModel]:
    async with MockModel(lambda _: answer) as server:
        model = connect(
            EndpointConfig(
                base_url=server.url,
                model="claude-sonnet-4-5",
                dialect="anthropic",
                api_key=Secret("k"),
                **options,
            )
        )
        try:
            return await model.complete(request), server
        finally:
            await model.aclose()


async def test_a_conversation_is_sent_in_anthropics_shape() -> None:
    request = ChatRequest(
        messages=(system("be brief"), user("hi"), Message(role="assistant", content="yes?"), user("2+2")),
        temperature=0.5,
        stop=("END",),
        seed=1,
    )
    reply, server = await asked(MockAnswer(text="4", reasoning="sum", finish_reason="length"), request)
    call = server.calls[0]
    assert call.path == "/v1/messages"
    assert call.headers["x-api-key"] == "k"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in call.headers
    assert call.body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yes?"},
            {"role": "user", "content": "2+2"},
        ],
        "temperature": 0.5,
        "stop_sequences": ["END"],
    }
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("4", "length", "sum")
    assert reply.cost_usd is not None


async def test_a_schema_becomes_a_tool_whose_input_is_the_reply() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number"}}}
    reply, server = await asked('{"score": 3}', ChatRequest(messages=(user("x"),), response_schema=schema))
    assert server.calls[0].body["tools"][0]["input_schema"] == schema
    assert server.calls[0].body["tool_choice"] == {"type": "tool", "name": "reply"}
    assert reply.text == '{"score":3}'
    assert reply.finish_reason == "stop"


async def test_a_refusal_is_a_filtered_reply() -> None:
    reply, _ = await asked(
        MockAnswer(text="", finish_reason="content_filter"), ChatRequest(messages=(user("x"),))
    )
    assert reply.finish_reason == "content_filter"


async def test_broken_replies_are_tried_again() -> None:
    plan = FaultPlan(rate=1.0, kinds=("empty_choices", "half_json", "html"))
    async with MockModel("x", faults=plan) as server:
        model = connect(
            EndpointConfig(
                base_url=server.url,
                model="m",
                dialect="anthropic",
                retry=RetryPolicy(tries=3, first_delay=0.001),
            )
        )
        with pytest.raises(ModelError) as caught:
            await model.complete(ChatRequest(messages=(user("x"),)))
        await model.aclose()
    assert caught.value.kind == "bad_reply"
    assert server.requests == 3
