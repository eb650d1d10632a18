"""HumanEval's 164 problems, as samples."""

import gzip
import json
from pathlib import Path
from typing import Any

from evenhand.sandbox.port import Sandbox
from evenhand.scoring.types import ScorerInput


def problems(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sample(problem: dict[str, Any], completion: str, sandbox: Sandbox) -> ScorerInput:
    return ScorerInput(
        response=completion,
        target=problem["entry_point"],
        metadata={
            "_prompt": problem["prompt"],
            "_test": problem["test"],
            "entry_point": problem["entry_point"],
        },
        sandbox=sandbox,
    )
