"""LLM-as-judge: flag a sample for it, or score one with it.

The pipeline: samples whose scorer returned `needs_judge(sample)` are collected, put to a judge model by
`judge_samples`, and their rewards updated from the records.
"""

from typing import Any

from evenhand.core.errors import JudgementError, ScoringError
from evenhand.core.outcome import Failed, Scored
from evenhand.judging.config import Choice, JudgeScoringConfig
from evenhand.judging.engine import Judge
from evenhand.judging.judgements import Judgement, parse_judge_response
from evenhand.judging.prompts import build_judge_prompt
from evenhand.models.port import ChatModel
from evenhand.scoring.definition import scorer
from evenhand.scoring.types import ScorerInput

__all__ = [
    "Choice",
    "Judge",
    "JudgeScoringConfig",
    "Judgement",
    "build_judge_prompt",
    "judge_score",
    "needs_judge",
    "parse_judge_response",
]


@scorer
def needs_judge(sample: ScorerInput) -> dict[str, Any]:
    """Flag a sample for the judge; its reward comes later."""
    return {"correct": False, "needs_judge": True}


async def judge_score(
    sample: ScorerInput, *, model: ChatModel, config: JudgeScoringConfig | None = None
) -> dict[str, Any]:
    """Score one sample with a judge model, as a scorer does: `correct`, `reward`, `extracted` and details.

    Raises `JudgementError` when no judgement can be read and `ScoringError` when no reply can be had; neither is 0.
    """
    record = await Judge(model, config).judge(sample)
    outcome = record.outcome
    if isinstance(outcome, Scored):
        return {
            "correct": bool(outcome.details.get("correct")),
            "reward": outcome.value,
            "extracted": outcome.extracted,
            **{name: value for name, value in outcome.details.items() if name != "correct"},
            "judge": record.identity,
            "judge_model": record.model,
            "raw_reply": record.raw_reply,
        }
    if isinstance(outcome, Failed):
        if "raw_reply" in outcome.details:
            raise JudgementError(outcome.message, reply=outcome.details["raw_reply"], kind=outcome.error)
        raise ScoringError(outcome.message, kind=outcome.error)
    raise ScoringError(outcome.message, kind=outcome.reason)
