"""The seed's pipeline over stored results: flagged samples are judged, rewards updated, raw replies kept."""

from evenhand.core.outcome import Unscored
from evenhand.judging.rewards import judge_results, waits_for_judge
from evenhand.judging.rubrics import SIMPLEQA
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.results.records import SampleError, SampleResult
from evenhand.scoring.apply import score_sample
from evenhand.scoring.judge import Judge
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall, with_nonce

ANSWERS = ["Canberra", "Sydney", "I cannot say", "Canberra of course", "garbled"]
FLAG = SampleError(kind="needs_judge", message="a judge has to score this sample")


def flagged() -> list[SampleResult]:
    outcome = score_sample(get_scorer("needs_judge"), ScorerInput(response="x", target="y"))
    assert isinstance(outcome, Unscored)
    assert outcome.reason == FLAG.kind
    judged = [
        SampleResult(
            problem_idx=number,
            expected_answer="Canberra",
            model_response=text,
            metadata={"question": "The capital of Australia?"},
            status="unscored",
            error=FLAG,
        )
        for number, text in enumerate(ANSWERS)
    ]
    return [*judged, SampleResult(problem_idx=9, reward=1.0, status="scored")]


def grader(call: MockCall) -> str:
    if "No verdict could be read" in call.prompt:
        return "what?"
    answer = call.prompt.split("<<<ANSWER TO GRADE")[1].split("\n")[1]
    letter = "C" if "cannot" in answer else "A" if "Canberra" in answer else "B"
    if answer == "garbled":
        return "what?"
    return with_nonce('{"nonce": "{{nonce}}", "reasoning": "r", "label": "' + letter + '"}', call.prompt)


async def test_flagged_samples_get_the_judges_rewards() -> None:
    seen: list[int] = []
    async with MockModel(grader) as server:
        model = connect(EndpointConfig(base_url=server.url, model="judge"))
        judge = Judge(model, SIMPLEQA)
        results = await judge_results(
            judge, flagged(), on_result=lambda result, progress: seen.append(result.problem_idx)
        )
        await model.aclose()
    assert [result.reward for result in results] == [1.0, 0.0, 0.0, 1.0, None, 1.0]
    assert [result.status for result in results] == ["scored"] * 4 + ["failed", "scored"]
    assert [result.scoring_details.get("label") for result in results[:4]] == [
        "CORRECT",
        "INCORRECT",
        "NOT_ATTEMPTED",
        "CORRECT",
    ]
    failed = results[4]
    assert isinstance(failed.error, SampleError)
    assert failed.error.kind == "grade_parse_failure"
    assert failed.scoring_details["judge"]["raw_reply"] == "what?"
    assert "label" in results[0].scoring_details["judge"]["raw_reply"]
    assert results[0].scoring_details["judge"]["identity"] == judge.identity
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert not any(waits_for_judge(result) for result in results)


async def test_a_later_run_judges_only_what_failed() -> None:
    async with MockModel(lambda _: MockAnswer(text="down", status=503)) as server:
        model = connect(EndpointConfig(base_url=server.url, model="judge", retry=RetryPolicy(tries=1)))
        first = await judge_results(Judge(model, SIMPLEQA), flagged())
        await model.aclose()
    assert [result.status for result in first] == ["failed"] * 5 + ["scored"]
    async with MockModel(grader) as server:
        model = connect(EndpointConfig(base_url=server.url, model="judge"))
        kept = await judge_results(Judge(model, SIMPLEQA), first)
        assert server.requests == 0
        again = await judge_results(Judge(model, SIMPLEQA), first, retry_failed=True)
        await model.aclose()
    assert kept == first
    assert [result.reward for result in again] == [1.0, 0.0, 0.0, 1.0, None, 1.0]
