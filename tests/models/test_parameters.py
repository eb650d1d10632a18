"""Parameters that an endpoint does not take are left out or renamed, once found out, and only those."""

import asyncio
from typing import Any

import pytest

from evenhand.core.errors import ModelRejected
from evenhand.models.config import EndpointConfig, Price
from evenhand.models.connect import connect
from evenhand.models.parameters import refused_parameters
from evenhand.models.port import ChatRequest, user
from evenhand.testing import MockAnswer, MockCall, MockModel


@pytest.mark.parametrize(
    ("message", "parameter", "found"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            ("max_tokens", "max_completion_tokens"),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            "temperature",
            ("temperature",),
        ),
        ("Unknown parameter: seed", None, ("seed",)),
        ("[{'loc': ('body', 'top_p'), 'msg': 'Extra inputs are not permitted'}]", None, ("top_p",)),
        (
            "`temperature` and `top_p` cannot both be specified for this model",
            None,
            ("temperature", "top_p"),
        ),
        # The caller's mistakes: to leave the parameter out would hide them.
        ("temperature is out of range", "temperature", ()),
        ("max_tokens must be at most 4096", "max_tokens", ()),
        ("Unsupported value: 'model'", "model", ()),
        ("unknown field stopwatch", None, ()),
    ],
)
def test_what_a_refusal_says(message: str, parameter: str | None, found: tuple[str, ...]) -> None:
    assert refused_parameters(message, parameter) == found


def ask(**options: Any) -> ChatRequest:
    return ChatRequest(messages=(user("hi"),), **options)


async def complete(model: MockModel, *requests: ChatRequest, **options: Any) -> tuple[list[Any], Any]:
    endpoint = connect(EndpointConfig(base_url=model.url, model="m", **options))
    try:
        return list(await asyncio.gather(*map(endpoint.complete, requests))), endpoint.usage
    finally:
        await endpoint.aclose()


async def test_max_tokens_is_sent_under_its_new_name_and_temperature_is_left_out() -> None:
    async with MockModel("x", rejects=("max_tokens", "temperature")) as model:
        endpoint = connect(EndpointConfig(base_url=model.url, model="m"))
        first = await endpoint.complete(ask(max_tokens=7, temperature=0.0, top_p=0.9))
        second = await endpoint.complete(ask(max_tokens=8, temperature=0.5))
        third = await endpoint.complete(ask(top_p=0.5))
        await endpoint.aclose()
    sent = [{k: v for k, v in call.body.items() if k not in ("model", "messages")} for call in model.calls]
    assert sent == [
        {"max_tokens": 7, "temperature": 0.0, "top_p": 0.9},
        {"max_completion_tokens": 7, "temperature": 0.0, "top_p": 0.9},
        {"max_completion_tokens": 7, "top_p": 0.9},
        {"max_completion_tokens": 8},
        {"top_p": 0.5},
    ]
    notes = ("max_tokens sent as max_completion_tokens", "temperature left out")
    assert first.adjusted == second.adjusted == notes
    assert third.adjusted == ()
    assert endpoint.usage.adjusted == list(notes)
    assert (first.attempts, endpoint.usage.retries) == (1, {})


async def test_an_older_endpoint_gets_the_older_name() -> None:
    async with MockModel("x", rejects=("max_completion_tokens",)) as model:
        (reply,), _ = await complete(model, ask(max_completion_tokens=7))
    assert model.calls[-1].body["max_tokens"] == 7
    assert reply.adjusted == ("max_completion_tokens sent as max_tokens",)


async def test_an_endpoint_without_any_limit() -> None:
    async with MockModel("x", rejects=("max_completion_tokens", "max_tokens")) as model:
        (reply,), _ = await complete(model, ask(max_tokens=7))
        assert reply.text == "x"
        assert not {"max_tokens", "max_completion_tokens"} & model.calls[-1].body.keys()
        # A spend cap is a promise: without a limit a call could cost anything.
        with pytest.raises(ModelRejected):
            await complete(
                model, ask(max_tokens=7), spend_cap_usd=1.0, price=Price(input_usd=1, output_usd=1)
            )


async def test_questions_in_flight_find_out_together() -> None:
    async with MockModel("x", rejects=("temperature",), latency=0.05) as model:
        replies, _ = await complete(model, *(ask(temperature=0.0, seed=n) for n in range(20)))
    assert [reply.text for reply in replies] == ["x"] * 20
    assert model.requests == 40


async def test_a_refusal_of_what_was_not_sent_stands() -> None:
    answer = MockAnswer(text="unknown parameter: temperature", status=400)
    async with MockModel(answer) as model:
        with pytest.raises(ModelRejected, match="unknown parameter"):
            await complete(model, ask(seed=1))
        assert model.requests == 1
        with pytest.raises(ModelRejected, match="unknown parameter"):
            await complete(model, ask(temperature=1.0))
    assert model.requests == 3


async def test_a_value_out_of_range_is_the_callers_mistake() -> None:
    async with MockModel(MockAnswer(text="temperature is out of range", status=400)) as model:
        with pytest.raises(ModelRejected, match="out of range"):
            await complete(model, ask(temperature=9.0))
    assert model.requests == 1


async def test_anthropic_keeps_its_limit_and_gives_up_the_temperature() -> None:
    async with MockModel("x", rejects=("temperature",)) as model:
        (reply,), _ = await complete(
            model, ask(temperature=0.0, max_completion_tokens=9), dialect="anthropic"
        )
    assert model.calls[-1].body["max_tokens"] == 9
    assert reply.adjusted == ("temperature left out",)


async def test_structured_output_and_a_refused_parameter_are_told_apart() -> None:
    async with MockModel("{}", rejects=("max_tokens",)) as model:
        await complete(model, ask(max_tokens=9, response_schema={"type": "object"}))
    assert ["response_format" in call.body for call in model.calls] == [True, True]


async def test_modern_parameters_are_sent() -> None:
    async with MockModel("x") as model:
        await complete(
            model, ask(max_completion_tokens=5, reasoning_effort="low", extra={"service_tier": "flex"})
        )
    body = model.calls[0].body
    assert (body["max_completion_tokens"], body["reasoning_effort"], body["service_tier"]) == (
        5,
        "low",
        "flex",
    )


async def test_tool_calls_are_text_that_can_be_scored() -> None:
    def call_a_tool(call: MockCall) -> MockAnswer:
        return MockAnswer(tool_calls=({"name": "f", "arguments": {"x": 1}},))

    async with MockModel(call_a_tool) as model:
        (reply,), _ = await complete(model, ask())
    assert reply.text == '[{"name":"f","arguments":{"x":1}}]'
    assert reply.finish_reason == "tool_calls"
