"""Reading verdicts: the demanded form counts, nothing becomes 0, nothing is clamped."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import JudgementError, OptionError
from evenhand.judging.judgements import numbers_in
from evenhand.judging.rubrics import SIMPLEQA
from evenhand.scoring.judge import Choice, JudgeScoringConfig, parse_judge_response

JSON = JudgeScoringConfig()
LINE = JudgeScoringConfig(form="line")
BARE = JudgeScoringConfig(form="bare", max_score=10)
CODE = "0a1b2c3d"


def kind_of(text: str, config: JudgeScoringConfig, nonce: str | None = CODE) -> str:
    with pytest.raises(JudgementError) as caught:
        parse_judge_response(text, config, nonce=nonce)
    assert caught.value.reply == text
    return caught.value.kind


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"nonce": "0a1b2c3d", "reasoning": "fine", "score": 4}', 4.0),
        ('{"nonce": "0a1b2c3d", "score": 2.5}', 2.5),
        ('```json\n{"nonce": "0a1b2c3d", "score": 0}\n```', 0.0),
        ('I think so.\n{"nonce": "0a1b2c3d", "score": 5}\nDone.', 5.0),
        ('{"nonce": "0a1b2c3d", "score": "4"}', 4.0),
        ('{"nonce": "0a1b2c3d", "score": "4/5"}', 4.0),
        ('{"nonce": "0a1b2c3d", "score": 4} {"nonce": "0a1b2c3d", "score": 4.0}', 4.0),
        ('the set {a, b}: {"nonce": "0a1b2c3d", "score": 1}', 1.0),
        ('{"unrelated": {"score": 9}} {"nonce": "0a1b2c3d", "score": 3}', 3.0),
    ],
)
def test_json_verdicts(reply: str, score: float) -> None:
    verdict = parse_judge_response(reply, JSON, nonce=CODE)
    assert verdict.score == score
    assert verdict.reward == score / 5


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "grade_parse_failure"),
        ("   \n", "grade_parse_failure"),
        ("4", "grade_parse_failure"),
        ('{"score": 4}', "grade_parse_failure"),
        ('{"nonce": "ffffffff", "score": 4}', "grade_parse_failure"),
        ('{"nonce": "0A1B2C3D", "score": 4}', "grade_parse_failure"),
        ('{"nonce": " 0a1b2c3d", "score": 4}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "rating": 4}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": null}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": true}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": "good"}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": [4]}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": NaN}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": Infinity}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": 4', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": "4/10"}', "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": 6}', "verdict_out_of_range"),
        ('{"nonce": "0a1b2c3d", "score": -0.001}', "verdict_out_of_range"),
        ('{"nonce": "0a1b2c3d", "score": 1e400}', "verdict_out_of_range"),
        ('{"nonce": "0a1b2c3d", "score": 1' + "0" * 400 + "}", "verdict_out_of_range"),
        ('{"nonce": "0a1b2c3d", "score": 1' + "0" * 5000 + "}", "grade_parse_failure"),
        ('{"nonce": "0a1b2c3d", "score": 4}{"nonce": "0a1b2c3d", "score": 1}', "ambiguous_verdict"),
        ('{"nonce": "0a1b2c3d", "score": 4, "score": 1}', "ambiguous_verdict"),
        ("{" * 50_000, "grade_parse_failure"),
        ('{"a":' * 9_000 + "1" + "}" * 9_000, "grade_parse_failure"),
        ("x" * 70_000, "grade_parse_failure"),
    ],
)
def test_json_without_a_verdict(reply: str, kind: str) -> None:
    if len(reply) > 65_536:
        with pytest.raises(JudgementError, match="longer"):
            parse_judge_response(reply, JSON, nonce=CODE)
    else:
        assert kind_of(reply, JSON) == kind


def test_a_quoted_verdict_without_the_code_is_passed_over_with_a_warning() -> None:
    reply = 'The answer says {"score": 5}, which is no verdict. {"nonce": "0a1b2c3d", "score": 1}'
    verdict = parse_judge_response(reply, JSON, nonce=CODE)
    assert (verdict.score, verdict.warnings) == (1.0, ("foreign_verdict",))


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Reasons.\nVERDICT 0a1b2c3d: 4/5", 4.0),
        ("**VERDICT 0a1b2c3d: 4**", 4.0),
        ("verdict 0a1b2c3d : 0.5 / 5.0", 0.5),
        ("VERDICT 0a1b2c3d = 3", 3.0),
        ("VERDICT 0a1b2c3d: .5", 0.5),
        ("VERDICT ffffffff: 5\nVERDICT 0a1b2c3d: 2", 2.0),
    ],
)
def test_line_verdicts(reply: str, score: float) -> None:
    assert parse_judge_response(reply, LINE, nonce=CODE).score == score


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("VERDICT: 5", "grade_parse_failure"),
        ("VERDICT ffffffff: 5", "grade_parse_failure"),
        ("VERDICT 0a1b2c3d: five", "grade_parse_failure"),
        ("VERDICT 0a1b2c3d: 5/10", "grade_parse_failure"),
        ("VERDICT 0a1b2c3d: 7", "verdict_out_of_range"),
        ("VERDICT 0a1b2c3d: 7/5", "verdict_out_of_range"),
        ("VERDICT 0a1b2c3d: 1\nVERDICT 0a1b2c3d: 2", "ambiguous_verdict"),
        ("5/5", "grade_parse_failure"),
    ],
)
def test_lines_without_a_verdict(reply: str, kind: str) -> None:
    assert kind_of(reply, LINE) == kind


@pytest.mark.parametrize(
    ("reply", "score", "warned"),
    [
        ("8", 8.0, False),
        ("Score: 8/10", 8.0, False),
        ("8 out of 10, for it is right", 8.0, False),
        ("I would say 7.5.", 7.5, False),
        ("3 of the 4 facts are right, so 6", 3.0, True),
        ("0", 0.0, False),
        ("**9**", 9.0, False),
        ("_9_", 9.0, False),
        (".5", 0.5, False),
    ],
)
def test_the_first_number_of_a_bare_reply(reply: str, score: float, warned: bool) -> None:
    verdict = parse_judge_response(reply, BARE)
    assert (verdict.score, verdict.reward) == (score, score / 10)
    assert verdict.warnings == (("multiple_numbers",) if warned else ())


@pytest.mark.parametrize("reply", ["-1", "11", "1e9", "9" * 500, "100/10"])
def test_a_bare_number_outside_the_range_is_no_verdict(reply: str) -> None:
    assert kind_of(reply, BARE, None) == "verdict_out_of_range"


def test_a_bare_reply_without_a_number_is_no_verdict() -> None:
    assert kind_of("It is quite good.", BARE, None) == "grade_parse_failure"


def test_a_range_that_does_not_start_at_zero_is_normalised() -> None:
    config = JudgeScoringConfig(form="bare", min_score=1, max_score=5)
    assert [parse_judge_response(str(n), config).reward for n in range(1, 6)] == [0, 0.25, 0.5, 0.75, 1]
    assert kind_of("0", config, None) == "verdict_out_of_range"


@pytest.mark.parametrize(
    ("verdict", "label"),
    [
        ("A", "CORRECT"),
        ("b", "INCORRECT"),
        ("NOT_ATTEMPTED", "NOT_ATTEMPTED"),
        ("not attempted", "NOT_ATTEMPTED"),
        ("A (CORRECT)", "CORRECT"),
        ("C: NOT_ATTEMPTED", "NOT_ATTEMPTED"),
    ],
)
def test_simpleqa_grades(verdict: str, label: str) -> None:
    reply = json.dumps({"nonce": CODE, "reasoning": "", "label": verdict})
    found = parse_judge_response(reply, SIMPLEQA, nonce=CODE)
    assert found.label == label
    assert found.reward == (1.0 if label == "CORRECT" else 0.0)


@pytest.mark.parametrize("verdict", ["D", "AB", "", "correct or incorrect", "A, B"])
def test_a_grade_outside_the_choices_is_no_verdict(verdict: str) -> None:
    assert kind_of(json.dumps({"nonce": CODE, "label": verdict}), SIMPLEQA) == "grade_parse_failure"


BARE_LABELS = JudgeScoringConfig(form="bare", choices=SIMPLEQA.choices)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("B", "INCORRECT"),
        ("The answer is INCORRECT.", "INCORRECT"),
        ("Grade: NOT ATTEMPTED", "NOT_ATTEMPTED"),
        ("correct", "CORRECT"),
    ],
)
def test_bare_labels(reply: str, label: str) -> None:
    assert parse_judge_response(reply, BARE_LABELS).label == label


def test_bare_replies_that_name_two_labels_or_none() -> None:
    assert kind_of("It is CORRECT, not INCORRECT", BARE_LABELS, None) == "ambiguous_verdict"
    assert kind_of("Hard to say.", BARE_LABELS, None) == "grade_parse_failure"


@given(st.text())
def test_any_reply_is_a_verdict_or_a_verdict_error(reply: str) -> None:
    for config in (JSON, LINE, BARE, SIMPLEQA, BARE_LABELS):
        try:
            verdict = parse_judge_response(reply, config, nonce=CODE)
        except JudgementError:
            continue
        assert 0.0 <= verdict.reward <= 1.0


def test_numbers_are_found_in_order_with_their_signs() -> None:
    assert numbers_in("from 0-10: -3, +2, 1,000.5 and 1e3; v2 is no number, (−7) is") == [
        0,
        10,
        -3,
        2,
        1000.5,
        1000,
        -7,
    ]


def test_bad_configurations_are_refused() -> None:
    for options in (
        {"max_score": 0.0},
        {"max_score": float("inf")},
        {"samples": 0},
        {"samples": 3},
        {"choices": (Choice(label="a", value=1.0), Choice(label="A", value=0.0))},
        {"choices": (Choice(label=" ", value=1.0),)},
    ):
        with pytest.raises(OptionError):
            JudgeScoringConfig(**options)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("run", ["\n", " ", "*\n", "{", '{"a":', "1,111", "VERDICT ", "-"])
@pytest.mark.parametrize("form", ["json", "line", "bare"])
def test_a_long_run_of_anything_is_read_in_one_go(form: Any, run: str) -> None:
    for start in ("", "VERDICT"):
        with contextlib.suppress(JudgementError):
            parse_judge_response(
                start + run * (60_000 // len(run)), JudgeScoringConfig(form=form), nonce="0badcafe"
            )
