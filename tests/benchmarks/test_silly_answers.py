"""Answers that know nothing get no better than chance, in every built-in benchmark and every scorer that reads one."""

import pytest
from bench.grades import reading_scorers
from bench.silly_answers import (
    CONTAINMENT,
    LISTED,
    NOT_READING,
    ROWS,
    generated_rows,
    grade_benchmark,
    grade_scorer,
)

from evenhand.benchmarks import benchmark_names, get_benchmark
from evenhand.scoring.registry import BUILT_IN

JUDGED = {"healthbench", "simpleqa"}
# Where part of an answer earns part of the reward, a list of everything earns a little.
PARTIAL = 0.02


@pytest.mark.parametrize("name", benchmark_names())
def test_no_benchmark_rewards_silly_answers(name: str) -> None:
    for silly, graded in grade_benchmark(name).items():
        if name in JUDGED:
            assert graded.mean is None, f"{silly}: scored without a judge"
        else:
            assert graded.mean is not None
            assert graded.mean <= graded.chance + PARTIAL, silly


@pytest.mark.parametrize("name", reading_scorers())
def test_no_scorer_rewards_silly_answers(name: str) -> None:
    for silly, graded in grade_scorer(name).items():
        assert graded.mean is not None
        if name in CONTAINMENT and silly == LISTED:
            assert graded.mean == 1.0, (
                "containment cannot refuse a list of everything: docs/scorers.md says so"
            )
        else:
            assert graded.mean <= graded.chance + PARTIAL, silly


def test_the_rows_have_no_frequent_answer() -> None:
    """A constant answer is right for few of them, or for one of so many choices."""
    for name in set(benchmark_names()) - JUDGED - {"xstest", "humaneval"}:
        assert len(generated_rows(name)) == ROWS
        assert grade_benchmark(name)["e"].chance < 0.35, name


def test_names_are_of_scorers_that_exist() -> None:
    """A scorer that is renamed does not leave the suite unnoticed; those registered later join by themselves."""
    assert set(BUILT_IN) >= CONTAINMENT | NOT_READING


def test_no_benchmark_rests_on_containment_alone() -> None:
    for name in benchmark_names():
        used = get_benchmark(name).scorer.__wrapped__.__code__.co_names
        assert not CONTAINMENT.intersection(used), name
