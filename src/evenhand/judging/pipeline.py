"""Many samples through a judge: bounded, with progress, every one ending in a record."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from evenhand.core.outcome import Failed, Tally
from evenhand.core.sample import ScorerInput
from evenhand.judging.engine import STOPPING, Judging
from evenhand.judging.records import JudgeRecord

Key = TypeVar("Key")


class JudgeProgress(Struct, frozen=True, kw_only=True):
    """How far judging is."""

    done: int
    """Samples with a record."""
    total: int
    """Samples to judge."""
    scored: int
    """Records with a score."""
    unscored: int
    """Records without one, on purpose."""
    failed: int
    """Records without one, for a failure."""
    cost_usd: float
    """Price so far, where known."""


async def judge_samples(
    judge: Judging,
    samples: Iterable[tuple[Key, ScorerInput]],
    *,
    concurrency: int = 32,
    on_record: Callable[[Key, JudgeRecord, JudgeProgress], None] | None = None,
) -> dict[Key, JudgeRecord]:
    """A record for every sample, by its key, in the order given.

    `on_record` hears of each as soon as it is there: whoever stores them there can stop at any moment and resume
    with the samples that are missing. When the budget is used up or the key is refused, no further calls are
    started, and the samples that are left fail with that reason.
    """
    waiting = list(samples)
    queue = iter(waiting)
    records: dict[Key, JudgeRecord] = {}
    tally = Tally()
    spent = 0.0
    stop: Failed | None = None

    async def work() -> None:
        nonlocal stop, spent
        for key, sample in queue:
            if stop is not None:
                record = JudgeRecord(outcome=stop, identity=judge.identity, model="")
            else:
                record = await judge.judge(sample)
                outcome = record.outcome
                if isinstance(outcome, Failed) and outcome.error in STOPPING and stop is None:
                    stop = outcome
            records[key] = record
            tally.add(record.outcome)
            spent += record.cost_usd or 0.0
            if on_record is not None:
                on_record(key, record, _progress(tally, len(waiting), spent))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(waiting))):
            group.create_task(work())
    return {key: records[key] for key, _ in waiting}


def _progress(tally: Tally, total: int, spent: float) -> JudgeProgress:
    return JudgeProgress(
        done=tally.total,
        total=total,
        scored=tally.scored,
        unscored=tally.unscored,
        failed=tally.failed,
        cost_usd=spent,
    )
