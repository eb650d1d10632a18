"""Programs: HumanEval."""

from pathlib import Path
from typing import Any

from evenhand.benchmarks.definition import benchmark
from evenhand.scoring.code_execution import code_sandbox_async
from evenhand.scoring.registry import scorer
from evenhand.scoring.types import ScorerInput

SAMPLES = Path(__file__).parent / "samples"


def _humaneval_row(row: dict[str, Any]) -> dict[str, Any]:
    # The names with an underscore are what the scorer joins the completion with.
    return {
        "prompt": row["prompt"],
        "_prompt": row["prompt"],
        "_test": row["test"],
        "entry_point": row["entry_point"],
        "task_id": row.get("task_id"),
    }


@benchmark(
    name="humaneval",
    dataset="hf://openai/openai_humaneval?split=test",
    prompt="""Complete the following Python function. Answer with the whole function in one fenced code block and \
nothing else.

```python
{prompt}```""",
    target_field="entry_point",
    prepare_row=_humaneval_row,
    uses_sandbox=True,
    description="164 Python functions with hidden tests, run in the sandbox",
    sample=SAMPLES / "humaneval.jsonl",
)
@scorer
async def humaneval(sample: ScorerInput) -> Any:
    """The completed function passes its tests in the sandbox."""
    return await code_sandbox_async(sample)
