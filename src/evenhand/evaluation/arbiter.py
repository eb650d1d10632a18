"""The judge of a run, made from what the benchmark and the run ask for."""

import time
from typing import Any

import msgspec
from msgspec import to_builtins
from msgspec.structs import asdict

from evenhand.benchmarks.definition import Benchmark, Problem
from evenhand.core.errors import BudgetExceeded, ModelRejected, OptionError
from evenhand.core.outcome import Failed
from evenhand.evaluation.config import RunConfig
from evenhand.evaluation.records import Judged
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.engine import Judge, Judging
from evenhand.judging.points import RubricJudge
from evenhand.judging.rubrics import HEALTHBENCH_CRITERION, get_rubric
from evenhand.models.port import ChatModel
from evenhand.scoring.types import ScorerInput


class JudgeRejected(ModelRejected):
    """The judge's endpoint refuses every sample: its key, its model or its address is wrong."""


DEFAULT_RUBRIC = "default"
"""For a scorer that says `needs_judge` in a benchmark that names no rubric."""


def judge_config(benchmark: Benchmark, config: RunConfig) -> JudgeScoringConfig:
    """The rubric of the benchmark, or the default one, with the run's options over it."""
    chosen = DEFAULT_RUBRIC if benchmark.judge is None else benchmark.judge
    found = get_rubric(chosen) if isinstance(chosen, str) else chosen
    if not isinstance(found, JudgeScoringConfig):
        raise OptionError(f"the judge of '{benchmark.name}' must be a rubric's name or a JudgeScoringConfig")
    if not config.judge_options:
        return found
    merged = {**asdict(found), **config.judge_options}
    try:
        return msgspec.convert(to_builtins(merged), JudgeScoringConfig)
    except msgspec.ValidationError as error:
        raise OptionError(f"judge options: {error}") from None


def make_judge(benchmark: Benchmark, config: RunConfig, model: ChatModel, key: bytes) -> Judging:
    """The judge of a run, with the run's key for the fence around judged text."""
    rubric = judge_config(benchmark, config)
    kind = RubricJudge if rubric.name == HEALTHBENCH_CRITERION.name else Judge
    return kind(model, rubric, key=key)


class JudgeArbiter:
    """The judge, as the pipeline sees it: one sample in, one step of the journal out."""

    def __init__(self, judge: Judging) -> None:
        self._judge = judge

    async def judge(self, key: int, problem: Problem, sample: ScorerInput) -> Judged:
        start = time.perf_counter()
        asked = sample
        if not any(name in sample.metadata for name in ("question", "prompt", "problem", "input")):
            # The judge has to see what was asked, whatever the dataset calls it.
            shown = "\n\n".join(turn.text for turn in problem.turns if turn.role == "user")
            asked = ScorerInput(
                response=sample.response,
                target=sample.target,
                metadata={**sample.metadata, "question": shown},
            )
        record = await self._judge.judge(asked)
        outcome = record.outcome
        if isinstance(outcome, Failed) and outcome.error == "budget_exceeded":
            raise BudgetExceeded(outcome.message, kind="budget_exceeded")
        if isinstance(outcome, Failed) and outcome.error == "judge_rejected":
            raise JudgeRejected(
                f"the judge refuses: {outcome.message}", kind=str(outcome.details.get("kind", "auth"))
            )
        info: dict[str, Any] = {"model": record.model, "identity": record.identity}
        for name in ("prompt_hash", "raw_reply", "warnings", "flags"):
            value = getattr(record, name)
            if value:
                info[name] = to_builtins(value)
        return Judged(
            key=key,
            outcome=outcome,
            info=info,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            cost_usd=record.cost_usd,
            seconds=time.perf_counter() - start,
        )
