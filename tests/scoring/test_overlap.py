"""Overlap scorers against the reference packages of their fields and against the definitions."""

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer
from tests.growth import cost

from evenhand.core.errors import OptionError, ScoringError
from evenhand.scoring.overlap import bleu, common_subsequence, edit_distance, levenshtein, rouge_l, token_f1
from evenhand.scoring.types import ScorerInput

WORDS = st.lists(
    st.sampled_from(
        [
            "the",
            "cat",
            "sat",
            "on",
            "a",
            "mat,",
            "dog's",
            "3.5",
            "1,000",
            "end-of",
            "U.S.",
            "&",
            "x-2",
            '"q"',
            "(b)",
            "hello!",
            "&amp;",
            "5-",
        ]
    ),
    max_size=12,
).map(" ".join)
ROUGE = rouge_scorer.RougeScorer(["rougeL"])


def distance_by_definition(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, x in enumerate(first, 1):
        previous, row = row, [i]
        for j, y in enumerate(second, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
@settings(max_examples=300)
def test_bleu_is_sacrebleus(response: str, references: list[str]) -> None:
    ours = bleu(ScorerInput(response=response, metadata={"correct_answers": references}))["reward"]
    assert ours == pytest.approx(sacrebleu.sentence_bleu(response, references).score / 100, abs=1e-12)


@given(WORDS, WORDS)
def test_rouge_l_is_that_of_rouge_score(response: str, target: str) -> None:
    ours = rouge_l(ScorerInput(response=response, target=target))
    theirs = ROUGE.score(target, response)["rougeL"]
    assert ours["reward"] == pytest.approx(theirs.fmeasure)
    assert (ours["precision"], ours["recall"]) == pytest.approx((theirs.precision, theirs.recall))


@given(st.text(alphabet="abcé", max_size=80), st.text(alphabet="abcé", max_size=80))
def test_edit_distance_is_the_definitions(first: str, second: str) -> None:
    assert (
        edit_distance(first, second) == edit_distance(second, first) == distance_by_definition(first, second)
    )


@given(st.text(), st.text(), st.text())
def test_edit_distance_is_a_metric(first: str, second: str, third: str) -> None:
    assert (edit_distance(first, second) == 0) == (first == second)
    assert edit_distance(first, third) <= edit_distance(first, second) + edit_distance(second, third)


@given(st.text(), st.text())
def test_overlap_scorers_are_symmetric_in_range_and_never_raise(first: str, second: str) -> None:
    forth, back = ScorerInput(response=first, target=second), ScorerInput(response=second, target=first)
    for score in (levenshtein, token_f1, rouge_l):
        assert 0 <= score(forth)["reward"] <= 1
        assert score(forth)["reward"] == pytest.approx(score(back)["reward"])
    assert 0 <= bleu(forth)["reward"] <= 1


def test_known_values() -> None:
    # kitten to sitting: three edits of seven characters (Levenshtein's own example).
    assert levenshtein(ScorerInput(response="kitten", target="sitting")) == {
        "reward": 1 - 3 / 7,
        "distance": 3,
    }
    assert levenshtein(ScorerInput(response="A", target="a"), case_sensitive=False)["reward"] == 1.0
    # Two of three words are right, two of two are found: P = 2/3, R = 1, F1 = 0.8.
    result = token_f1(ScorerInput(response="big red dog", target="the red dog"))
    assert result["reward"] == pytest.approx(0.8)
    assert token_f1(ScorerInput(response="x", metadata={"correct_answers": ["y", "x"]}))["reward"] == 1.0
    assert rouge_l(ScorerInput(response="", target=""))["reward"] == 0.0
    assert common_subsequence(["a", "b", "c", "d"], ["b", "d", "e"]) == 2


@pytest.mark.parametrize(
    ("response", "target", "f1"),
    [
        # compute_f1 of SQuAD's evaluate-v2.0.py: where a side has no tokens, whether both have none.
        ("The", "a", 1.0),
        ("“an”", "the", 1.0),
        ("", "", 1.0),
        (" ", "", 1.0),
        ("...", "?", 1.0),
        ("The", "cat", 0.0),
        ("", "cat", 0.0),
        ("the the the", "cat", 0.0),
        # Ours is stricter where the response says nothing and the answer does: there it is 1.
        ("", "A", 0.0),
        (".", "A", 0.0),
        ("", "?", 0.0),
    ],
)
def test_token_f1_of_texts_without_words(response: str, target: str, f1: float) -> None:
    assert token_f1(ScorerInput(response=response, target=target))["reward"] == f1
    assert token_f1(ScorerInput(response=target, target=response))["reward"] == f1


def test_limits_are_stated() -> None:
    with pytest.raises(ScoringError, match="at most 50,000") as caught:
        levenshtein(ScorerInput(response="a" * 50_001, target="b"))
    assert caught.value.kind == "response_too_long"
    with pytest.raises(OptionError, match="max_n"):
        bleu(ScorerInput(response="a", target="a"), max_n=0)


def test_the_largest_texts_stay_within_seconds_and_memory() -> None:
    different = "".join(map(chr, range(0x100, 0x100 + 20_000)))
    # A step for each of the 400 million pairs would take minutes.
    assert cost(lambda: edit_distance(different, different[::-1])) < 20
