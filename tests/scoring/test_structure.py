"""Lists, JSON values, tool calls and embeddings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed
from evenhand.scoring.apply import score_sample
from evenhand.scoring.embedding import embedding_similarity
from evenhand.scoring.structure import json_diff, list_match, same_json
from evenhand.scoring.tool_calls import tool_call_match
from evenhand.scoring.types import ScorerInput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab/~"), inner, max_size=3),
    max_leaves=6,
)
WEATHER = {"name": "weather", "arguments": {"city": "Paris", "days": 2}}
TIME = {"name": "time", "arguments": {}}


def listed(response: str, target: Any, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = list_match(ScorerInput(response=response, target=target), **options)
    return result


@pytest.mark.parametrize(
    ("response", "target", "options", "correct"),
    [
        ("red, green, blue", ["Blue", "red", "green"], {}, True),
        ("red, green, blue", ["Blue", "red", "green"], {"ordered": True}, False),
        ('["red", "green"]', "red; green", {"ordered": True}, True),
        ("- red\n- green\n", ["red", "green"], {}, True),
        ("Here they are:\n1. red\n2. green", ["green", "red"], {}, True),
        ("The list: [1, 2, 3]", [3, 2, 1], {}, True),
        ("red, red", ["red"], {}, False),
        ("red", ["red", "green"], {}, False),
        ("", [], {}, True),
        ("", ["red"], {}, False),
        ("red and green", ["red", "green"], {}, True),
        ("red, green, and blue.", ["red", "green", "blue"], {"ordered": True}, True),
        ("red, green or blue", "blue, red & green", {}, True),
        ("Chile, Trinidad and Tobago", ["Trinidad and Tobago", "Chile"], {}, True),
        ("Trinidad and Tobago", ["Trinidad and Tobago"], {}, True),
        ("Tobago", ["Trinidad and Tobago"], {}, False),
        ("red and green and blue", ["red", "green", "blue"], {}, False),
        ("1,000; 2,000", ["1000", "2000"], {}, True),
        ("1,000, 2,000", [1000, 2000], {}, True),
        ("100,200,300", [100, 200, 300], {}, True),
        ("+ red\n+ green", ["red", "green"], {}, True),
        ("a) red\nb) green", ["red", "green"], {}, True),
        ("A. Smith\nB. Jones", ["A. Smith", "B. Jones"], {}, True),
    ],
)
def test_lists(response: str, target: Any, options: dict[str, Any], correct: bool) -> None:
    assert listed(response, target, **options)["correct"] is correct


def test_partial_lists_are_rewarded_with_f1() -> None:
    # One of two found is right, one of three expected is found: P = 1/2, R = 1/3, F1 = 0.4.
    result = listed("red, pink", ["red", "green", "blue"], partial=True)
    assert result["reward"] == pytest.approx(0.4)
    assert result["correct"] is False


def test_json_diff_says_what_differs() -> None:
    result = json_diff(
        ScorerInput(response='{"a": 1.0, "b": [1, 3], "d": 0}', target={"a": 1, "b": [1, 2], "c": None})
    )
    # Of five places (a, b/0, b/1, c, d) two agree.
    assert result["reward"] == pytest.approx(2 / 5)
    assert result["differences"] == [
        {"path": "/b/1", "expected": 2, "found": 3},
        {"path": "/c", "expected": None},
        {"path": "/d", "found": 0},
    ]
    assert json_diff(ScorerInput(response="no", target="{}"))["problem"].startswith("invalid JSON")
    assert json_diff(ScorerInput(response='"x"', target="x"))["correct"] is True


@given(JSON, JSON)
def test_json_diff_is_one_exactly_for_equal_values_and_symmetric(first: Any, second: Any) -> None:
    import json

    def reward(response: Any, target: Any) -> float:
        found = json_diff(ScorerInput(response=json.dumps(response), target=json.dumps(target)))
        assert found["correct"] is (found["reward"] == 1.0) is same_json(response, target)
        return float(found["reward"])

    assert reward(first, first) == 1.0
    assert reward(first, second) == reward(second, first)
    assert 0 <= reward(first, second) <= 1


def called(calls: Any, target: Any, **options: Any) -> tuple[bool, float]:
    sample = ScorerInput(response="", target=target, metadata={"tool_calls": calls})
    result = tool_call_match(sample, **options)
    return result["correct"], result["reward"]


@pytest.mark.parametrize(
    ("calls", "target", "options", "expected"),
    [
        ([WEATHER, TIME], [WEATHER, TIME], {}, (True, 1.0)),
        ([TIME, WEATHER], [WEATHER, TIME], {}, (False, 1 / 3)),
        ([TIME, WEATHER], [WEATHER, TIME], {"ordered": False}, (True, 1.0)),
        ([WEATHER], [WEATHER, TIME], {}, (False, 0.5)),
        ([WEATHER, TIME], [WEATHER], {}, (False, 0.5)),
        ([WEATHER, TIME], [WEATHER], {"extra": True}, (True, 1.0)),
        ([WEATHER], [{"name": "weather", "arguments": {"city": "Paris"}}], {}, (False, 0.0)),
        (
            [WEATHER],
            [{"name": "weather", "arguments": {"city": "Paris"}}],
            {"arguments": "subset"},
            (True, 1.0),
        ),
        ([WEATHER], [{"name": "weather"}], {"arguments": "ignore"}, (True, 1.0)),
        ([], [], {}, (True, 1.0)),
        (
            [
                {
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"days": 2.0, "city": "Paris"}'},
                }
            ],
            WEATHER,
            {},
            (True, 1.0),
        ),
    ],
)
def test_tool_calls(calls: Any, target: Any, options: dict[str, Any], expected: tuple[bool, float]) -> None:
    correct, reward = called(calls, target, **options)
    assert correct is expected[0]
    assert reward == pytest.approx(expected[1])


def test_tool_calls_in_the_text_of_a_response() -> None:
    sample = ScorerInput(response='I call ```json\n{"name": "time", "arguments": {}}\n```', target=[TIME])
    assert tool_call_match(sample)["correct"] is True
    assert tool_call_match(ScorerInput(response="no call", target=[TIME]))["reward"] == 0.0


@given(JSON, JSON)
def test_structured_scorers_never_raise(first: Any, second: Any) -> None:
    import json

    for response in (json.dumps(first), str(first)):
        sample = ScorerInput(response=response, target=second)
        for score in (list_match, json_diff, tool_call_match):
            found = score(sample)
            assert isinstance(found.get("correct"), bool) or found == {"unscored": "target_without_calls"}


def test_embeddings_come_from_the_caller() -> None:
    vectors = {"cat": [1.0, 0.0], "feline": [0.8, 0.6], "car": [0.0, 1.0]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    sample = ScorerInput(response="cat", target="feline")
    assert embedding_similarity(sample, embed=embed)["reward"] == pytest.approx(0.8)
    assert embedding_similarity(sample, embed=embed, threshold=0.9)["correct"] is False
    best = ScorerInput(response="cat", metadata={"correct_answers": ["car", "feline"]})
    assert embedding_similarity(best, embed=embed)["reward"] == pytest.approx(0.8)
    for bad in ([[1.0]], [[1.0], [1.0, 2.0]], [[float("nan")], [1.0]]):
        configured = embedding_similarity.with_options({"embed": lambda texts, bad=bad: bad})
        assert isinstance(score_sample(configured, sample), Failed)


@given(st.text(), st.text())
def test_character_triples_need_no_model(first: str, second: str) -> None:
    def similarity(response: str, target: str) -> float:
        sample = ScorerInput(response=response, target=target)
        return float(embedding_similarity(sample, embed="char_ngrams")["reward"])

    assert similarity(first, second) == pytest.approx(similarity(second, first))
    assert 0 <= similarity(first, second) <= 1
    if first.strip():
        assert similarity(first, first) == pytest.approx(1.0)


def test_an_unknown_embedding_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="char_ngrams"):
        embedding_similarity(ScorerInput(response="a", target="a"), embed="gpt")


@pytest.mark.parametrize("target", ["Paris", '{"a": 1}', {"a": 1}, 5])
def test_a_target_without_calls_is_not_met_by_everything(target: object) -> None:
    """It is no expectation about calls: there is nothing to measure. An empty list expects no call."""
    answer = ScorerInput(response="completely wrong", target=target)
    assert tool_call_match(answer) == {"unscored": "target_without_calls"}
    assert tool_call_match(ScorerInput(response="no call", target=[]))["correct"] is True
