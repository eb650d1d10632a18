"""Looking at a benchmark before it costs anything: rows, prompts, and what the scorer says to two responses."""

from itertools import islice
from typing import Any

from msgspec import Struct

from evenhand.benchmarks.definition import Benchmark, Problem, ProblemMaker
from evenhand.benchmarks.requirements import check_requirements
from evenhand.benchmarks.template import as_text
from evenhand.core.errors import InputError
from evenhand.core.outcome import Outcome, Scored
from evenhand.datasets.sources import Source, open_source
from evenhand.scoring.apply import score_sample_async
from evenhand.scoring.types import ScorerInput


class Check(Struct, frozen=True, kw_only=True):
    """One row made into a problem, and two responses scored."""

    problem: Problem
    """What would be asked."""
    right: Outcome
    """The outcome when the model answers with the target itself."""
    empty: Outcome
    """The outcome when the model says nothing."""


async def check_benchmark(
    benchmark: Benchmark, samples: int, *, dataset: str | None = None, sample: bool = False
) -> tuple[list[Check], int]:
    """The first rows in detail, and how many rows there are in all, every one of them made into a problem."""
    check_requirements(benchmark)
    source = _source(benchmark, dataset, sample)
    maker = ProblemMaker(benchmark)
    problems: list[Problem] = []
    count = 0
    for number, row in enumerate(source.rows()):
        try:
            problem = maker.make(row.values, number)
        except InputError as error:
            raise InputError(error.reason, path=source.label, line=row.line) from error
        if problem is not None:
            count += 1
            if len(problems) < samples:
                problems.append(problem)
    if not count:
        raise InputError("the dataset has no rows to ask", path=source.label)
    checks = [await _check(benchmark, problem) for problem in islice(problems, samples)]
    return checks, count


def _source(benchmark: Benchmark, dataset: str | None, sample: bool) -> Source:
    if sample and benchmark.sample is not None:
        return open_source(benchmark.sample)
    if dataset is not None:
        return open_source(dataset)
    return open_source(benchmark.dataset, home=benchmark.home)


async def _check(benchmark: Benchmark, problem: Problem) -> Check:
    async def outcome(response: Any) -> Outcome:
        return await score_sample_async(
            benchmark.scorer,
            ScorerInput(
                response=response,
                target=problem.target,
                metadata=problem.metadata,
                config=dict(benchmark.extra),
            ),
        )

    target = as_text(problem.target)
    right = await outcome(target)
    if isinstance(right, Scored) and right.value == 0.0:
        # Many scorers look for a last line of this form.
        right = await outcome(f"Answer: {target}")
    return Check(problem=problem, right=right, empty=await outcome(""))
