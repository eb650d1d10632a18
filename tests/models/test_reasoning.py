"""Thinking and answer are told apart, whatever part of the tags is there."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import OptionError
from evenhand.models.reasoning import Split, join_reasoning, parse_tags, split_reasoning


@pytest.mark.parametrize(
    ("text", "answer", "reasoning", "unclosed"),
    [
        ("<think>x</think> <think>y", "", "x\n\ny", True),
        ("x</think> <think>y", "", "x\n\ny", True),
        ("<think>x</think>4 <think>y", "4 <think>y", "x", False),
        ("Paris", "Paris", None, False),
        ("", "", None, False),
        ("  Paris \n", "  Paris \n", None, False),  # without thinking nothing is touched
        ("<think>Hm.</think>Paris", "Paris", "Hm.", False),
        ("<think>\nHm.\n</think>\n\nParis\n", "Paris", "Hm.", False),
        ("\n <think>Hm.</think>\nParis", "Paris", "Hm.", False),
        ("<THINK>Hm.</Think>Paris", "Paris", "Hm.", False),
        ("<think></think>\nParis", "Paris", None, False),  # a model that was told not to think
        # The chat template wrote the opening tag.
        ("Hm. Lyon? No.\n</think>\n\nParis", "Paris", "Hm. Lyon? No.", False),
        ("Hm. Lyon? No.</think>\nParis", "Paris", "Hm. Lyon? No.", False),
        ("</think>\n\nParis", "Paris", None, False),
        # Cut off inside the thinking.
        ("<think>Hm. Lyon", "", "Hm. Lyon", True),
        ("<think>", "", None, True),
        ("<think>a</think>\nSo far.\n<think>Hm. Lyon", "So far.", "a\n\nHm. Lyon", True),
        # Several blocks.
        ("<think>a</think>b\n<think>c</think>d", "b\nd", "a\n\nc", False),
        # Inside a block, an opening tag is a word of the thinking, and so is text that looks like an answer.
        ("<think>Answer: A? <think> again</think>Answer: B", "Answer: B", "Answer: A? <think> again", False),
        # In the middle of a line, tags are words of the answer.
        ("Answer: A <think>ok</think>", "Answer: A", "ok", False),
        ("Answer: A <think>ok</think> or so\nB", "Answer: A  or so\nB", "ok", False),
        ("Answer: A\n<think>ok\nok</think>", "Answer: A", "ok\nok", False),
        ("Answer: A <think>ok\nmore\n</think>", "Answer: A", "ok\nmore", False),
        ("Answer: A<think>ok</think>", "Answer: A", "ok", False),
        ("Answer: A <think>ok\n\n</think>\nB <think>c\nd</think> E", "Answer: A \nB  E", "ok\n\nc\nd", False),
        # Blocks within blocks.
        ("<think>a <think>b</think> c</think>\nD", "D", "a <think>b</think> c", False),
        (
            "<think>a<think>b<think>c</think></think></think>D",
            "D",
            "a<think>b<think>c</think></think>",
            False,
        ),
        ("<think>a <think>b</think> c</think>\nD\n<think>e</think>", "D", "a <think>b</think> c\n\ne", False),
        ("So it is 42.</think>42", "42", "So it is 42.", False),
        ("Write <think> first.", "Write <think> first.", None, False),
        ("Close it with </think> at the end.", "Close it with </think> at the end.", None, False),
        ("`<think>x</think>` is a block", "`<think>x</think>` is a block", None, False),
    ],
)
def test_think_tags(text: str, answer: str, reasoning: str | None, unclosed: bool) -> None:
    assert split_reasoning(text) == Split(answer, reasoning, unclosed)


def test_other_tags_and_none() -> None:
    text = "[THINK]Hm.[/THINK]Paris"
    assert split_reasoning(text) == Split(text)
    assert split_reasoning(text, ("[THINK]...[/THINK]",)) == Split("Paris", "Hm.")
    both = "<thought>a</thought>\n<think>b</think>c"
    assert split_reasoning(both, ("think", "thought")) == Split("c", "b\n\na")
    assert split_reasoning("<think>a</think>b", ()) == Split("<think>a</think>b")


def test_tags_as_they_are_typed() -> None:
    assert parse_tags("think") == ("think",)
    assert parse_tags("think, [THINK]...[/THINK]") == ("think", "[THINK]...[/THINK]")
    assert parse_tags("none") == ()
    for bad in ("", "<think>", "a b", "...", "<a>...", "x...x", "think,,a"):
        with pytest.raises(OptionError, match="is not a thinking tag"):
            parse_tags(bad)


def test_joining() -> None:
    assert join_reasoning(None, "", "a", "b") == "a\n\nb"
    assert join_reasoning(None, "") is None


@given(st.text(alphabet="ab<>/think \n"), st.text(alphabet="abc \n"))
def test_what_follows_a_closed_block_is_the_answer(thought: str, answer: str) -> None:
    text = f"<think>{thought.replace('</think>', '')}</think>{answer}"
    assert split_reasoning(text).answer == answer.strip()


@given(st.lists(st.sampled_from(["a", "b", " ", "\n", "<think>", "</think>"])).map("".join))
def test_no_letter_is_lost(text: str) -> None:
    found = split_reasoning(text)
    both = found.answer + (found.reasoning or "")
    assert sorted(re.findall("[ab]", both)) == sorted(re.findall("[ab]", text))


def test_hostile_text_takes_no_time() -> None:
    for text in (
        "<think>" * 100_000,
        "</think>" * 100_000,
        " <think>" * 100_000,
        " \t" * 500_000,
        "<think>\n" * 100_000,
    ):
        start = time.process_time()
        split_reasoning(text)
        assert time.process_time() - start < 5  # quadratic work would take minutes
