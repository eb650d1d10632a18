"""HumanEval: every canonical solution passes, every empty one fails, on every back end."""

import asyncio
from pathlib import Path

import pytest
from tests.sandbox import humaneval

from evenhand.sandbox.pool import Pool
from evenhand.scoring.code_execution import code_sandbox_async

EMPTY = ("    pass\n", "    return None\n")


async def grades(pool: Pool, shared_data: Path, bodies: tuple[str, ...]) -> dict[str, bool]:
    """Each problem's grade with the bodies in turn; none means the canonical solution."""
    rows = humaneval.problems(shared_data)
    assert len(rows) == 164
    completions = [
        bodies[n % len(bodies)] if bodies else row["canonical_solution"] for n, row in enumerate(rows)
    ]
    samples = [humaneval.sample(row, body, pool) for row, body in zip(rows, completions, strict=True)]
    # More time than the default: how quick the machine is must not decide.
    results = await asyncio.gather(*(code_sandbox_async(sample, timeout=100.0) for sample in samples))
    return {row["task_id"]: result["correct"] for row, result in zip(rows, results, strict=True)}


async def test_all_164_canonical_solutions_pass(sandbox: Pool, shared_data: Path) -> None:
    found = await grades(sandbox, shared_data, ())
    assert [name for name, correct in found.items() if not correct] == []


async def test_all_164_empty_solutions_fail(sandbox: Pool, shared_data: Path) -> None:
    found = await grades(sandbox, shared_data, EMPTY)
    assert [name for name, correct in found.items() if correct] == []


@pytest.mark.slow
@pytest.mark.parametrize("body", EMPTY)
async def test_all_164_fail_with_either_empty_body(sandbox: Pool, shared_data: Path, body: str) -> None:
    found = await grades(sandbox, shared_data, (body,))
    assert [name for name, correct in found.items() if correct] == []
