"""Multiple choice: MMLU, MMLU-Pro, GPQA."""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.pattern import multichoice_regex
from evenhand.scoring.registry import scorer
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"
LETTERS = "ABCDEFGHIJ"
PROMPT = """Answer the following multiple-choice question. Think step by step if it helps, then end with a line \
of the form "Answer: X", where X is the letter of the one best choice.

{question}

{listed}"""


def list_choices(choices: Sequence[Any]) -> str:
    """The choices, one a line, each with its letter."""
    if not 2 <= len(choices) <= len(LETTERS):
        raise InputError(f"a row has {len(choices)} choices; 2 to {len(LETTERS)} are possible")
    return "\n".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))


def _letter(answer: Any, choices: Sequence[Any]) -> str:
    # Datasets give the index, the index as text, or the letter.
    text = str(answer).strip()
    if text.isdigit():
        if int(text) >= len(choices):
            raise InputError(f"the answer is choice {text}, but there are {len(choices)} choices")
        return LETTERS[int(text)]
    return text.upper()


def _mmlu_row(row: dict[str, Any]) -> dict[str, Any]:
    choices = row["choices"]
    return {**row, "listed": list_choices(choices), "answer": _letter(row["answer"], choices)}


@benchmark(
    name="mmlu",
    dataset="hf://cais/mmlu?config=all&split=test",
    prompt=PROMPT,
    target_field="answer",
    prepare_row=_mmlu_row,
    category_field="subject",
    description="57 subjects, four choices",
    sample=SAMPLES / "mmlu.jsonl",
)
@scorer(version="2")
def mmlu(sample: ScorerInput) -> Any:
    """The letter of the last "Answer: X"."""
    return multichoice_regex(sample)


# The authors' first pattern, but for whole letters only.
_ANSWER_IS = re.compile(r"answer is \(?([A-J])\)?(?![\w'’+#])(?!(?<=[AI])\s+[a-z])")
# Their second one, likewise.
_ANSWER = re.compile(r"[aA]nswer:\s*([A-J])(?![\w'’+#])(?!(?<=[AI])\s+[a-z])")
# Their last resort, without the words A and I.
_STANDS_ALONE = re.compile(r"(?<![\w'’.-])([A-J])(?![\w'’+#]|-\w|\.\w)(?!(?<=[AI])\s+[a-z])")


def _mmlu_pro_row(row: dict[str, Any]) -> dict[str, Any]:
    choices = row["options"]
    return {**row, "listed": list_choices(choices), "answer": _letter(row["answer"], choices)}


@benchmark(
    name="mmlu_pro",
    dataset="hf://TIGER-Lab/MMLU-Pro?split=test",
    prompt=PROMPT,
    target_field="answer",
    prepare_row=_mmlu_pro_row,
    description="14 subjects, up to ten choices",
    sample=SAMPLES / "mmlu_pro.jsonl",
)
@scorer(version="3")
def mmlu_pro(sample: ScorerInput) -> Any:
    """The letter, A to J, of the first "answer is (X)", else of "Answer: X", else the last one that stands alone."""
    text = sample.response
    said = _ANSWER_IS.search(text)
    found = said.group(1) if said else _first_answer(text)
    if found is None:
        found = multichoice_regex(sample, letters=LETTERS)["extracted"]
    if found is None:
        alone = _STANDS_ALONE.findall(text)
        found = alone[-1] if alone else None
    return {"correct": found is not None and found == str(sample.target), "extracted": found}


def _first_answer(text: str) -> str | None:
    """The letter of the first line with "Answer: X"; of several on that line the last, as in the authors' pattern."""
    found = None
    for match in _ANSWER.finditer(text):
        if found is not None and "\n" in text[found.start() : match.start()]:
            break
        found = match
    return None if found is None else found.group(1)


def _gpqa_row(row: dict[str, Any], index: int, rng: random.Random) -> dict[str, Any]:
    # The correct answer always comes first in the dataset: the order is shuffled, the same way in every run.
    choices = [row["Correct Answer"], *(row[f"Incorrect Answer {n}"] for n in (1, 2, 3))]
    choices = [str(choice).strip() for choice in choices]
    correct = choices[0]
    rng.shuffle(choices)
    return {
        "question": str(row["Question"]).strip(),
        "listed": list_choices(choices),
        "answer": LETTERS[choices.index(correct)],
        "choices": choices,
        "category": row.get("High-level domain"),
        "subdomain": row.get("Subdomain"),
        "id": row.get("Record ID"),
    }


@benchmark(
    name="gpqa",
    dataset="hf://Idavidrein/gpqa?config=gpqa_diamond&split=train",
    prompt=PROMPT,
    target_field="answer",
    prepare_row=_gpqa_row,
    description="graduate-level science, four choices in a seeded order (Diamond)",
    sample=SAMPLES / "gpqa.jsonl",
)
@scorer(version="2")
def gpqa(sample: ScorerInput) -> Any:
    """The letter of the last "Answer: X"."""
    return multichoice_regex(sample)
