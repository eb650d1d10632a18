"""The reply cache: what is kept, what is not, and several processes on one file."""

import multiprocessing
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.core.errors import ModelError
from evenhand.core.secret import Secret
from evenhand.models.cache import ReplyCache, cache_key
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.port import ChatReply, ChatRequest, user
from evenhand.testing.faults import FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

ASK = ChatRequest(messages=(user("x"),))
CONFIG = EndpointConfig(base_url="http://127.0.0.1:1/v1", model="m")


def endpoint(server: MockModel, path: Path, **options: Any) -> EndpointConfig:
    options = {"retry": RetryPolicy(tries=2, first_delay=0.001), **options}
    return EndpointConfig(base_url=server.url, model="m", cache_path=path, **options)


async def test_the_same_question_is_sent_once_and_costs_once(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cache.db"
    async with MockModel("kept") as server:
        for round_number in range(2):
            model = connect(endpoint(server, path))
            first = await model.complete(ASK)
            again = await model.complete(ASK)
            await model.aclose()
            assert first.cached == (round_number == 1)
            assert again.cached
            assert again.cost_usd == 0.0
            assert (again.text, again.output_tokens) == ("kept", 1)
        assert server.requests == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_repeats_are_different_questions(tmp_path: Path) -> None:
    async with MockModel("kept") as server:
        model = connect(endpoint(server, tmp_path / "c.db"))
        for repeat in (0, 1, 2, 1):
            await model.complete(replace(ASK, repeat=repeat))
        await model.aclose()
        assert server.requests == 3


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.5},
        {"max_tokens": 9},
        {"seed": 1},
        {"stop": ("x",)},
        {"repeat": 1},
        {"extra": {"a": 1}},
        {"response_schema": {}},
        {"messages": (user("y"),)},
    ],
)
def test_everything_that_can_change_a_reply_is_in_the_key(change: dict[str, Any]) -> None:
    assert cache_key(CONFIG, replace(ASK, **change)) != cache_key(CONFIG, ASK)


async def test_a_code_is_no_part_of_the_key_and_put_anew_into_the_reply(tmp_path: Path) -> None:
    """The judge's fence: another run has another key and so another code, and finds the same reply."""

    def repeat(call: MockCall) -> str:
        return f"The code is {call.prompt.split()[-1]}, again {call.prompt.split()[-1]}."

    def ask(code: str, text: str = "Repeat") -> ChatRequest:
        return ChatRequest(messages=(user(f"{text} {code}"),), unkeyed=code)

    async with MockModel(repeat) as server:
        model = connect(endpoint(server, tmp_path / "c.db"))
        first = await model.complete(ask("aaaa1111"))
        second = await model.complete(ask("bbbb2222"))
        other = await model.complete(ask("bbbb2222", "Say"))
        await model.aclose()
        model = connect(endpoint(server, tmp_path / "c.db"))
        third = await model.complete(ask("cccc3333"))
        await model.aclose()
    assert (first.cached, second.cached, other.cached, third.cached) == (False, True, False, True)
    assert second.text == "The code is bbbb2222, again bbbb2222."
    assert third.text == "The code is cccc3333, again cccc3333."
    assert server.requests == 2


def test_endpoint_and_model_are_in_the_key_and_the_api_key_is_not() -> None:
    base = cache_key(CONFIG, ASK)
    assert cache_key(replace(CONFIG, model="m2"), ASK) != base
    assert cache_key(replace(CONFIG, base_url="http://127.0.0.1:2/v1"), ASK) != base
    assert cache_key(replace(CONFIG, dialect="anthropic"), ASK) != base
    assert cache_key(replace(CONFIG, api_key=Secret("k")), ASK) == base


@pytest.mark.parametrize(
    "answer",
    [MockAnswer(text="withheld", finish_reason="content_filter"), MockAnswer(text=" ")],
)
async def test_filtered_and_empty_replies_are_not_kept(tmp_path: Path, answer: MockAnswer) -> None:
    async with MockModel(lambda _: answer) as server:
        model = connect(endpoint(server, tmp_path / "c.db"))
        await model.complete(ASK)
        await model.complete(ASK)
        await model.aclose()
        assert server.requests == 2


async def test_errors_are_not_kept(tmp_path: Path) -> None:
    async with MockModel("x", faults=FaultPlan(rate=1.0, kinds=("server_error",))) as server:
        model = connect(endpoint(server, tmp_path / "c.db"))
        for _ in range(2):
            with pytest.raises(ModelError):
                await model.complete(ASK)
        await model.aclose()
        assert server.requests == 4


def test_a_broken_file_is_a_miss_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(b"this is no database at all" * 100)
    cache = ReplyCache(path, max_bytes=1 << 20)
    assert cache.get(b"k") is None
    assert cache.errors > 0
    cache.put(b"k", ChatReply(text="t"))
    cache.close()
    again = ReplyCache(path, max_bytes=1 << 20)
    found = again.get(b"k")
    again.close()
    assert found is not None
    assert found.text == "t"


def test_a_reply_that_cannot_be_read_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    cache = ReplyCache(path, max_bytes=1 << 20)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO replies VALUES (?, ?, 0)", (b"k", b"{nonsense"))
    connection.close()
    assert cache.get(b"k") is None
    assert cache.errors == 1
    cache.close()


def test_the_file_stays_under_its_limit_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    limit = 400_000
    for start in range(0, 1000, 50):
        # The writer is closed each time, so that the batches come one after the other.
        cache = ReplyCache(path, max_bytes=limit)
        cache.get(b"0")
        for number in range(start, start + 50):
            cache.put(str(number).encode(), ChatReply(text="x" * 1000))
        cache.close()
    cache = ReplyCache(path, max_bytes=limit)
    kept = [number for number in range(1000) if cache.get(str(number).encode()) is not None]
    cache.close()
    assert path.stat().st_size <= limit * 1.25
    assert 100 < len(kept) < 400
    assert 999 in kept
    assert 0 in kept, "the reply used in every round stays"
    assert 1 not in kept


def _fill(path: Path, name: int) -> None:
    cache = ReplyCache(path, max_bytes=1 << 30)
    for number in range(300):
        cache.put(f"{name}-{number}".encode(), ChatReply(text=f"{name} {number}"))
        cache.put(b"shared", ChatReply(text="shared"))
        cache.get(f"{(name + 1) % 4}-{number}".encode())
    cache.close()
    assert cache.errors == 0, cache.errors


def test_several_processes_share_a_file_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, name)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    cache = ReplyCache(path, max_bytes=1 << 30)
    for name in range(4):
        for number in range(300):
            found = cache.get(f"{name}-{number}".encode())
            assert found is not None
            assert found.text == f"{name} {number}"
    cache.close()
