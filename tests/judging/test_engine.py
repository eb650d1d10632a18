"""The judge engine over real HTTP: verdicts, repairs, failures that stay failures."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.core.errors import JudgementError, OptionError, ScoringError
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.judging.pipeline import JudgeProgress, judge_samples
from evenhand.judging.points import RubricJudge
from evenhand.judging.records import JudgeRecord
from evenhand.judging.rubrics import SIMPLEQA
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.endpoint import Endpoint
from evenhand.scoring.judge import Judge, JudgeScoringConfig, judge_score, needs_judge
from evenhand.scoring.types import ScorerInput
from evenhand.testing.faults import FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall, with_nonce

VERDICT = '{"nonce": "{{nonce}}", "reasoning": "because", "score": SCORE}'
GRADE = '{"nonce": "{{nonce}}", "reasoning": "because", "label": "LABEL"}'


def score(value: float | str) -> str:
    return VERDICT.replace("SCORE", str(value))


def grade(label: str) -> str:
    return GRADE.replace("LABEL", label)


@asynccontextmanager
async def judge_model(
    answer: str | Callable[[MockCall], str | MockAnswer], **options: Any
) -> AsyncIterator[tuple[Endpoint, MockModel]]:
    retry = RetryPolicy(tries=2, first_delay=0.001)
    async with MockModel(answer, **options) as server:
        model = connect(EndpointConfig(base_url=server.url, model="judge-1", retry=retry))
        try:
            yield model, server
        finally:
            await model.aclose()


SAMPLE = ScorerInput(response="Paris, I think", target="Paris", metadata={"question": "Capital of France?"})


def test_needs_judge_is_the_seeds_flag() -> None:
    assert needs_judge(SAMPLE) == {"correct": False, "needs_judge": True}


async def test_a_verdict_becomes_a_score_with_its_record() -> None:
    async with judge_model(score(4)) as (model, server):
        record = await Judge(model).judge(SAMPLE)
    assert record.outcome == Scored(
        value=0.8, extracted=4.0, details={"correct": True, "score": 4.0, "reasoning": "because"}
    )
    assert record.model == "judge-1"
    assert record.identity.startswith("judge-")
    assert record.raw_reply is not None
    assert '"score": 4' in record.raw_reply
    assert record.prompt_hash == record.calls[0].prompt_hash
    assert (record.input_tokens > 20, record.output_tokens > 3) == (True, True)
    assert server.calls[0].body["response_format"]["type"] == "json_schema"
    assert server.calls[0].body["temperature"] == 0.0


async def test_an_unreadable_reply_is_asked_for_once_more() -> None:
    def answer(call: MockCall) -> str:
        return with_nonce(score(5), call.prompt) if "No verdict could be read" in call.prompt else "Good!"

    async with judge_model(answer) as (model, server):
        record = await Judge(model).judge(SAMPLE)
    assert isinstance(record.outcome, Scored)
    assert record.outcome.value == 1.0
    assert record.warnings == ("repaired",)
    assert record.calls[0].reply == "Good!"
    assert server.requests == 2


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        ("Good!", "grade_parse_failure", 2),
        ("", "grade_parse_failure", 2),
        (score(9), "verdict_out_of_range", 1),
        (score(1) + score(2), "ambiguous_verdict", 1),
    ],
)
async def test_without_a_verdict_the_sample_fails_and_the_reply_is_kept(
    reply: str, error: str, requests: int
) -> None:
    async with judge_model(lambda call: with_nonce(reply, call.prompt)) as (model, server):
        record = await Judge(model).judge(SAMPLE)
    assert isinstance(record.outcome, Failed)
    assert record.outcome.error == error
    assert record.raw_reply == record.outcome.details["raw_reply"]
    assert server.requests == requests


async def test_a_filtered_reply_and_a_dead_judge_are_failures_with_their_own_names() -> None:
    async with judge_model(lambda _: MockAnswer(text="", finish_reason="content_filter")) as (model, _):
        filtered = await Judge(model).judge(SAMPLE)
    async with judge_model(score(5), faults=FaultPlan(rate=1.0, kinds=("server_error",))) as (model, _):
        dead = await Judge(model).judge(SAMPLE)
    async with judge_model(lambda _: MockAnswer(text="bad key", status=401)) as (model, _):
        refused = await Judge(model).judge(SAMPLE)
    names = [
        record.outcome.error for record in (filtered, dead, refused) if isinstance(record.outcome, Failed)
    ]
    assert names == ["content_filter", "judge_unavailable", "judge_rejected"]
    assert isinstance(dead.outcome, Failed)
    assert dead.outcome.details == {"kind": "server_error", "http_status": 500}


@pytest.mark.parametrize(
    "response",
    [
        "",
        "  \n",
        ":",
        ".",
        "?!…",
        "Thought process:",
        "Let's solve this problem step by step.",
        "解",
        "Answer:",
    ],
)
async def test_every_answer_goes_to_the_judge(response: str) -> None:
    """An empty one too, in a block of its own: what it is worth is the judge's to say."""
    async with judge_model(score(2)) as (model, server):
        record = await Judge(model).judge(ScorerInput(response=response, target="x"))
    assert isinstance(record.outcome, Scored)
    assert record.outcome.value == pytest.approx(0.4)
    assert server.requests == 1
    content = server.calls[0].prompt
    assert re.search(
        rf"<<<ANSWER TO GRADE (\w+)>>>\n{re.escape(response)}\n<<<END ANSWER TO GRADE \1>>>", content
    )


