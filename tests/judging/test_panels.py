"""Panels and pairs."""

from typing import Any

import pytest

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.judging.pairwise import PairwiseJudge, position_bias
from evenhand.judging.panels import Ensemble, Escalation
from evenhand.judging.records import JudgeRecord
from evenhand.models.config import EndpointConfig
from evenhand.models.connect import connect
from evenhand.scoring.judge import Judge, JudgeScoringConfig
from evenhand.scoring.types import ScorerInput
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall, with_nonce

SAMPLE = ScorerInput(response="an answer")


class Fixed:
    """A judge with a mind of its own."""

    def __init__(self, name: str, outcome: Outcome | float, flags: tuple[str, ...] = ()) -> None:
        self.identity = f"judge-{name}"
        self.asked = 0
        value = Scored(value=outcome) if isinstance(outcome, float) else outcome
        self._record = JudgeRecord(outcome=value, identity=self.identity, model=name, flags=flags)

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        self.asked += 1
        return self._record


def label(name: str, value: float) -> Scored:
    return Scored(value=value, details={"label": name})


DEAD = Failed(error="judge_unavailable", message="down")


def value(outcome: Outcome) -> Any:
    return outcome.value if isinstance(outcome, Scored) else None


@pytest.mark.parametrize(
    ("verdicts", "combine", "expected"),
    [
        ([0.0, 0.5, 1.0], "mean", 0.5),
        ([0.0, 0.9, 1.0], "median", 0.9),
        ([0.0, 0.6, 1.0], "majority", 1.0),
        ([0.0, 0.5, 1.0], "majority", 0.0),
        ([0.4, 0.8, DEAD], "mean", pytest.approx(0.6)),
        ([0.4, DEAD, DEAD], "mean", None),
        ([0.0, 1.0], "majority", None),
        ([label("A", 1.0), label("A", 1.0), label("C", 0.0)], "mean", 1.0),
        ([label("A", 1.0), label("B", 0.0)], "mean", None),
    ],
)
async def test_an_ensemble_combines(verdicts: list[Any], combine: Any, expected: Any) -> None:
    judges = [Fixed(str(number), verdict) for number, verdict in enumerate(verdicts)]
    record = await Ensemble(judges, combine=combine).judge(SAMPLE)
    assert value(record.outcome) == expected
    if expected is None:
        assert isinstance(record.outcome, Failed)
        assert record.outcome.error in ("judge_unavailable", "no_majority")
    assert record.model == "+".join(str(number) for number in range(len(verdicts)))


async def test_an_ensemble_stops_where_a_member_must() -> None:
    spent = Failed(error="budget_exceeded", message="spent")
    record = await Ensemble([Fixed("a", 1.0), Fixed("b", 1.0), Fixed("c", spent)]).judge(SAMPLE)
    assert record.outcome == spent


def test_an_ensemble_of_one_is_refused_and_identity_depends_on_members_and_rule() -> None:
    one, two = Fixed("a", 1.0), Fixed("b", 1.0)
    with pytest.raises(OptionError):
        Ensemble([one])
    assert Ensemble([one, two]).identity == Ensemble([two, one]).identity
    assert Ensemble([one, two]).identity != Ensemble([one, two], combine="median").identity
    assert Ensemble([one, two]).identity != Ensemble([one, one]).identity


@pytest.mark.parametrize(
    ("first", "flags", "escalated"),
    [
        (0.0, (), False),
        (1.0, (), False),
        (0.5, (), True),
        (0.25, (), True),
        (0.76, (), False),
        (DEAD, (), True),
        (1.0, ("injection_suspected",), True),
    ],
)
async def test_only_unsure_verdicts_are_escalated(
    first: Any, flags: tuple[str, ...], escalated: bool
) -> None:
    cheap, dear = Fixed("cheap", first, flags), Fixed("dear", 0.9)
    record = await Escalation(cheap, dear).judge(SAMPLE)
    assert dear.asked == escalated
    assert value(record.outcome) == (0.9 if escalated else first)
    assert record.outcome.details["escalated"] is escalated


async def test_panels_of_real_judges_keep_every_call() -> None:
    def answer(call: MockCall) -> str:
        score = {"strict": 1, "kind": 5}[call.model]
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "", "score": ' + str(score) + "}", call.prompt)

    async with MockModel(answer) as server:
        models = [connect(EndpointConfig(base_url=server.url, model=name)) for name in ("strict", "kind")]
        panel = Ensemble([Judge(model) for model in models])
        record = await panel.judge(SAMPLE)
        for model in models:
            await model.aclose()
    assert value(record.outcome) == pytest.approx(0.6)
    assert [call.model for call in record.calls] == ["strict", "kind"]
    assert record.model == "strict+kind"


def chooser(rule: str) -> Any:
    """A judge of pairs: by quality (the word 'good'), or always for one position."""

    def answer(call: MockCall) -> str:
        shown = {name: call.prompt.split(f"<<<ANSWER {name} ")[1].split("\n")[1] for name in "AB"}
        if rule == "quality":
            good = [name for name, text in shown.items() if "good" in text]
            choice = good[0] if len(good) == 1 else "TIE"
        else:
            choice = rule
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "", "label": "' + choice + '"}', call.prompt)

    return answer


async def compared(rule: str, pairs: list[tuple[str, str]]) -> tuple[list[JudgeRecord], int]:
    async with MockModel(chooser(rule)) as server:
        model = connect(EndpointConfig(base_url=server.url, model="m"))
        judge = PairwiseJudge(model)
        records = [await judge.compare("question?", first, second) for first, second in pairs]
        await model.aclose()
        return records, server.requests


async def test_a_pair_is_judged_in_both_orders() -> None:
    pairs = [("good one", "bad one"), ("bad one", "good one"), ("bad one", "bad two")]
    records, requests = await compared("quality", pairs)
    assert [value(record.outcome) for record in records] == [1.0, 0.0, 0.5]
    assert all(record.outcome.details["consistent"] for record in records)
    assert requests == 6
    bias = position_bias(records)
    assert bias is not None
    assert (bias.pairs, bias.flip_rate.value, bias.favoured) == (3, 0.0, "neither")


@pytest.mark.parametrize(("rule", "favoured"), [("A", "earlier"), ("B", "later")])
async def test_a_verdict_that_follows_the_position_is_a_tie_and_is_counted(rule: str, favoured: str) -> None:
    records, _ = await compared(rule, [("good one", "bad one"), ("x", "y")])
    assert [value(record.outcome) for record in records] == [0.5, 0.5]
    assert not records[0].outcome.details["consistent"]
    bias = position_bias(records)
    assert bias is not None
    assert (bias.flip_rate.value, bias.favoured) == (1.0, favoured)


async def test_an_empty_answer_is_compared_like_any_other() -> None:
    """A judge that always names TIE: no winner is made up for an empty answer."""
    records, requests = await compared("TIE", [(":", "text"), ("text", ""), ("", " ")])
    assert [value(record.outcome) for record in records] == [0.5, 0.5, 0.5]
    assert requests == 6


async def test_a_pair_without_a_verdict_fails() -> None:
    async with MockModel("no idea") as server:
        model = connect(EndpointConfig(base_url=server.url, model="m"))
        record = await PairwiseJudge(model).compare("q", "a b", "c d")
        await model.aclose()
    assert isinstance(record.outcome, Failed)
    assert record.outcome.error == "grade_parse_failure"


async def test_self_consistency_needs_a_temperature() -> None:
    with pytest.raises(OptionError, match="temperature"):
        JudgeScoringConfig(samples=3)
