"""`math_equal` on real competition answers: all official solutions are right, no changed digit is."""

from pathlib import Path

import pytest
from bench.grades import is_equal, perturbed, read_rows


def test_all_official_solutions_of_math500_are_right(shared_data: Path) -> None:
    rows = read_rows(shared_data / "math500_solutions.jsonl")
    assert len(rows) == 500
    assert [row["answer"] for row in rows if not is_equal(row["solution"], row["answer"])] == []


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_answer_with_a_changed_digit_is_accepted(shared_data: Path, count: int) -> None:
    rows = read_rows(shared_data / "math500_solutions.jsonl")
    pairs = list(perturbed(rows, count))
    assert len(pairs) == count
    assert [(answer, wrong) for answer, wrong in pairs if is_equal(rf"\boxed{{{wrong}}}", answer)] == []
