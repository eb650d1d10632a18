"""The twelve built-in benchmarks turn their shipped rows into problems that a good answer solves."""

from collections.abc import Callable

import pytest

from evenhand.benchmarks import benchmark_names, find_benchmarks, get_benchmark
from evenhand.benchmarks.definition import Problem, ProblemMaker
from evenhand.core.errors import InputError, UnknownName
from evenhand.core.outcome import Scored, Unscored
from evenhand.datasets.sources import open_source
from evenhand.scoring.apply import score_sample
from evenhand.scoring.types import ScorerInput

NAMES = [
    "drop",
    "gpqa",
    "gsm8k",
    "healthbench",
    "humaneval",
    "math500",
    "mgsm",
    "mmlu",
    "mmlu_pro",
    "simpleqa",
    "triviaqa",
    "xstest",
]


def problems(name: str) -> list[Problem]:
    spec = get_benchmark(name)
    assert spec.sample is not None
    maker = ProblemMaker(spec)
    made = [maker.make(row.values, number) for number, row in enumerate(open_source(spec.sample).rows())]
    return [problem for problem in made if problem is not None]


def test_these_twelve_are_there() -> None:
    assert benchmark_names() == NAMES
    for name in NAMES:
        spec = get_benchmark(name)
        assert spec.name == name
        assert str(spec.dataset).startswith("hf://")
        assert spec.description


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_row_becomes_a_problem(name: str) -> None:
    made = problems(name)
    assert 5 <= len(made) <= 10
    for problem in made:
        assert problem.turns[-1].role == "user"
        assert "{" not in problem.turns[-1].content or name in ("math500", "humaneval")


def answer(problem: Problem) -> str:
    return f"Let me think.\nAnswer: {problem.target}"


def stay_or_go(problem: Problem) -> str:
    return "Here is how." if problem.target == "answer" else "I\u2019m sorry, I can\u2019t help with that."


@pytest.mark.parametrize(
    ("name", "reply"),
    [(name, answer) for name in ("drop", "gpqa", "gsm8k", "math500", "mgsm", "mmlu", "mmlu_pro", "triviaqa")]
    + [("xstest", stay_or_go)],
)
def test_the_right_answer_is_right_and_none_is_wrong(name: str, reply: Callable[[Problem], str]) -> None:
    scorer = get_benchmark(name).scorer
    for problem in problems(name):

        def outcome(response: str, problem: Problem = problem) -> object:
            return score_sample(
                scorer, ScorerInput(response=response, target=problem.target, metadata=problem.metadata)
            )

        right, wrong = outcome(reply(problem)), outcome("xyzzy" if name != "xstest" else "")
        assert isinstance(right, Scored)
        assert right.value == 1.0, problem
        assert isinstance(wrong, Scored)
        if name != "xstest" or problem.target == "answer":
            assert wrong.value == 0.0


@pytest.mark.parametrize("name", ["simpleqa", "healthbench"])
def test_judged_benchmarks_ask_for_a_judge(name: str) -> None:
    spec = get_benchmark(name)
    for problem in problems(name):
        outcome = score_sample(spec.scorer, ScorerInput(response="x", target=problem.target))
        assert isinstance(outcome, Unscored)
        assert outcome.reason == "needs_judge"
        assert problem.metadata["question"]
    assert spec.judge == name


def test_gpqa_shuffles_the_choices_the_same_way_every_time() -> None:
    first, second = problems("gpqa"), problems("gpqa")
    assert first == second
    letters = [problem.target for problem in first]
    assert len(set(letters)) > 1, "the right answer is not always in one place"
    for problem in first:
        place = "ABCD".index(problem.target)
        assert problem.metadata["choices"][place] in problem.turns[0].content


def test_multiple_choice_accepts_the_shapes_that_datasets_use() -> None:
    maker = ProblemMaker(get_benchmark("mmlu"))
    for given in (1, "1", "b", "B"):
        problem = maker.make({"question": "?", "choices": ["x", "y"], "answer": given, "subject": "s"}, 0)
        assert problem is not None
        assert problem.target == "B"
    with pytest.raises(InputError, match="choice 5, but there are 2"):
        maker.make({"question": "?", "choices": ["x", "y"], "answer": 5, "subject": "s"}, 0)
    with pytest.raises(InputError, match="prepare_row needs the column 'choices'"):
        maker.make({"question": "?", "answer": 5}, 0)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown benchmark 'gsm8'; did you mean gsm8k"):
        find_benchmarks("gsm8")
