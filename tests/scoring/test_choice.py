"""The letter of a multiple-choice answer: how it may be written, and what is no choice."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import grows_no_faster_than_linearly

from evenhand.core.errors import OptionError
from evenhand.scoring.choice import ANSWER_WORDS
from evenhand.scoring.pattern import multichoice_regex
from evenhand.scoring.types import ScorerInput


def read(response: str, letters: str = "ABCD") -> str | None:
    found = multichoice_regex(ScorerInput(response=response, target="B"), letters=letters)
    assert found["correct"] is (found["extracted"] == "B")
    extracted = found["extracted"]
    assert extracted is None or isinstance(extracted, str)
    return extracted


@pytest.mark.parametrize(
    "response",
    [
        "Answer: B",
        "answer :  b",
        "ANSWER:B.",
        "Answer: **B**",
        "**Answer:** B",
        "**Answer**: B",
        "**Answer: B**",
        "### Answer: B",
        "Answer: (B)",
        "Answer: [B]",
        "Answer: B)",
        "Answer: B) Paris",
        "Answer: B. Paris",
        "Answer: $B$",
        "Answer: `B`",
        'Answer: "B"',
        r"Answer: \boxed{B}",
        r"Answer: $\boxed{B}$",
        r"Answer: $\text{B}$",
        r"Answer: \(\mathbf{B}\)",
        r"The result is \boxed{B}.",
        r"So $\boxed{\text{(B)}}$",
        "Answer:\n\nB",
        "**Final answer**\n\nB",
        "<answer>B</answer>",
        r"\boxed{\textbf{(B) } 5}",
        "Final Answer: B",
        "Answer: Option B",
        "Answer: choice (B)",
        "Answer is: B",
        "The answer is B.",
        "The answer is B because it is.",
        "the correct answer is **B**",
        "The correct option is (B).",
        "The best choice is B",
        "Therefore, the answer is b.",
        "Answer: A\nNo wait.\nAnswer: b",
        "The answer is B because...\nAnswer: B",
        "The answer is A, or so it seems.\nAnswer: B",
        "Answer: B, because A is wrong",
        "Answer: B and nothing else",
        "B",
        "(B)",
        "**B**",
        " b. ",
        # The words of MMMLU's and MGSM's prompts.
        "Antwort: B",
        "Die Antwort ist B.",
        "Respuesta: B",
        "La respuesta es (B)",
        "Réponse : B",
        "Re\u0301ponse: B",
        "Risposta: **B**",
        "Resposta: B",
        "Ответ: B",
        "答案：B",
        "正确答案：B",
        "答案是B",
        "答え: B",
        "答えはBです",
        "回答：Ｂ",
        "정답: B",
        "답변:\u200b B",
        "الإجابة: ب",
        "الإجابة الصحيحة هي: B",
        "উত্তর: B",
        "উত্তরঃ ব",
        "उत्तर: B",
        "Jawaban: B",
        "Jibu: B",
        "Ìdáhùn: B",
        "คำตอบ: B",
        "సమాధానం: B",
    ],
)
def test_the_letter_is_read(response: str) -> None:
    assert read(response) == "B"


@pytest.mark.parametrize(
    "response",
    [
        "",
        "Answer:",
        "Answer: Both",
        "Answer: Cannot be determined",
        "Answer: Depends",
        "Answer: B2",
        "Answer: C++",
        "Answer: D'Artagnan",
        "Answer: A-level",
        "Answer: A dog",
        "Answer: a mystery",
        "The answer is a mystery.",
        "The answer is not B.",
        "Answer: E",
        "Answer: A, B, C, D",
        "Answer: A and B",
        "Answer: (A), (B)",
        "Answer: A/B",
        "A, B, C, D",
        r"\boxed{A, B}",
        "All of the above",
        "Beta",
        "Is B better than A?",
        "A) one\nB) two\nC) three\nD) four",
    ],
)
def test_this_is_no_choice(response: str) -> None:
    assert read(response) is None


def test_letters_beyond_d() -> None:
    assert read("Answer: (J)", letters="ABCDEFGHIJ") == "J"
    assert read("Answer: I", letters="ABCDEFGHIJ") == "I"
    assert read("Answer: I because it is", letters="ABCDEFGHIJ") == "I"
    for sentence in ("Answer: I don't know", "Answer: I cannot say", "The answer is I think C", "I"):
        assert read(sentence, letters="ABCDEFGHIJ") in (None, "I" if sentence == "I" else None)
    with pytest.raises(OptionError, match="letters"):
        read("Answer: B", letters="A-D")
    with pytest.raises(OptionError, match="not both"):
        multichoice_regex(ScorerInput(response="x", target="B"), pattern="([A-J])", letters="ABC")


@pytest.mark.parametrize("word", ANSWER_WORDS)
def test_every_word_is_read_with_a_colon(word: str) -> None:
    assert read(f"… {word}: C") == "C"
    assert read(f"{word}: **D**\n") == "D"


@pytest.mark.parametrize(
    ("target", "correct"), [("B", True), ("(B)", True), ("b.", True), ("A", False), ("", False)]
)
def test_the_target_is_compared_without_its_brackets(target: str, correct: bool) -> None:
    assert multichoice_regex(ScorerInput(response="Answer: B", target=target))["correct"] is correct


@given(
    st.lists(
        st.sampled_from(["Answer: A", "Answer: B.", "answer:C", "**Answer:** D", "so", "x: y"]), max_size=6
    )
)
def test_the_last_stated_answer_wins(lines: list[str]) -> None:
    stated = [re.sub(r"\W", "", line)[-1].upper() for line in lines if "nswer" in line]
    assert read("\n".join(lines)) == (stated[-1] if stated else None)


@pytest.mark.parametrize(
    "part", ["Answer:", "answer ", ": ", "\\boxed{", "Answer: (", "answer is", "A, ", "答案"]
)
def test_long_responses_take_no_quadratic_time(part: str) -> None:
    assert grows_no_faster_than_linearly(lambda size: read(part * (size // len(part))), 100_000)
