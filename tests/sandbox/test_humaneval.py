"""HumanEval: every canonical solution passes, every empty one fails, on every back end."""

import asyncio
from pathlib import Path

import pytest
from tests.sandbox import humaneval

from evenhand.sandbox.pool import Pool
from evenhand.scoring.code_execution import code_sandbox_async


async def grades(pool: Pool, shared_data: Path, completion: str | None) -> dict[str, bool]:
    rows = humaneval.problems(shared_data)
    assert len(rows) == 164
    samples = [humaneval.sample(row, completion or row["canonical_solution"], pool) for row in rows]
    results = await asyncio.gather(*(code_sandbox_async(sample) for sample in samples))
    return {row["task_id"]: result["correct"] for row, result in zip(rows, results, strict=True)}


async def test_all_164_canonical_solutions_pass(sandbox: Pool, shared_data: Path) -> None:
    found = await grades(sandbox, shared_data, None)
    assert [name for name, correct in found.items() if not correct] == []


@pytest.mark.parametrize("body", ["    pass\n", "    return None\n"])
async def test_all_164_empty_solutions_fail(sandbox: Pool, shared_data: Path, body: str) -> None:
    found = await grades(sandbox, shared_data, body)
    assert [name for name, correct in found.items() if correct] == []
