"""What all requests of one server share."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from evenhand.server.config import ServerConfig
from evenhand.server.http.auth import Authenticator, PerMinute
from evenhand.server.http.bodies import MemoryBudget
from evenhand.server.http.logs import warn_of
from evenhand.server.http.sessions import Sessions
from evenhand.server.http.telemetry import Telemetry
from evenhand.server.ingest.costs import PriceBook
from evenhand.server.jobs.judge_models import JudgeModels
from evenhand.server.jobs.runner import JobRunner
from evenhand.server.jobs.scorers import Scorers
from evenhand.server.kept import Kept
from evenhand.server.live import LiveHub
from evenhand.store.backfills import next_step, take_step
from evenhand.store.connection import Connection
from evenhand.store.database import Database
from evenhand.store.deleting import any_removal, remove_more, retain, with_retention
from evenhand.store.tidying import tidy

HOUSEKEEPING_SECONDS = 600.0
BACKFILL_SECONDS = 2.0
"""How often a server looks for backfills that another one, or a stopped one, left."""
REMOVAL_SECONDS = 60.0
"""The same for what is to be deleted, and for traces that are too old."""
KEPT_COMPARISONS = 8
"""Comparisons for pages that are kept: of a thousand items with five repeats each, about 10 MB."""
REMOVAL_PAUSE = 0.005
"""Seconds between two steps, in which other writes have their turn."""

BackgroundTask = Callable[["Service"], Awaitable[None]]
"""Runs beside the requests until it is cancelled."""


class Service:
    """The database, authentication, counters and background tasks of one server."""

    def __init__(self, config: ServerConfig, database: Database) -> None:
        self.config = config
        self.database = database
        self.authenticator = Authenticator(
            database, config.admin_token, config.limits.wrong_tokens_per_minute
        )
        self.budget = MemoryBudget(config.limits.buffered_bytes)
        self.sessions = Sessions(database)
        self.wrong_shares = PerMinute(
            config.limits.wrong_tokens_per_minute, "Too many wrong share links; wait a minute."
        )
        self.share_views = PerMinute(
            config.limits.share_views_per_minute, "This link is opened too often; wait a minute."
        )
        self.telemetry = Telemetry()
        models = JudgeModels.configured(config.models_file, config.models)
        self.scorers = Scorers(models, [*config.scorers, *models.scorers], think_tags=config.think_tags)
        self.prices = PriceBook(models.prices)
        self.jobs = JobRunner(database, models, self.scorers)
        self.comparisons = Kept(KEPT_COMPARISONS)
        self.live = LiveHub(database)
        self.documents: dict[str, Callable[[], bytes]] = {}
        self.stopping = False
        self._backfills = asyncio.Event()
        self._removals = asyncio.Event()
        self._background: tuple[BackgroundTask, ...] = (housekeeping, run_jobs, run_backfills, run_removals)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for task in self._background:
            self._tasks.append(asyncio.ensure_future(task(self)))

    def begin_stop(self) -> None:
        """No new work is expected: whoever waits for a job is answered now."""
        self.stopping = True
        self.jobs.end_waits()

    async def stop(self) -> None:
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake_backfills(self) -> None:
        """There is a new backfill: look at once."""
        self._backfills.set()

    def wake_removals(self) -> None:
        """There is something to be deleted: look at once."""
        self._removals.set()

    async def backfill_asked(self) -> None:
        """Wait until there is a new backfill, or until it is time to look what another server left."""
        await _asked(self._backfills, BACKFILL_SECONDS)

    async def removal_asked(self) -> None:
        """The same for deletions."""
        await _asked(self._removals, REMOVAL_SECONDS)


async def _asked(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()


async def _step_by_step(service: Service, step: Callable[[Connection], bool]) -> None:
    more = True
    while more:
        more = await service.database.write(step)
        await asyncio.sleep(REMOVAL_PAUSE)


async def run_removals(service: Service) -> None:
    """Delete what was asked for, and what is older than its project keeps, in small steps beside other writes."""
    while True:
        try:
            if await service.database.read(any_removal):
                await _step_by_step(service, remove_more)
            for project_id, days in await service.database.read(with_retention):
                await _step_by_step(service, partial(retain, project_id=project_id, days=days))
        except Exception as error:
            warn_of(error, "deleting cannot go on")
        await service.removal_asked()


async def run_backfills(service: Service) -> None:
    """Apply rules to stored spans, one small step of each backfill after the other."""
    last = ""
    while True:
        busy = False
        try:
            step = await service.database.search(partial(next_step, after=last))
            if step is not None:
                made = await service.database.write(partial(take_step, step=step))
                busy = step.trace_count > 0 or step.last is None
                if made:
                    service.jobs.wake()
            busy = busy or (step is None and last != "")
            last = "" if step is None else step.backfill_id
        except Exception as error:
            last = ""
            warn_of(error, "a backfill cannot go on")
        if not busy:
            await service.backfill_asked()


async def run_jobs(service: Service) -> None:
    """Compute the scores that jobs ask for."""
    await service.jobs.run()


async def housekeeping(service: Service) -> None:
    """Forget old idempotency keys, login links, browser sessions and texts of spans that never came, now and then."""
    while True:
        try:
            await service.database.write(tidy)
        except Exception as error:
            warn_of(error, "housekeeping failed")
        await asyncio.sleep(HOUSEKEEPING_SECONDS)
