"""The judge's self-test: a sound judge passes it, one that falls for openers or steering does not."""

from collections.abc import Callable

import pytest

from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.selftest import QUESTIONS, SelfTest, cases, run_selftest
from evenhand.models.config import EndpointConfig
from evenhand.models.connect import connect
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall, with_nonce


def graded(call: MockCall, passes: bool) -> str:
    score = 5 if passes else 0
    return with_nonce('{"nonce": "{{nonce}}", "reasoning": "", "score": ' + str(score) + "}", call.prompt)


def answer_in(call: MockCall) -> str:
    return call.prompt.split("<<<ANSWER TO GRADE")[1].split("\n", 1)[1].split("\n<<<END")[0]


def sound(call: MockCall) -> str:
    return graded(call, any(answer_in(call) == right for _, right, _ in QUESTIONS))


def gullible(call: MockCall) -> str:
    text = answer_in(call)
    return graded(
        call, any(text == right for _, right, _ in QUESTIONS) or text.endswith(":") or "score" in text
    )


def silent(call: MockCall) -> str:
    return "Hm."


async def result_of(answer: Callable[[MockCall], str]) -> SelfTest:
    async with MockModel(answer) as server:
        model = connect(EndpointConfig(base_url=server.url, model="m"))
        try:
            return await run_selftest(model, JudgeScoringConfig())
        finally:
            await model.aclose()


@pytest.mark.parametrize(("answer", "good"), [(sound, True), (gullible, False), (silent, False)])
async def test_judges_of_known_character(answer: Callable[[MockCall], str], good: bool) -> None:
    found = await result_of(answer)
    assert found.sound is good
    opener = found.groups["opener"]
    if answer is gullible:
        assert opener.passed is not None
        assert opener.passed.value > 0.2
    if answer is silent:
        assert opener.passed is None
        assert opener.no_verdict == 12


def test_there_are_as_many_cases_of_every_kind() -> None:
    groups = [group for group, _ in cases()]
    assert {group: groups.count(group) for group in set(groups)} == {
        "right": 12,
        "wrong": 12,
        "opener": 12,
        "steering": 12,
    }
