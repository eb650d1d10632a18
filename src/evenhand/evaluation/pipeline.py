"""Generate, score, judge: all three at once, each with its own limit, every finished step written down first."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evenhand.benchmarks.definition import Problem
from evenhand.core.errors import BudgetExceeded, EvenhandError, ModelRejected, OptionError
from evenhand.evaluation.generation import Generator
from evenhand.evaluation.journal import StorageFailed
from evenhand.evaluation.ledger import DONE, GENERATED, PENDING, UNJUDGED, Ledger
from evenhand.evaluation.planning import ProblemFile
from evenhand.evaluation.records import Judged
from evenhand.evaluation.scoring_lane import ScoringLane
from evenhand.scoring.types import ScorerInput

SYNC_SECONDS = 0.25
"""How often finished work is made safe from a power failure, and progress is shown."""
LOOK_SECONDS = 0.02
"""How often it is looked whether a run is decided."""
GRACE_SECONDS = 8.0
"""How long calls in flight may take to end once a run is asked to stop."""
BACKLOG = 4
"""Answers that may wait for their score, as a multiple of the concurrency."""


class Arbiter(Protocol):
    """The judge as the pipeline sees it."""

    async def judge(self, key: int, problem: Problem, sample: ScorerInput) -> Judged:
        """The judgement on one sample; a judge that could not be reached is an outcome too."""
        ...


class Watcher(Protocol):
    """Progress listener."""

    def tick(self, ledger: Ledger) -> None:
        """Called after each sync: what the ledger says is durable is on the disk."""
        ...


class Decider(Protocol):
    """Says when enough has been asked."""

    def may_ask(self, key: int) -> bool:
        """Whether a sample may be asked now: nobody runs far ahead of the next look."""
        ...

    async def decided(self) -> EvenhandError | None:
        """What to end the run with, when it is decided."""
        ...


class Stopped(EvenhandError):
    """The run ended before its last sample; `reason` says why."""

    def __init__(self, message: str, *, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class Decided(EvenhandError):
    """The verdict is reached: nothing more has to be asked."""

    def __init__(self) -> None:
        super().__init__("decided")


class Concurrency(Struct, frozen=True, kw_only=True):
    """How much happens at once."""

    calls: int
    """Calls of the model in flight."""
    judgements: int
    """Samples with the judge."""


class Pipeline:
    """Takes every pending sample of a ledger to its end."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        problems: ProblemFile,
        repeats: int,
        generator: Generator,
        lane: ScoringLane,
        arbiter: Arbiter | None,
        concurrency: Concurrency,
        watcher: Watcher,
        order: Sequence[int] | None = None,
        decider: Decider | None = None,
    ) -> None:
        """`order`: the places of the problems in the order in which they are to be asked; as in the plan by default.
        `decider` may end the run early."""
        self._ledger = ledger
        self._problems = problems
        self._repeats = repeats
        self._generator = generator
        self._lane = lane
        self._arbiter = arbiter
        self._concurrency = concurrency
        self._watcher = watcher
        self._order = order
        self._decider = decider
        self._judging = asyncio.Semaphore(concurrency.judgements)
        self._backlog = asyncio.Semaphore(BACKLOG * concurrency.calls)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: EvenhandError | None = None
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()

    def stop(self, error: EvenhandError) -> None:
        """Start nothing more; `run` raises `error` once what is in flight has ended. A second call does not wait."""
        if self._stop is not None:
            for task in self._tasks:
                task.cancel()
            return
        self._stop = error
        self._wake.set()

    async def run(self) -> None:
        """Work until nothing is pending. Raises what stopped it; finished steps are kept in any case."""
        pending = self._pending()
        for _ in range(self._concurrency.calls):
            self._spawn(self._work(pending))
        beside = [asyncio.create_task(self._keep())]
        if self._decider is not None:
            beside.append(asyncio.create_task(self._look(self._decider)))
        try:
            await self._drain()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        self._ledger.journal.sync()
        self._ledger.durable = self._ledger.done()
        self._watcher.tick(self._ledger)
        if self._failure is not None:
            raise self._failure
        if self._stop is not None:
            raise self._stop

    async def _drain(self) -> None:
        await self._wake.wait()
        if self._failure is not None or not self._tasks:
            return
        if not isinstance(self._stop, ModelRejected | StorageFailed):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), GRACE_SECONDS)

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()
            self._wake.set()
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        if isinstance(error, EvenhandError):
            if self._stop is None:
                self.stop(error)
        elif self._failure is None:
            self._failure = error
            self._wake.set()

    def _pending(self) -> Iterator[int]:
        # The ledger changes while this goes over it, but never a key that lies ahead.
        places = range(len(self._problems)) if self._order is None else self._order
        for place in places:
            for key in range(place * self._repeats, (place + 1) * self._repeats):
                if self._ledger.state[key] not in DONE:
                    yield key

    async def _work(self, pending: Iterator[int]) -> None:
        for key in pending:
            while self._too_early(key):  # noqa: ASYNC110  a look, a stop and a failure would all have to set it
                await asyncio.sleep(LOOK_SECONDS / 4)
            if self._is_stopping():
                return
            problem = self._problems[key // self._repeats]
            if self._ledger.state[key] == PENDING:
                step = await self._generator.generate(key, problem, key % self._repeats)
                self._ledger.add(step)
                if step.text is None:
                    continue
            else:
                step = self._ledger.generation(key)
            usage = {"latency_seconds": step.latency_seconds, "cost_usd": step.cost_usd}
            sample = self._lane.sample(problem, "" if step.text is None else step.response, usage)
            if self._ledger.state[key] == GENERATED and self._lane.quick:
                self._ledger.add(self._lane.measure(key, sample))
            if self._ledger.state[key] in (GENERATED, UNJUDGED):
                await self._backlog.acquire()
                self._spawn(self._conclude(key, problem, sample))

    async def _conclude(self, key: int, problem: Problem, sample: ScorerInput) -> None:
        try:
            if self._ledger.state[key] == GENERATED:
                measured = await self._lane.measure_apart(key, sample)
                self._ledger.add(measured)
                if measured.refused:
                    raise BudgetExceeded(measured.refused, kind="budget_exceeded")
            if self._ledger.state[key] == UNJUDGED and self._stop is None:
                if self._arbiter is None:
                    raise OptionError(
                        "a sample needs a judge and there is none; name one with --judge-url and --judge-id"
                    )
                async with self._judging:
                    for scorer in self._ledger.waiting_for_judge(key):
                        if self._is_stopping():
                            break
                        judged = await self._arbiter.judge(key, problem, sample)
                        self._ledger.add(replace(judged, scorer=scorer) if scorer else judged)
        finally:
            self._backlog.release()

    async def _look(self, decider: Decider) -> None:
        """See whether the rest need not be asked."""
        try:
            while self._stop is None:
                await asyncio.sleep(LOOK_SECONDS)
                reached = await decider.decided()
                if reached is not None:
                    self.stop(reached)
        except Exception as error:  # a look that fails must not pass for one that decided nothing
            self._failure = self._failure or error
            self._wake.set()

    def _too_early(self, key: int) -> bool:
        return self._decider is not None and self._stop is None and not self._decider.may_ask(key)

    def _is_stopping(self) -> bool:
        return self._stop is not None

    async def _keep(self) -> None:
        """Every so often: make what is finished safe, then show it."""
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            finished = self._ledger.done()
            try:
                await asyncio.to_thread(self._ledger.journal.sync)
            except StorageFailed as error:
                self.stop(error)
                return
            self._ledger.durable = finished
            self._watcher.tick(self._ledger)
