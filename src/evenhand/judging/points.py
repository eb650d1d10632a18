"""Rubric points: every criterion is judged by itself, and the points of those met are summed (HealthBench).

Arora et al., "HealthBench", arXiv 2505.08775: a sample's score is the points of the criteria met over the points
that could be earned. Criteria with negative points describe harm, so a score can be below 0; means over samples
are clipped, single samples are not.
"""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.sample import ScorerInput, with_text
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.engine import Judge, suspicion
from evenhand.judging.identity import identity_of
from evenhand.judging.records import JudgeRecord, record_of
from evenhand.judging.rubrics import HEALTHBENCH_CRITERION
from evenhand.models.port import ChatModel

FIELD = "rubrics"


class Criterion(Struct, frozen=True, kw_only=True):
    """One thing that an answer should, or should not, do."""

    criterion: str
    """In words."""
    points: float
    """What meeting it earns; negative for harm."""
    tags: list[str] = []
    """The dataset's own labels."""


class RubricJudge:
    """Judges the criteria in a sample's `metadata["rubrics"]` one by one."""

    def __init__(
        self,
        model: ChatModel,
        config: JudgeScoringConfig = HEALTHBENCH_CRITERION,
        *,
        key: bytes | None = None,
    ) -> None:
        self._judge = Judge(model, config, key=key)
        self._identity = identity_of({"rubric_points": self._judge.identity})

    @property
    def identity(self) -> str:
        return self._identity

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        """Judge every criterion; one that cannot be judged fails the sample, for its points are unknown."""
        criteria = read_criteria(sample.metadata.get(FIELD))
        if isinstance(criteria, Unscored):
            return self._record(criteria, [])
        readable = with_text(sample)
        if readable is None:
            return self._record(Unscored(reason="no_response", message="the sample has no response"), [])
        sample = readable
        records = await asyncio.gather(
            *(
                self._judge.judge(
                    ScorerInput(response=sample.response, target=item.criterion, metadata=sample.metadata)
                )
                for item in criteria
            )
        )
        outcome = points_outcome(criteria, [record.outcome for record in records])
        return self._record(outcome, list(records), flags=suspicion(sample.response))

    def _record(
        self, outcome: Outcome, records: list[JudgeRecord], flags: tuple[str, ...] = ()
    ) -> JudgeRecord:
        return record_of(
            outcome,
            tuple(call for record in records for call in record.calls),
            identity=self.identity,
            model=self._judge.model.model,
            warnings=tuple(warning for record in records for warning in record.warnings),
            flags=flags,
        )


def read_criteria(value: Any) -> list[Criterion] | Unscored:
    """The criteria of a sample, or why it has none that count."""
    try:
        criteria = msgspec.convert(value, list[Criterion])
    except msgspec.ValidationError as error:
        return Unscored(reason="no_rubric", message=f"metadata['{FIELD}'] is not a list of criteria: {error}")
    if not any(item.points > 0 for item in criteria):
        return Unscored(reason="no_rubric", message="no criterion has points to earn")
    return criteria


def points_outcome(criteria: list[Criterion], outcomes: list[Outcome]) -> Outcome:
    """Points met over points possible."""
    met: list[bool] = []
    for item, outcome in zip(criteria, outcomes, strict=True):
        if not isinstance(outcome, Scored):
            reason = outcome.error if isinstance(outcome, Failed) else outcome.reason
            return Failed(
                error=reason,
                message=f"a criterion could not be judged ({outcome.message}): {item.criterion[:80]}",
                details=outcome.details,
            )
        met.append(outcome.value == 1.0)
    earned = sum(item.points for item, yes in zip(criteria, met, strict=True) if yes)
    possible = sum(item.points for item in criteria if item.points > 0)
    return Scored(
        value=earned / possible,
        extracted=earned,
        details={
            "earned_points": earned,
            "possible_points": possible,
            "criteria": [
                {"criterion": item.criterion, "points": item.points, "met": yes}
                for item, yes in zip(criteria, met, strict=True)
            ],
        },
    )