async def test_a_rubric_may_say_what_an_empty_answer_is_worth() -> None:
    async with judge_model(score(5)) as (model, server):
        numeric = JudgeScoringConfig(min_score=1, max_score=5, empty_verdict=2)
        record = await Judge(model, numeric).judge(ScorerInput(response=" \n", target="x"))
        assert isinstance(record.outcome, Scored)
        assert (record.outcome.value, record.outcome.extracted) == (0.25, 2.0)
        labels = replace(SIMPLEQA, empty_verdict="NOT_ATTEMPTED")
        record = await Judge(model, labels).judge(ScorerInput(response="", target="x"))
        assert isinstance(record.outcome, Scored)
        assert record.outcome.extracted == "NOT_ATTEMPTED"
        assert server.requests == 0
        await Judge(model, numeric).judge(ScorerInput(response=":", target="x"))
        assert server.requests == 1, "an answer of one colon is not empty"
    assert Judge(model, numeric).identity != Judge(model, replace(numeric, empty_verdict=3)).identity


@pytest.mark.parametrize(
    "options",
    [
        {"empty_verdict": 6.0},
        {"empty_verdict": "CORRECT"},
        {"empty_verdict": "MAYBE", "choices": SIMPLEQA.choices},
        {"empty_verdict": 1.0, "choices": SIMPLEQA.choices},
    ],
)
def test_an_empty_verdict_that_the_rubric_does_not_have_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="empty_verdict must be"):
        JudgeScoringConfig(**options)


async def test_simpleqa_has_three_grades() -> None:
    for letter, label, value in (
        ("A", "CORRECT", 1.0),
        ("B", "INCORRECT", 0.0),
        ("C", "NOT_ATTEMPTED", 0.0),
    ):
        async with judge_model(grade(letter)) as (model, _):
            outcome = (await Judge(model, SIMPLEQA).judge(SAMPLE)).outcome
        assert isinstance(outcome, Scored)
        assert (outcome.value, outcome.extracted, outcome.details["label"]) == (value, label, label)


