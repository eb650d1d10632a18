"""Mathematics: MATH-500, GSM8K, MGSM."""

import re
import unicodedata
from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.pattern import numeric_match
from evenhand.scoring.registry import scorer
from evenhand.scoring.symbolic import math_equal
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"
WORD_PROBLEM = """Solve the following problem. Show your reasoning step by step, and end with a line of the form \
"Answer: N", where N is the result as a number.

{question}"""


@benchmark(
    name="math500",
    dataset="hf://HuggingFaceH4/MATH-500?split=test",
    prompt="""Solve the following problem. Show your reasoning, and end with a line of the form "Answer: R", where \
R is the result in its simplest form.

{problem}""",
    target_field="answer",
    category_field="subject",
    description="500 competition problems",
    requirements=["math-verify>=0.9", "sympy>=1.13"],
    sample=SAMPLES / "math500.jsonl",
)
@scorer(version="3")
def math500(sample: ScorerInput) -> Any:
    r"""The answer in the last `\boxed{}` or after the last "Answer:" equals the official one as mathematics."""
    return math_equal(sample)


def _gsm8k_row(row: dict[str, Any]) -> dict[str, Any]:
    # The dataset ends its worked answer with "#### 18"; rows with a plain `target` serve as well.
    if "target" in row:
        return row
    _, mark, result = str(row["answer"]).rpartition("####")
    if not mark:
        raise InputError("the answer has no '####' before its result")
    return {**row, "target": result.strip().replace(",", "")}


@benchmark(
    name="gsm8k",
    dataset="hf://openai/gsm8k?config=main&split=test",
    prompt=WORD_PROBLEM,
    prepare_row=_gsm8k_row,
    description="grade-school word problems",
    sample=SAMPLES / "gsm8k.jsonl",
)
@scorer(version="2")
def gsm8k(sample: ScorerInput) -> Any:
    """The number after the last "####" or "Answer:", else the last number."""
    return numeric_match(sample, which="answer")


MGSM_WORDS = {
    "bn": "উত্তর",
    "de": "Antwort",
    "en": "Answer",
    "es": "Respuesta",
    "fr": "Réponse",
    "ja": "答え",
    "ru": "Ответ",
    "sw": "Jibu",
    "te": "సమాధానం",
    "th": "คำตอบ",
    "zh": "答案",
}
MGSM_LANGUAGES = tuple(MGSM_WORDS)


def _mgsm_row(row: dict[str, Any]) -> dict[str, Any]:
    target = row["answer_number"]
    return {**row, "target": str(target), "category": row.get("config", row.get("language", "en"))}


@benchmark(
    name="mgsm",
    dataset=f"hf://juletxara/mgsm?config={','.join(MGSM_LANGUAGES)}&split=test",
    prompt=WORD_PROBLEM,
    prepare_row=_mgsm_row,
    description="250 of GSM8K's problems in eleven languages",
    sample=SAMPLES / "mgsm.jsonl",
)
@scorer(version="3")
def mgsm(sample: ScorerInput) -> Any:
    """The last number after the last "Answer", in the problem's language or in English; without the word no answer."""
    found = answer_digits(sample.response, str(sample.metadata.get("category") or "en"))
    return {"correct": found is not None and found == str(sample.target).replace(",", ""), "extracted": found}


_NUMBER = re.compile(r"\d+(?:\.\d*)?")


def answer_digits(response: str, language: str) -> str | None:
    """The last number after the last word for "Answer", of the language or, where it is absent, of the others.

    As in simple-evals it is digits with or without decimals: commas are left out, and so are zeros at the end of the
    decimals, signs and whatever else stands around it.
    """
    own = MGSM_WORDS.get(language, "Answer")
    # The prompt is English: its word comes next.
    for word in (own, "Answer", *MGSM_WORDS.values()):
        place = response.rfind(word)
        if place >= 0:
            numbers = _NUMBER.findall(response[place + len(word) :].replace(",", ""))
            return _plain(numbers[-1]) if numbers else None
    return None


def _plain(number: str) -> str:
    digits = "".join(char if char == "." else str(unicodedata.digit(char)) for char in number)
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
