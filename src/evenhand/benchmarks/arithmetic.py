"""Mathematics: MATH-500, GSM8K, MGSM."""

from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.pattern import answer_line, numeric_match
from evenhand.scoring.registry import scorer
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
    sample=SAMPLES / "math500.jsonl",
)
@scorer
def math500(sample: ScorerInput) -> Any:
    r"""The text after the last "Answer:" (or in the last `\boxed{}`), as mathematics."""
    if "answer:" not in sample.response.lower() and "\\boxed" in sample.response:
        boxed = sample.response[sample.response.rindex("\\boxed") :]
        sample = ScorerInput(
            response=f"Answer: {boxed}", target=sample.target, metadata=sample.metadata, config=sample.config
        )
    return answer_line(sample)


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
@scorer
def gsm8k(sample: ScorerInput) -> Any:
    """The last number in the response."""
    return numeric_match(sample)


MGSM_LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")


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
@scorer
def mgsm(sample: ScorerInput) -> Any:
    """The last number in the response."""
    return numeric_match(sample)