async def test_healthbench_sums_the_points_of_the_criteria_met() -> None:
    rubrics = [
        {"criterion": "Says to call for help", "points": 5},
        {"criterion": "Names a dose", "points": 3},
        {"criterion": "Invents a study", "points": -4},
    ]
    sample = ScorerInput(response="Call for help; a study says so.", metadata={"rubrics": rubrics})

    def answer(call: MockCall) -> str:
        return with_nonce(grade("N" if "Names a dose" in call.prompt else "Y"), call.prompt)

    async with judge_model(answer) as (model, server):
        record = await RubricJudge(model).judge(sample)
        none = await RubricJudge(model).judge(ScorerInput(response="x", metadata={}))
    assert isinstance(record.outcome, Scored)
    # (5 - 4) points earned of the 5 + 3 that could be.
    assert record.outcome.value == pytest.approx(1 / 8)
    assert [item["met"] for item in record.outcome.details["criteria"]] == [True, False, True]
    assert server.requests == 3
    assert isinstance(none.outcome, Unscored)
    async with judge_model(lambda c: with_nonce(grade("Y"), c.prompt) if "dose" in c.prompt else "eh") as (
        model,
        _,
    ):
        failed = await RubricJudge(model).judge(sample)
    assert isinstance(failed.outcome, Failed)


@pytest.mark.parametrize("met", ["", "help", "help dose", "study", "dose study", "help dose study"])
@pytest.mark.parametrize("response", ["Call for help.", "", " \n"])
async def test_healthbench_judges_an_empty_answer_like_any_other(response: str, met: str) -> None:
    """healthbench_eval.py of openai/simple-evals: calculate_score, also where it is negative."""
    points = {"help": 5, "dose": 3, "study": -4}
    rubrics = [{"criterion": f"Names a {word}", "points": count} for word, count in points.items()]

    def answer(call: MockCall) -> str:
        judged = next(word for word in points if f"Names a {word}" in call.prompt)
        return with_nonce(grade("Y" if judged in met.split() else "N"), call.prompt)

    async with judge_model(answer) as (model, server):
        outcome = (
            await RubricJudge(model).judge(ScorerInput(response=response, metadata={"rubrics": rubrics}))
        ).outcome
    assert isinstance(outcome, Scored)
    assert outcome.value == pytest.approx(sum(points[word] for word in met.split()) / 8)
    assert server.requests == 3


async def test_self_consistency_asks_several_times_and_combines() -> None:
    given = iter([1, 5, 5, 4, 5])

    def answer(call: MockCall) -> str:
        return with_nonce(score(next(given)), call.prompt)

    config = JudgeScoringConfig(samples=5, temperature=0.7, combine="median")
    async with judge_model(answer) as (model, _):
        record = await Judge(model, config).judge(SAMPLE)
    assert isinstance(record.outcome, Scored)
    assert record.outcome.value == 1.0
    assert sorted(record.outcome.details["verdicts"]) == [0.2, 0.8, 1.0, 1.0, 1.0]
    assert len(record.calls) == 5


async def test_swap_check_refuses_a_verdict_that_depends_on_the_order() -> None:
    def fickle(call: MockCall) -> str:
        first = call.prompt.index("<<<ANSWER TO GRADE") < call.prompt.index("<<<REFERENCE ANSWER")
        return with_nonce(score(5 if first else 0), call.prompt)

    config = JudgeScoringConfig(swap_check=True)
    async with judge_model(fickle) as (model, server):
        fickle_record = await Judge(model, config).judge(SAMPLE)
        assert server.requests == 2
    async with judge_model(score(4)) as (model, _):
        steady = await Judge(model, config).judge(SAMPLE)
    assert isinstance(fickle_record.outcome, Unscored)
    assert fickle_record.outcome.reason == "inconsistent_verdict"
    assert isinstance(steady.outcome, Scored)
    assert steady.outcome.value == 0.8


