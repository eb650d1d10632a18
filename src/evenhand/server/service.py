"""What all requests of one server share."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from evenhand.server.auth import Gate
from evenhand.server.bodies import Budget
from evenhand.server.config import ServerConfig
from evenhand.server.judge_models import JudgeModels
from evenhand.server.scoring_jobs import JobRunner
from evenhand.server.sessions import Sessions
from evenhand.server.telemetry import Telemetry
from evenhand.store.database import Database
from evenhand.store.idempotency import forget_old

log = logging.getLogger("evenhand.server")
HOUSEKEEPING_SECONDS = 600.0

BackgroundTask = Callable[["Service"], Awaitable[None]]
"""Runs beside the requests until it is cancelled."""


class Service:
    """The database, the gate, the counters and the background tasks of one server."""

    def __init__(self, config: ServerConfig, database: Database) -> None:
        self.config = config
        self.database = database
        self.gate = Gate(database, config.admin_token, config.limits.wrong_tokens_per_minute)
        self.budget = Budget(config.limits.buffered_bytes)
        self.sessions = Sessions()
        self.telemetry = Telemetry()
        self.jobs = JobRunner(database, JudgeModels.configured(config.models_file, config.models))
        self.documents: dict[str, Callable[[], bytes]] = {}
        self.started = time.monotonic()
        self.stopping = False
        self._background: tuple[BackgroundTask, ...] = (housekeeping, run_jobs)
        self._tasks: list[asyncio.Task[None]] = []

    def add_background(self, task: BackgroundTask) -> None:
        """Have `task` run beside the requests; call before the server starts."""
        self._background += (task,)

    def start(self) -> None:
        for task in self._background:
            self._tasks.append(asyncio.ensure_future(task(self)))

    async def stop(self) -> None:
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def run_jobs(service: Service) -> None:
    """Work out the scores that the service was asked for."""
    await service.jobs.run()


async def housekeeping(service: Service) -> None:
    """Forget old idempotency keys now and then."""
    while True:
        try:
            await service.database.write(forget_old)
        except Exception as error:
            log.warning("housekeeping failed", extra={"fields": {"error": type(error).__name__}})
        await asyncio.sleep(HOUSEKEEPING_SECONDS)
