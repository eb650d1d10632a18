"""Panels: several judges on one sample, and a cheap judge that hands on what it is unsure of."""

import asyncio
from collections.abc import Sequence

import msgspec

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Unscored
from evenhand.core.sample import ScorerInput
from evenhand.judging.combine import combine_outcomes
from evenhand.judging.config import Combine
from evenhand.judging.engine import STOPPING, Judging
from evenhand.judging.identity import identity_of
from evenhand.judging.records import JudgeRecord, record_of


class Ensemble:
    """Several judges asked at once; their judgements are combined by mean, median or majority."""

    def __init__(
        self, judges: Sequence[Judging], *, combine: Combine = "mean", threshold: float = 0.6
    ) -> None:
        if len(judges) < 2:
            raise OptionError("an ensemble needs at least two judges")
        self._judges = tuple(judges)
        self._combine: Combine = combine
        self._threshold = threshold
        members = sorted(judge.identity for judge in judges)
        self._identity = identity_of({"ensemble": members, "combine": combine, "threshold": threshold})

    @property
    def identity(self) -> str:
        return self._identity

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        """Ask every judge; the record holds all their calls."""
        records = await asyncio.gather(*(judge.judge(sample) for judge in self._judges))
        outcomes = [record.outcome for record in records]
        outcome: Outcome | None = next((o for o in outcomes if _stops(o)), None)
        if outcome is None:
            outcome = combine_outcomes(outcomes, self._combine, threshold=self._threshold)
        return joined(outcome, records, identity=self.identity)


class Escalation:
    """A cheap judge first; the expensive one where the cheap one is unsure, failed, or may have been steered."""

    def __init__(
        self, first: Judging, second: Judging, *, unsure: tuple[float, float] = (0.25, 0.75)
    ) -> None:
        low, high = unsure
        if not low <= high:
            raise OptionError("the band of unsure rewards must go from low to high")
        self._first, self._second = first, second
        self._unsure = unsure
        self._identity = identity_of({"escalation": [first.identity, second.identity], "unsure": unsure})

    @property
    def identity(self) -> str:
        return self._identity

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        """Ask the first judge, and the second if need be; the second's word counts."""
        record = await self._first.judge(sample)
        if _stops(record.outcome) or not self._is_unsure(record):
            return joined(_marked(record.outcome, escalated=False), [record], identity=self.identity)
        second = await self._second.judge(sample)
        return joined(_marked(second.outcome, escalated=True), [record, second], identity=self.identity)

    def _is_unsure(self, record: JudgeRecord) -> bool:
        outcome = record.outcome
        if isinstance(outcome, Unscored | Failed) or record.flags:
            return True
        low, high = self._unsure
        return not isinstance(outcome.value, str) and low <= outcome.value <= high


def joined(outcome: Outcome, records: Sequence[JudgeRecord], *, identity: str) -> JudgeRecord:
    """One record for the work of several judges."""
    return record_of(
        outcome,
        tuple(call for record in records for call in record.calls),
        identity=identity,
        model="+".join(dict.fromkeys(record.model for record in records)),
        warnings=tuple(warning for record in records for warning in record.warnings),
        flags=tuple(flag for record in records for flag in record.flags),
    )


def _marked(outcome: Outcome, *, escalated: bool) -> Outcome:
    return msgspec.structs.replace(outcome, details={**outcome.details, "escalated": escalated})


def _stops(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.error in STOPPING
