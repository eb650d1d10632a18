"""Reading and recall: DROP, TriviaQA."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.benchmarks import spans, trivia
from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.pattern import stated_answer
from evenhand.scoring.registry import scorer
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"


def _drop_row(row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: row.get(key) for key in ("section_id", "query_id", "passage", "question")}
    answers, kinds = _drop_answers(row)
    if not answers:
        raise InputError("the row has no answer")
    return {**kept, "target": "; ".join(answers[0]), "answers": answers, "category": kinds[0]}


def _drop_answers(row: Mapping[str, Any]) -> tuple[list[list[str]], list[str]]:
    """Every annotator's answer as its spans, and what kind it is."""
    if "answers_spans" in row:
        # This copy lists the spans of all annotators in one row. What one of them wrote cannot be told any more:
        # numbers and dates are alternatives, all different spans together are one answer.
        listed = row["answers_spans"]
        pairs = list(dict.fromkeys(zip(map(str, listed["spans"]), listed.get("types") or (), strict=False)))
        alone = [([span], kind) for span, kind in pairs if kind != "span"]
        together = [span for span, kind in pairs if kind == "span"]
        found = [*alone, (together, "spans" if len(together) > 1 else "span")] if together else alone
    else:
        validated = row.get("validated_answers") or ()
        if isinstance(validated, Mapping):  # columns: a list for each field
            fields = list(validated)
            validated = [
                dict(zip(fields, values, strict=True)) for values in zip(*validated.values(), strict=True)
            ]
        found = [answer for given in (row["answer"], *validated) if (answer := _drop_answer(given))]
    unique = list(dict.fromkeys((tuple(answer), kind) for answer, kind in found))
    return [list(answer) for answer, _ in unique], [kind for _, kind in unique]


def _drop_answer(given: Mapping[str, Any]) -> tuple[list[str], str] | None:
    if given.get("number"):
        return [str(given["number"])], "number"
    listed = [str(span) for span in given.get("spans") or () if str(span).strip()]
    if listed:
        return listed, "spans" if len(listed) > 1 else "span"
    date = given.get("date") or {}
    text = " ".join(str(date[part]) for part in ("day", "month", "year") if date.get(part))
    return ([text], "date") if text else None


@benchmark(
    name="drop",
    dataset="hf://EleutherAI/drop?split=validation",
    prompt="""Read the passage and answer the question. End with a line of the form "Answer: A", where A is a \
number, a date or the shortest span that answers it; separate several spans with semicolons.

Passage: {passage}

Question: {question}""",
    prepare_row=_drop_row,
    description="reading with counting and comparing; F1 over spans and numbers",
    version="2",
    sample=SAMPLES / "drop.jsonl",
)
@scorer(version="2")
def drop(sample: ScorerInput) -> Any:
    """DROP's F1 of the final answer with the nearest annotator's, and its exact match."""
    answer = _final_answer(sample.response)
    golds = sample.metadata.get("answers") or [[str(sample.target)]]
    grades = [spans.grade(reading, golds) for reading in spans.readings(answer)]
    return {
        "reward": max(f1 for _, f1 in grades),
        "exact_match": max(em for em, _ in grades),
        "extracted": answer,
    }


def _trivia_row(row: dict[str, Any]) -> dict[str, Any]:
    answer = row["answer"]
    accepted = [answer["value"], *(answer.get("aliases") or ()), *(answer.get("normalized_aliases") or ())]
    return {
        "question": row["question"],
        "target": answer["value"],
        "correct_answers": list(dict.fromkeys(accepted)),
        "question_id": row.get("question_id"),
    }


@benchmark(
    name="triviaqa",
    dataset="hf://mandarjoshi/trivia_qa?config=rc.nocontext&split=validation",
    prompt="""Answer the question in a few words. End with a line of the form "Answer: A", where A is nothing but the \
answer.

{question}""",
    prepare_row=_trivia_row,
    description="trivia questions, closed book; exact match with any alias",
    version="2",
    sample=SAMPLES / "triviaqa.jsonl",
)
@scorer(version="3")
def triviaqa(sample: ScorerInput) -> Any:
    """The final answer is one of the aliases after TriviaQA's normalisation."""
    answer = _final_answer(sample.response)
    aliases = sample.metadata.get("correct_answers") or [str(sample.target)]
    exact, f1 = trivia.grade(answer, map(str, aliases))
    return {"correct": exact, "f1": f1, "extracted": answer}


def _final_answer(response: str) -> str:
    """The line after the last "Answer:", or the whole response when there is none."""
    stated = stated_answer(response)
    return response.strip() if stated is None else stated
