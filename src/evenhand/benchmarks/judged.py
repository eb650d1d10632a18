"""Benchmarks that a judge scores: SimpleQA, HealthBench."""

import ast
from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.core.errors import InputError
from evenhand.scoring.registry import scorer
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"


def _topic(text: Any) -> str | None:
    # The dataset keeps its metadata as the text of a Python dict; only a literal is read from it.
    try:
        found = ast.literal_eval(text) if isinstance(text, str) else text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return found.get("topic") if isinstance(found, dict) else None


def _simpleqa_row(row: dict[str, Any]) -> dict[str, Any]:
    return {"question": row["problem"], "answer": row["answer"], "category": _topic(row.get("metadata"))}


@benchmark(
    name="simpleqa",
    dataset="hf://basicv8vc/SimpleQA?split=test",
    prompt="{question}",
    target_field="answer",
    prepare_row=_simpleqa_row,
    judge="simpleqa",
    description="short factual questions, graded CORRECT, INCORRECT or NOT_ATTEMPTED by a judge",
    sample=SAMPLES / "simpleqa.jsonl",
)
@scorer
def simpleqa(sample: ScorerInput) -> Any:
    """A judge compares the answer with the reference."""
    return {"correct": False, "needs_judge": True}


def _conversation(row: dict[str, Any]) -> dict[str, Any]:
    turns, rubrics = row["prompt"], row["rubrics"]
    if not isinstance(turns, list) or not turns:
        raise InputError("the prompt is not a list of messages")
    if not isinstance(rubrics, list) or not rubrics:
        raise InputError("the row has no rubrics")
    themes = [tag.partition(":")[2] for tag in row.get("example_tags") or () if str(tag).startswith("theme:")]
    shown = "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
    return {
        "messages": turns,
        "target": "",
        "metadata": {
            "question": shown,
            "rubrics": rubrics,
            "category": themes[0] if themes else None,
            "prompt_id": row.get("prompt_id"),
        },
    }


@benchmark(
    name="healthbench",
    dataset="hf://openai/healthbench?split=test",
    seed_fn=_conversation,
    judge="healthbench",
    description="health conversations, each criterion of a rubric decided by a judge",
    sample=SAMPLES / "healthbench.jsonl",
)
@scorer
def healthbench(sample: ScorerInput) -> Any:
    """A judge decides which criteria of the row's rubric the answer meets."""
    return {"correct": False, "needs_judge": True}
