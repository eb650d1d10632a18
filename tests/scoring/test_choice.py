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


WRITTEN = [
    "(B) Paris",
    "**B.** Paris",
    "**B) Paris**",
    "B: Paris",
    "B - Paris",
    "option b",
    "Choice B",
    "Option (B)",
    "**Option B**: Paris",
    "The correct choice is B",
    "the correct option is B.",
    "B because A is wrong",
    "B is correct.",
    "B is the correct answer.",
    "(B) is correct",
    "The answer is (B) Paris.",
    "I choose B.",
    "I would choose B",
    "I'd go with B",
    "My answer is B",
    "My final answer: B",
    "Final answer: B",
    "Final Answer:\n**B**",
    "The final answer is $\\boxed{B}$.",
    "\\boxed{\\text{B}}",
    "\\boxed{B) Paris}",
    "Therefore, B.",
    "So the answer: B",
    "Hence, option B is correct.",
    "Thus option (B) is the right one.",
    "It's B.",
    "It is B",
    "The answer's B",
    "answer = B",
    "Answer - B",
    "Answer – B",
    "Answer—B",
    "ANSWER IS B",
    "Correct answer: B",
    "Correct Answer: **B. Paris**",
    "Answer: B!",
    "Answer: 'B'",
    "Answer: “B”",
    "Answer: «B»",
    "Answer: 「B」",
    "Answer：B",
    "答案：**B**",
    "答案为B",
    "答案是：B",
    "答案选B",
    "选B",
    "选择B",
    "故选B",
    "故选：B。",
    "正确选项是B",
    "La respuesta correcta es B",
    "Respuesta correcta: B",
    "La bonne réponse est B",
    "La réponse est la B.",
    "Die richtige Antwort ist B",
    "Richtige Antwort: B",
    "Die Antwort lautet B",
    "Правильный ответ: B",
    "Правильный ответ — B",
    "Ответ B",
    "正解はBです",
    "正解：B",
    "정답은 B입니다",
    "정답: B번",
    "الجواب هو B",
    "الإجابة: (ب)",
    "उत्तर: (B)",
    "सही उत्तर B है",
    "Đáp án: B",
    "Đáp án đúng là B",
    "Jawaban yang benar adalah B",
    "คำตอบคือ B",
    "A resposta correta é B",
    "La risposta corretta è B",
    "Het juiste antwoord is B",
    "Poprawna odpowiedź: B",
    "Doğru cevap: B",
    "| Answer | B |",
    "Answer: B (Paris)",
    "Answer: B (not A)",
    "Answer: B, not A",
    "Answer: B rather than A",
    "Answer: **(B)** Paris",
    "Answer: B\n\nExplanation: A is wrong since ...",
    "Answer: B. A is wrong.",
    "Answer: B; A and C are wrong",
    "The answer is B, since C and D are out.",
    "<answer>(B)</answer>",
    "```\nB\n```",
    "B\n",
    "b)",
    "Answer: Ｂ",
    '{"answer": "B"}',
    "answer: b",
    "Answer:B",
    "Answer :B",
    "## Answer\nB",
    "**Answer**\nB",
    "### Final Answer\n\n**B**",
    "Answer (B)",
    "The best answer is B",
    "The most likely answer is B.",
    "Of these, B is the best answer.",
    "Option B is correct",
    "Choice (B) is right.",
    "The correct letter is B",
    "Answer: Option B: Paris",
    "Answer: B) Paris, the capital",
    "A is wrong, C is wrong. The answer is B.",
    "Let me think. A? no. Answer: B",
    "Answer: A\nWait, actually\nAnswer: B",
    "Answer: A? No. Answer: B",
    "The answer is A. Hmm, no: the answer is B.",
    "B ✅",
    "✅ B",
    "**B**: Paris",
    "<B>",
    "B/",
    "Answer: B / Paris",
    "Answer: B = Paris",
    "Answer: $\\mathbf{B}$",
    "Answer: \\textbf{B}",
    "Answer: $\\text{(B)}$",
    "Answer: \\(B\\)",
    "Let me see.\n\nB",
    "B\n\nBecause Paris is in France.",
    "Answer: A\nWait, on reflection the answer is B.",
    "Answer: B\n\nAlthough one may think the answer is A, it is not.",
    "The answer cannot be A. It must be B. Answer: B",
    "Wrong answer: A\nAnswer: B",
    "Answer (one letter): B",
    "The answer cannot be A, so the answer is B",
    "Reasoning…\n**B**",
    "I think the answer is B.",
    "Both A and C are wrong. B is correct.",
    "Answer: \\[B\\]",
]
"""How models write that B is their answer."""
NO_CHOICE = [
    "The answer cannot be A",
    "The wrong answer is A",
    "Incorrect answer: A",
    "Neither A nor B is correct",
    "A\nB\nC\nD",
    "A and B are correct",
    "Thus, B = 2T",
    "So A is a vowel",
    "A is better than B",
    "Is it B?",
    "B or not B",
    "What about A) or B)?",
    "The options are A) x B) y",
    "Answer choices: A, B",
    "Answer: A or C is right",
    "Answer: A B C D",
    "Answer: A B",
    "Answer: A (or B)",
    "Answer: A is wrong",
    "Answer: B is wrong",
    "Answer: B is incorrect",
    "B is wrong",
    "B is not correct",
    "The answer is not B",
    "The answer isn't B",
    "Answer: not B",
    "Answer: B or C",
    "Answer: either B or C",
    "Answer: B/C",
    "Answer: B & C",
    "Answer: B, C",
    "Answer: (B) and (C)",
    "Answer: B; C",
    "Answer: B|C",
    "Answer: B-C",
    "Answer: B+C",
    "Answer: BC",
    "Answer: ABCD",
    "Answer: B - D",
    "Answer: B to D",
    "Answer: B? or C",
    "Answer: Bordeaux",
    "Answer: both A and B",
    "Answer: A and/or B",
    "Answer: A, B",
    "A, B",
    "A B C D",
    "A or B",
    "A and B",
    "Answer: Neither A nor B",
    "Answer: None",
    "Answer: all of the above",
    "A) x\nB) y\nC) z\nD) w",
    "Answer: A mixture",
    "Answer: A few",
    "Answer: Dogs",
    "Answer: D-Day",
    "Answer: C-section",
    "Answer: B12",
    "Answer: B.C.",
    "Answer: A.D. 400",
    "Answer: C#",
    "Answer: D'oh",
    "Answer: B's",
    "I don't know",
    "The answer is a lie",
    "Answer: ?",
    "Bob",
    "b-side",
    "because",
    "Answer: B or maybe C",
    "Answer: Probably B or C",
    "Answer: A or B or C",
    "Answer: (A or B)",
    "Answer: [A, B]",
    "Answer: {A,B}",
    "Answer: $A, B$",
    "Answer: \\boxed{A,B}",
    "Answer: \\boxed{A \\text{ or } B}",
    "A. B. C. D.",
    "The answer is either A or B",
    "The answer is A or B",
    "The answer could be A or B",
    "The answer is A/B",
    "Answer: A\\B",
    "A, B, C, D, E",
    "Answer: A。B",
    "Answer: A、B",
    "答案：AB",
    "答案：A和B",
    "Answer: A und B",
    "Answer: A oder B",
    "Answer: B is false, C is true",
    "Answer: B is not right",
]
"""What chooses nothing, or several."""


def test_the_letter_is_read_from_what_models_write() -> None:
    assert {response: found for response in WRITTEN if (found := read(response)) != "B"} == {}


def test_no_letter_is_read_from_what_chooses_none() -> None:
    assert {response: found for response in NO_CHOICE if (found := read(response)) is not None} == {}
