"""Reading and recall: DROP, TriviaQA."""

from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.registry import scorer
from evenhand.scoring.text import fuzzy_match
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"


def final_answer(response: str) -> str:
    """The text after the last "Answer:", or the whole response when there is none."""
    place = response.lower().rfind("answer:")
    return response if place < 0 else response[place + len("answer:") :].strip()


def _matched(sample: ScorerInput) -> Any:
    short = ScorerInput(
        response=final_answer(sample.response),
        target=sample.target,
        metadata=sample.metadata,
        config=sample.config,
    )
    return fuzzy_match(short)


def _drop_row(row: dict[str, Any]) -> dict[str, Any]:
    answers = row["answers_spans"]
    spans = list(dict.fromkeys(str(span) for span in answers["spans"]))
    if not spans:
        raise InputError("the row has no answer")
    types = list(answers.get("types") or ())
    return {**row, "target": spans[0], "correct_answers": spans, "category": types[0] if types else None}


@benchmark(
    name="drop",
    dataset="hf://ucinlp/drop?split=validation",
    prompt="""Read the passage and answer the question. End with a line of the form "Answer: A", where A is a \
number, a date or the shortest span that answers it.

Passage: {passage}

Question: {question}""",
    prepare_row=_drop_row,
    description="reading with counting and comparing",
    sample=SAMPLES / "drop.jsonl",
)
@scorer
def drop(sample: ScorerInput) -> Any:
    """The final answer contains an accepted one, or the other way round."""
    return _matched(sample)


def _trivia_row(row: dict[str, Any]) -> dict[str, Any]:
    answer = row["answer"]
    accepted = [answer["value"], *(answer.get("aliases") or ())]
    return {
        "question": row["question"],
        "target": answer["value"],
        "correct_answers": list(dict.fromkeys(accepted)),
        "question_id": row.get("question_id"),
    }


@benchmark(
    name="triviaqa",
    dataset="hf://mandarjoshi/trivia_qa?config=rc.nocontext&split=validation",
    prompt="""Answer the question in a few words. End with a line of the form "Answer: A".

{question}""",
    prepare_row=_trivia_row,
    description="trivia questions, closed book",
    sample=SAMPLES / "triviaqa.jsonl",
)
@scorer
def triviaqa(sample: ScorerInput) -> Any:
    """The final answer contains an accepted one, or the other way round."""
    return _matched(sample)