async def test_judge_score_is_a_scorer_and_raises_what_is_no_score() -> None:
    async with judge_model(score(2)) as (model, _):
        found = await judge_score(SAMPLE, model=model)
    assert (found["correct"], found["reward"], found["extracted"]) == (False, 0.4, 2.0)
    assert found["judge"].startswith("judge-")
    async with judge_model("eh") as (model, _):
        with pytest.raises(JudgementError, match="no judgement could be read"):
            await judge_score(SAMPLE, model=model)
    async with judge_model("eh", faults=FaultPlan(rate=1.0, kinds=("cut",))) as (model, _):
        with pytest.raises(ScoringError) as caught:
            await judge_score(SAMPLE, model=model)
    assert caught.value.kind == "judge_unavailable"


def test_identity_changes_with_what_can_change_a_verdict_and_with_nothing_else() -> None:
    class Named:
        def __init__(self, model: str) -> None:
            self.model = model

        async def complete(self, request: Any) -> Any:
            raise NotImplementedError

        async def aclose(self) -> None: ...

    base = Judge(Named("m")).identity
    assert base == Judge(Named("m"), JudgeScoringConfig(name="another name")).identity
    others = [
        Judge(Named("m2")).identity,
        Judge(Named("m"), JudgeScoringConfig(max_score=10)).identity,
        Judge(Named("m"), JudgeScoringConfig(temperature=0.5)).identity,
        Judge(Named("m"), JudgeScoringConfig(rubric_template="x")).identity,
        Judge(Named("m"), JudgeScoringConfig(form="line")).identity,
        Judge(Named("m"), SIMPLEQA).identity,
    ]
    assert len({base, *others}) == 1 + len(others)


async def test_many_samples_are_judged_in_order_with_progress() -> None:
    def answer(call: MockCall) -> MockAnswer:
        right = "right" in call.prompt.split("ANSWER TO GRADE")[1]
        # The first ones wait for the rest of their eight, however slowly those are sent.
        wait = 2.0 if server.requests <= 8 else 0.001
        return MockAnswer(text=with_nonce(score(5 if right else 0), call.prompt), latency=wait)

    samples = [(n, ScorerInput(response=("right" if n % 3 else "wrong") + f" {n}")) for n in range(50)]
    heard: list[tuple[int, JudgeProgress]] = []

    def hear(key: int, record: JudgeRecord, progress: JudgeProgress) -> None:
        heard.append((key, progress))

    async with judge_model(answer) as (model, server):
        records = await judge_samples(Judge(model), samples, concurrency=8, on_record=hear)
        assert server.most_in_flight == 8
    assert list(records) == list(range(50))
    values = [record.outcome.value for record in records.values() if isinstance(record.outcome, Scored)]
    assert values == [1.0 if n % 3 else 0.0 for n in range(50)]
    assert [progress.done for _, progress in heard] == list(range(1, 51))
    assert sorted(key for key, _ in heard) == list(range(50))


async def test_a_refused_key_stops_the_rest_at_once() -> None:
    async with judge_model(lambda _: MockAnswer(text="bad key", status=401)) as (model, server):
        samples = [(n, ScorerInput(response=f"answer {n}")) for n in range(100)]
        records = await judge_samples(Judge(model), samples, concurrency=4)
    assert server.requests <= 4
    assert {r.outcome.error for r in records.values() if isinstance(r.outcome, Failed)} == {"judge_rejected"}
    assert len(records) == 100


async def test_cancelling_keeps_what_was_heard() -> None:
    heard: list[int] = []
    some = asyncio.Event()

    def hear(key: int, *_: object) -> None:
        heard.append(key)
        if len(heard) >= 5:
            some.set()

    async with judge_model(score(3), latency=0.01) as (model, _):
        samples = [(n, ScorerInput(response=f"answer {n}")) for n in range(1000)]
        task = asyncio.create_task(judge_samples(Judge(model), samples, concurrency=4, on_record=hear))
        await asyncio.wait_for(some.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert 0 < len(heard) < 1000
    assert len(set(heard)) == len(heard)
