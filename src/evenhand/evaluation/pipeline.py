"""Generate, score, judge: all three at once, each with its own limit, every finished step written down first."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from evenhand.benchmarks.definition import Problem
from evenhand.core.errors import BudgetExceeded, EvenhandError, ModelError, ModelRejected, OptionError
from evenhand.evaluation.journal import StorageFailed
from evenhand.evaluation.ledger import DONE, GENERATED, PENDING, UNJUDGED, Ledger
from evenhand.evaluation.planning import ProblemFile
from evenhand.evaluation.records import Generated, Judged
from evenhand.evaluation.scoring_lane import ScoringLane
from evenhand.models.port import ChatModel, ChatRequest, Message
from evenhand.models.reasoning import join_reasoning, split_reasoning
from evenhand.scoring.types import ScorerInput

SYNC_SECONDS = 0.25
"""How often finished work is made safe from a power failure, and progress is shown."""
GRACE_SECONDS = 8.0
"""How long calls in flight may take to end once a run is asked to stop."""
BACKLOG = 4
"""Answers that may wait for their score, as a multiple of the concurrency."""
# The endpoint will not answer any other question either.
HOPELESS = frozenset({"auth", "not_found", "quota", "redirect", "certificate", "forbidden_address"})
REFUSED_AT_FIRST = 5
"""So many refusals before the first answer mean that the request itself is wrong."""


class Arbiter(Protocol):
    """The judge as the pipeline sees it."""

    async def judge(self, key: int, problem: Problem, sample: ScorerInput) -> Judged:
        """The verdict on one sample; a judge that could not be reached is an outcome too."""
        ...


class Watcher(Protocol):
    """Whoever shows progress."""

    def tick(self, ledger: Ledger) -> None:
        """Called after each sync: what the ledger says is durable is on the disk."""
        ...


class Stopped(EvenhandError):
    """The run ended before its last sample; `reason` says why."""

    def __init__(self, message: str, *, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class Limits(Struct, frozen=True, kw_only=True):
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
        model: ChatModel,
        sampling: dict[str, Any],
        think_tags: Sequence[str],
        lane: ScoringLane,
        arbiter: Arbiter | None,
        limits: Limits,
        watcher: Watcher,
    ) -> None:
        self._ledger = ledger
        self._problems = problems
        self._repeats = repeats
        self._model = model
        self._sampling = sampling
        self._think_tags = think_tags
        self._lane = lane
        self._arbiter = arbiter
        self._limits = limits
        self._watcher = watcher
        self._judging = asyncio.Semaphore(limits.judgements)
        self._backlog = asyncio.Semaphore(BACKLOG * limits.calls)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: EvenhandError | None = None
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._refused = 0

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
        for _ in range(self._limits.calls):
            self._spawn(self._work(pending))
        ticker = asyncio.create_task(self._keep())
        try:
            await self._drain()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)
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
        for key, state in enumerate(self._ledger.state):
            if state not in DONE:
                yield key

    async def _work(self, pending: Iterator[int]) -> None:
        for key in pending:
            if self._stop is not None:
                return
            problem = self._problems[key // self._repeats]
            if self._ledger.state[key] == PENDING:
                step = await self._generate(key, problem)
                self._ledger.add(step)
                if step.text is None:
                    continue
                text = step.text
            else:
                text = self._ledger.generation(key).text or ""
            sample = self._lane.sample(problem, text)
            if self._ledger.state[key] == GENERATED and self._lane.quick:
                self._ledger.add(self._lane.measure(key, sample))
            if self._ledger.state[key] in (GENERATED, UNJUDGED):
                await self._backlog.acquire()
                self._spawn(self._conclude(key, problem, sample))

    async def _generate(self, key: int, problem: Problem) -> Generated:
        request = self._request(problem, key % self._repeats)
        try:
            reply = await self._model.complete(request)
        except BudgetExceeded:
            raise
        except ModelError as error:
            if isinstance(error, ModelRejected):
                self._check_hope(error)
            return Generated(key=key, error=error.kind, message=str(error)[:1000], at=time.time())
        split = split_reasoning(reply.text, self._think_tags)
        return Generated(
            key=key,
            text=split.answer,
            finish_reason=reply.finish_reason,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            latency_seconds=round(reply.latency_seconds, 6),
            cost_usd=reply.cost_usd,
            model=reply.model,
            cached=reply.cached,
            attempts=reply.attempts,
            reasoning=join_reasoning(reply.reasoning, split.reasoning),
            adjusted=reply.adjusted,
            truncated=split.unclosed or reply.finish_reason == "length",
            at=time.time(),
        )

    def _check_hope(self, error: ModelRejected) -> None:
        if error.kind in HOPELESS:
            raise error
        self._refused += 1
        if self._refused >= REFUSED_AT_FIRST and self._ledger.spent.calls == 0:
            raise ModelRejected(
                f"the first {self._refused} requests were all refused: {error}",
                kind=error.kind,
                status=error.status,
            )

    def _request(self, problem: Problem, repeat: int) -> ChatRequest:
        sampling = dict(self._sampling)
        extra = sampling.pop("extra_body", {})
        if repeat and sampling.get("seed") is not None:
            sampling["seed"] += repeat
        messages = tuple(
            Message(role=turn.role, content=turn.content)  # type: ignore[arg-type]  # checked when the problem was made
            for turn in problem.turns
        )
        return ChatRequest(messages=messages, repeat=repeat, extra=extra, **sampling)

    async def _conclude(self, key: int, problem: Problem, sample: ScorerInput) -> None:
        try:
            if self._ledger.state[key] == GENERATED:
                self._ledger.add(await self._lane.measure_apart(key, sample))
            if self._ledger.state[key] == UNJUDGED and self._stop is None:
                if self._arbiter is None:
                    raise OptionError(
                        "a sample needs a judge and there is none; name one with --judge-url and --judge-id"
                    )
                async with self._judging:
                    if self._stop is None:
                        self._ledger.add(await self._arbiter.judge(key, problem, sample))
        finally:
            self._backlog.release()

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
