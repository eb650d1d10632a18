"""Rows become problems: renamed, prepared, rendered, with examples and categories."""

import inspect
import random
from typing import Any

import msgspec
import pytest

from evenhand.benchmarks.definition import Benchmark, ProblemMaker, Turn, benchmark
from evenhand.benchmarks.requirements import check_requirements
from evenhand.core.errors import InputError, OptionError, Unavailable
from evenhand.scoring.registry import scorer
from evenhand.scoring.text import exact_match
from evenhand.scoring.types import ScorerInput


def made(**options: Any) -> Any:
    @benchmark(**{"name": "b", "dataset": list, "prompt": "{q}", "target_field": "a", **options})
    @scorer
    def check(sample: ScorerInput) -> Any:
        return exact_match(sample)

    return check


def test_a_benchmark_scores_like_its_scorer() -> None:
    assert made()(ScorerInput(response="Paris", target="paris")) == {"correct": True}


def test_fields_are_renamed_before_anything_else() -> None:
    problem = ProblemMaker(made(field_mapping={"query": "q", "gold": "a"})).make(
        {"query": "Why?", "gold": "so"}, 7
    )
    assert problem is not None
    assert (problem.index, problem.turns, problem.target) == (7, (Turn(role="user", content="Why?"),), "so")
    assert problem.metadata == {"q": "Why?"}


def test_messages_system_prompt_and_examples() -> None:
    spec = made(
        prompt=[{"role": "user", "content": "Q: {q}"}],
        system_prompt="Be brief.",
        few_shot=[{"q": "1+1", "a": "2"}],
        few_shot_answer="A: {a}",
    )
    problem = ProblemMaker(spec).make({"q": "2+2", "a": "4"}, 0)
    assert problem is not None
    assert [(turn.role, turn.content) for turn in problem.turns] == [
        ("system", "Be brief."),
        ("user", "Q: 1+1"),
        ("assistant", "A: 2"),
        ("user", "Q: 2+2"),
    ]


def test_prepare_row_takes_one_two_or_three_arguments_and_may_drop_a_row() -> None:
    row = {"q": "x", "a": "y"}
    one = ProblemMaker(made(prepare_row=lambda row: {**row, "q": "one"})).make(row, 3)
    two = ProblemMaker(made(prepare_row=lambda row, index: {**row, "q": str(index)})).make(row, 3)
    assert one is not None
    assert two is not None
    assert one.turns[0].content == "one"
    assert two.turns[0].content == "3"
    assert ProblemMaker(made(prepare_row=lambda row: None)).make(row, 3) is None

    def shuffled(row: dict[str, Any], index: int, rng: random.Random) -> dict[str, Any]:
        return {**row, "q": str(rng.random())}

    first, again, other = (ProblemMaker(made(prepare_row=shuffled)).make(row, n) for n in (3, 3, 4))
    assert first == again, "the same row gets the same random numbers in every run"
    assert first is not None
    assert other is not None
    assert first.turns != other.turns


def test_seed_fn_makes_the_problem_itself() -> None:
    def seed(row: dict[str, Any]) -> dict[str, Any]:
        return {
            "messages": [{"role": "user", "content": row["q"]}],
            "target": 5,
            "metadata": {"category": "c"},
        }

    problem = ProblemMaker(made(prompt="", seed_fn=seed)).make({"q": "hm"}, 0)
    assert problem is not None
    assert (problem.target, problem.metadata) == (5, {"category": "c"})


def test_the_category_column_can_have_any_name() -> None:
    problem = ProblemMaker(made(category_field="subject")).make({"q": "x", "a": "y", "subject": "art"}, 0)
    assert problem is not None
    assert problem.metadata["category"] == "art"


@pytest.mark.parametrize(
    ("options", "row", "words"),
    [
        ({}, {"question": "x", "a": "y"}, "needs the column 'q'"),
        ({}, {"q": "x", "answer": "y"}, "target_field needs the column 'a'"),
        (
            {"prepare_row": lambda row: row["nope"]},
            {"q": "x", "a": "y"},
            "prepare_row needs the column 'nope'",
        ),
        ({"prepare_row": lambda row: 1 / 0}, {"q": "x", "a": "y"}, "prepare_row raised ZeroDivisionError"),
        ({"seed_fn": lambda row: {}}, {"q": "x"}, "'prompt' or 'messages'"),
    ],
)
def test_bad_rows_say_what_is_wrong(options: dict[str, Any], row: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ProblemMaker(made(**options)).make(row, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": ""}, "needs a prompt"),
        ({"name": "../x"}, "cannot name a benchmark"),
        ({"prompt": "{"}, "lone"),
        ({"prompt": [{"role": "robot", "content": "x"}]}, "'robot' is not a role"),
    ],
)
def test_bad_definitions_are_found_when_the_file_is_read(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        made(**options)


def test_the_decorator_takes_exactly_the_fields_of_a_benchmark() -> None:
    """`home` is set by whoever reads the file, and `scorer` is what stands below the decorator."""
    fields = {field.name: field for field in msgspec.structs.fields(Benchmark)}
    taken = inspect.signature(benchmark).parameters
    assert set(taken) == set(fields) - {"scorer", "home"}
    for name in set(taken) - {"name", "dataset"}:
        empty = fields[name].default_factory is not msgspec.NODEFAULT
        assert taken[name].default == ({} if empty else fields[name].default)
    with pytest.raises(TypeError, match="promt"):
        made(promt="x")


def test_requirements_are_checked_with_the_command_that_helps() -> None:
    check_requirements(made(requirements=["msgspec>=0.1", "numpy"]))
    with pytest.raises(
        Unavailable, match=r"needs no-such-thing, msgspec>=99; install with: pip install 'no-such-thing' 'ms"
    ):
        check_requirements(made(requirements=["no-such-thing", "msgspec>=99"]))
    with pytest.raises(OptionError, match="is not a requirement"):
        check_requirements(made(requirements=["a b c"]))
