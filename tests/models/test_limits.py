"""Limits: concurrency that adapts, budgets per minute, and the spend cap."""

import asyncio
import time

import pytest

from evenhand.core.errors import BudgetExceeded, OptionError
from evenhand.models.config import EndpointConfig, Price, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.endpoint import Endpoint
from evenhand.models.limits import AdaptiveLimit, PerMinute
from evenhand.models.port import ChatRequest, user
from evenhand.models.prices import cost_of, find_price
from evenhand.models.spend import SpendCap
from evenhand.testing.faults import FaultKind, FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall


def ask(text: str) -> ChatRequest:
    return ChatRequest(messages=(user(text),), max_tokens=10)


async def test_no_more_requests_are_in_flight_than_allowed() -> None:
    def answer(call: MockCall) -> MockAnswer:
        # The first ones wait for the rest of their seven, however slowly those are sent.
        return MockAnswer(text="x", latency=2.0 if server.requests <= 7 else 0.001)

    async with MockModel(answer) as server:
        model = connect(EndpointConfig(base_url=server.url, model="m", concurrency=7))
        await asyncio.gather(*(model.complete(ask(str(n))) for n in range(50)))
        await model.aclose()
        assert server.most_in_flight == 7


def test_concurrency_falls_with_the_share_of_429s_and_grows_again() -> None:
    limit = AdaptiveLimit(64)
    for _ in range(200):
        limit.observe(refused=True)
    low = limit.slots
    assert low <= 8
    for _ in range(500):
        limit.observe(refused=False)
    assert limit.slots == 64


def test_a_rare_429_is_noise() -> None:
    limit = AdaptiveLimit(64)
    for number in range(5000):
        limit.observe(refused=number % 20 == 0)
    assert limit.slots == 64


def test_the_limit_never_falls_below_one_request() -> None:
    limit = AdaptiveLimit(4)
    for _ in range(10_000):
        limit.observe(refused=True)
    assert limit.slots == 1


async def test_a_cancelled_waiter_leaves_its_slot_to_the_next() -> None:
    limit = AdaptiveLimit(1)

    async def hold(seconds: float) -> None:
        await limit.enter()
        try:
            await asyncio.sleep(seconds)
        finally:
            limit.leave()

    first = asyncio.create_task(hold(0.05))
    await asyncio.sleep(0)
    second = asyncio.create_task(hold(10))
    third = asyncio.create_task(hold(0))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait_for(asyncio.gather(first, third), 60)
    assert limit.in_flight == 0
    # Cancelled in the very moment in which the slot was handed over.
    await limit.enter()
    waiter = asyncio.create_task(hold(10))
    await asyncio.sleep(0)
    limit.leave()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert limit.in_flight == 0


class WhileBusy(FaultPlan, frozen=True, kw_only=True):
    """429 for a client that may send more than `most` requests at once: an endpoint with a real limit.

    It goes by what the client allows itself: how many of those are under way in one moment depends on the machine.
    """

    most: int
    client: list[Endpoint]

    def pick(self, body: bytes, seen: int) -> FaultKind | None:
        return "rate_limit" if self.client[0].usage.concurrency > self.most else None


async def test_an_overloaded_endpoint_is_approached_until_it_answers() -> None:
    holder: list[Endpoint] = []
    plan = WhileBusy(most=8, client=holder, retry_after=None)
    async with MockModel("x", latency=0.01, faults=plan) as server:
        policy = RetryPolicy(tries=50, first_delay=0.02, max_delay=0.1)
        model = connect(EndpointConfig(base_url=server.url, model="m", concurrency=64, retry=policy))
        holder.append(model)
        replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(600)))
        await model.aclose()
        assert len(replies) == 600
        assert model.usage.concurrency < 32
        # Without backing off, most requests would be refused: 64 in flight where 8 are served.
        assert model.usage.retries["rate_limit"] < 600


async def test_requests_per_minute_are_kept() -> None:
    bucket = PerMinute(60 * 50)
    start = time.perf_counter()
    await asyncio.gather(*(bucket.take() for _ in range(75)))
    # 50 at once (a second's worth), the other 25 at 50 a second.
    assert time.perf_counter() - start >= 0.45


async def test_an_endpoint_keeps_to_its_tokens_per_minute() -> None:
    async with MockModel("x") as server:
        model = connect(EndpointConfig(base_url=server.url, model="m", tokens_per_minute=60 * 400))
        start = time.perf_counter()
        # Each asks for about 27 tokens (68 bytes / 4 + 10): 24 of them are 650, 400 go at once.
        await asyncio.gather(*(model.complete(ask(f"{n:02d}")) for n in range(24)))
        seconds = time.perf_counter() - start
        await model.aclose()
    assert seconds >= 0.3


