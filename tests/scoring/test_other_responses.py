"""Responses that are no text: nothing, numbers, content parts, other values. Scored, or unscored with a reason."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand import extract_json, judge_score, validate_json_schema
from evenhand.cli.app import command
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.core.sample import response_text
from evenhand.scoring.apply import score_sample, score_sample_async
from evenhand.scoring.definition import scorer
from evenhand.scoring.registry import BUILT_IN, get_scorer
from evenhand.scoring.types import ScorerInput

NEEDED: dict[str, dict[str, Any]] = {
    "embedding_similarity": {"embed": "char_ngrams"},
    "json_schema": {"schema": {"type": "object"}},
    "regex": {"pattern": "4"},
    "regex_match": {"pattern": "4"},
}
PARTS = [{"type": "text", "text": "The answer "}, {"type": "text", "text": "is 4"}]
THOUGHT = [
    {"type": "thinking", "thinking": "It could be 5."},
    {"type": "text", "text": "4"},
    {"type": "image_url", "image_url": {"url": "data:"}},
]
STRANGE: list[Any] = [
    4,
    4.0,
    True,
    float("nan"),
    b"4",
    PARTS,
    THOUGHT,
    [],
    {},
    {"a": 4},
    [None],
    [{"type": "tool_use", "name": "f", "input": {}}],
    object(),
    {1: object()},
    ["\ud800"],
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("x", "x"),
        (4, "4"),
        (4.5, "4.5"),
        (False, "false"),
        (b"caf\xc3\xa9", "café"),
        (PARTS, "The answer is 4"),
        (THOUGHT, "4"),
        ([1, "a"], '[1,"a"]'),
        ({"b": 1, "a": [2]}, '{"a":[2],"b":1}'),
        (float("inf"), "inf"),
        # Parts without a text keep their JSON: the calls in them can be compared.
        ([{"type": "tool_use", "name": "f"}], '[{"name":"f","type":"tool_use"}]'),
    ],
)
def test_what_a_response_says(value: Any, text: str | None) -> None:
    assert response_text(value) == text


# `code_sandbox` would run each value as a program; what turns values into text stands before every scorer.
@pytest.mark.parametrize("name", sorted(BUILT_IN - {"code_sandbox"}))
def test_no_value_makes_a_scorer_raise(name: str) -> None:
    chosen = get_scorer(name).with_options(NEEDED.get(name, {}))
    for response in STRANGE:
        sample = ScorerInput(response=response, target="4")
        assert isinstance(chosen(sample), dict), response
        assert isinstance(score_sample(chosen, sample), Scored | Unscored), response


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_no_response_is_no_score_however_it_is_asked_for(name: str) -> None:
    chosen = get_scorer(name).with_options(NEEDED.get(name, {}))
    sample = ScorerInput(response=None, target="4")  # type: ignore[arg-type]  # what a file with null gives
    outcome = score_sample(chosen, sample)
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "no_response"
    result: Any = chosen(sample)
    assert (asyncio.run(result) if chosen.is_async else result) == {"unscored": "no_response"}


def test_numbers_and_parts_are_graded_by_what_they_say() -> None:
    for response in (4, 4.0, PARTS, THOUGHT, "4"):
        outcome = score_sample(get_scorer("numeric_match"), ScorerInput(response=response, target="4"))  # type: ignore[arg-type]
        assert isinstance(outcome, Scored)
        assert outcome.value == 1.0


async def test_an_async_scorer_is_given_text_too() -> None:
    @scorer
    async def length(sample: ScorerInput) -> dict[str, Any]:
        return {"reward": float(len(sample.response))}

    assert await length(ScorerInput(response=PARTS)) == {"reward": 15.0}  # type: ignore[arg-type]
    assert await length(ScorerInput(response=None)) == {"unscored": "no_response"}  # type: ignore[arg-type]
    outcome = await score_sample_async(length, ScorerInput(response=None))  # type: ignore[arg-type]
    assert isinstance(outcome, Unscored)


def test_json_functions_take_values_as_they_take_text() -> None:
    schema = {"type": "object", "required": ["a"]}
    values: list[Any] = [None, {"a": 1}, [{"type": "text", "text": '{"a": 1}'}], 5]
    assert [extract_json(value) for value in values] == [None, {"a": 1}, {"a": 1}, 5]
    assert [validate_json_schema(value, schema)["valid"] for value in values] == [False, True, True, False]
    assert validate_json_schema(values[0], schema)["errors"] == ["invalid JSON: there is no response"]


async def test_a_judge_is_not_asked_about_nothing() -> None:
    class NoModel:
        model = "none"

        async def complete(self, request: Any) -> Any:
            raise AssertionError("asked")

        async def aclose(self) -> None: ...

    from evenhand.core.errors import ScoringError

    with pytest.raises(ScoringError) as caught:
        await judge_score(ScorerInput(response=None, target="4"), model=NoModel())  # type: ignore[arg-type]
    assert caught.value.kind == "no_response"


def test_the_command_line_scores_them_alike(tmp_path: Path) -> None:
    responses: list[Any] = [4, None, PARTS, THOUGHT, {"answer": 4}, "5"]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps({"response": r, "target": "4"}) + "\n" for r in responses))
    found = CliRunner().invoke(
        command, ["score", str(file), "--scorer", "numeric_match", "-o", str(tmp_path / "scores.jsonl")]
    )
    assert found.exit_code == 0, found.output
    written = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    through_files = [row["scores"]["numeric_match"] for row in written]
    for response, row in zip(responses, through_files, strict=True):
        outcome = score_sample(get_scorer("numeric_match"), ScorerInput(response=response, target="4"))
        assert not isinstance(outcome, Failed)
        expected = outcome.value if isinstance(outcome, Scored) else outcome.reason
        assert (row.get("value") if row["status"] == "scored" else row["reason"]) == expected


@pytest.mark.parametrize("name", ["exact_match", "numeric_match", "math_equal", "answer_line", "token_f1"])
def test_a_number_too_long_for_text_fails_with_a_reason(name: str) -> None:
    response: Any
    for response in (10**5000, [10**5000]):
        found = score_sample(get_scorer(name), ScorerInput(response=response, target="1"))
        assert isinstance(found, Failed)
        assert found.message == "the response holds a number that is too long to be written as text"