def test_prices_are_found_for_dated_and_prefixed_names() -> None:
    price = find_price("gpt-4o")
    assert price == Price(input_usd=2.5, output_usd=10.0)
    assert find_price("gpt-4o-2024-08-06") == find_price("openai/gpt-4o") == price
    assert find_price("gpt-4o-mini") != price
    assert find_price("claude-3-5-sonnet-20241022") == Price(input_usd=3.0, output_usd=15.0)
    assert find_price("my-own-model") is None
    assert cost_of(price, 1_000_000, 100_000) == 3.5
    assert cost_of(None, 1, 1) is None
    assert cost_of(price, None, 1) is None


async def test_a_reply_carries_its_cost() -> None:
    async with MockModel(lambda _: MockAnswer(text="x", input_tokens=1000, output_tokens=10)) as server:
        model = connect(EndpointConfig(base_url=server.url, model="gpt-4o"))
        reply = await model.complete(ask("x"))
        await model.aclose()
    assert reply.cost_usd == pytest.approx((1000 * 2.5 + 10 * 10) / 1e6)
    assert model.usage.cost_usd == reply.cost_usd


async def test_the_spend_cap_is_never_passed_and_is_used_up() -> None:
    # 100 dollars for a million tokens each way: a call is worth (5 + 10) tokens = 0.0015 dollars; its worst case
    # is about 100 bytes of body and 10 tokens of reply, 0.011 dollars.
    price = Price(input_usd=100.0, output_usd=100.0)
    answer = MockAnswer(text="x", input_tokens=5, output_tokens=10)
    async with MockModel(lambda _: answer, latency=0.002) as server:
        model = connect(
            EndpointConfig(base_url=server.url, model="m", price=price, spend_cap_usd=0.06, concurrency=16)
        )
        results = await asyncio.gather(
            *(model.complete(ask(str(n))) for n in range(100)), return_exceptions=True
        )
        await model.aclose()
    stopped = [result for result in results if isinstance(result, BudgetExceeded)]
    answered = len(results) - len(stopped)
    assert server.requests == answered
    assert answered * 0.0015 <= 0.06
    assert model.usage.cost_usd == pytest.approx(answered * 0.0015)
    # The worst case of one more call would not have fitted.
    assert 0.06 - answered * 0.0015 < 0.012
    assert model.usage.gave_up == {"budget_exceeded": len(stopped)}


async def test_lost_replies_count_at_their_worst() -> None:
    price = Price(input_usd=100.0, output_usd=100.0)
    async with MockModel("x", faults=FaultPlan(rate=1.0, kinds=("cut_body",))) as server:
        model = connect(
            EndpointConfig(
                base_url=server.url,
                model="m",
                price=price,
                spend_cap_usd=0.03,
                retry=RetryPolicy(tries=50, first_delay=0.001, max_delay=0.001),
            )
        )
        with pytest.raises(BudgetExceeded):
            await model.complete(ask("x"))
        await model.aclose()
        assert server.requests <= 3


@pytest.mark.parametrize("model", ["unheard-of", "gpt-4o"])
def test_a_cap_without_a_price_of_ones_own_is_refused(model: str) -> None:
    """The shipped table is from memory: a promise to stop in time cannot rest on it."""
    with pytest.raises(OptionError, match="a spend cap needs a price that you give"):
        # Not only when it is used: a service says so when it starts.
        EndpointConfig(base_url="http://127.0.0.1:1/v1", model=model, spend_cap_usd=1.0)
    with pytest.raises(OptionError, match="a spend cap needs a price that you give"):
        connect(EndpointConfig(base_url="http://127.0.0.1:1/v1", model=model), spend=SpendCap(1.0))


async def test_a_cap_can_be_shared() -> None:
    cap = SpendCap(0.015)
    price = Price(input_usd=100.0, output_usd=100.0)
    answer = MockAnswer(text="x", input_tokens=50, output_tokens=50)
    async with MockModel(lambda _: answer) as server:
        models = [
            connect(EndpointConfig(base_url=server.url, model=name, price=price), spend=cap) for name in "ab"
        ]
        await models[0].complete(ask("x"))
        with pytest.raises(BudgetExceeded):
            await models[1].complete(ask("x"))
        for model in models:
            await model.aclose()
    assert cap.spent_usd == pytest.approx(0.01)
