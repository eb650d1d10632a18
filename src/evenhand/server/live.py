"""News for pages that show work under way: one look at the database per project and second, however many look at it.

The database is asked, not the writer of this process: with PostgreSQL another server may have made the change.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from functools import partial

from evenhand.core.errors import Refusal
from evenhand.store.database import Database
from evenhand.store.live import project_mark

log = logging.getLogger("evenhand.server")
LOOK_SECONDS = 1.0
STREAM_SECONDS = 600.0
"""After so long a stream ends, and the browser connects again: a session that has ended gets no other one."""
MOST_STREAMS = 1_000


class _Watch:
    """The newest mark of one project, for everybody who waits for it."""

    def __init__(self) -> None:
        self.mark = ""
        self.listeners: set[asyncio.Event] = set()
        self.task: asyncio.Task[None] | None = None


class LiveHub:
    """The watched projects of one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched: dict[str, _Watch] = {}
        self._streams = 0

    async def marks(self, project_ids: Iterable[str]) -> AsyncGenerator[tuple[str, str], None]:
        """A project and its mark: each at once, and again whenever it changes."""
        if self._streams >= MOST_STREAMS:
            raise Refusal("OVERLOADED", "Too many pages wait for news; reload the page to see what is new.")
        self._streams += 1
        changed = asyncio.Event()
        watches = {one: self._join(one, changed) for one in project_ids}
        told: dict[str, str] = {}
        ends = asyncio.get_running_loop().time() + STREAM_SECONDS
        try:
            while (left := ends - asyncio.get_running_loop().time()) > 0:
                for project_id, watch in watches.items():
                    if watch.mark and told.get(project_id) != watch.mark:
                        told[project_id] = watch.mark
                        yield project_id, watch.mark
                try:
                    async with asyncio.timeout(left):
                        await changed.wait()
                except TimeoutError:
                    return
                changed.clear()
        finally:
            self._streams -= 1
            for project_id in watches:
                self._leave(project_id, changed)

    def _join(self, project_id: str, changed: asyncio.Event) -> _Watch:
        watch = self._watched.setdefault(project_id, _Watch())
        watch.listeners.add(changed)
        if watch.task is None:
            watch.task = asyncio.ensure_future(self._look(project_id, watch))
        return watch

    def _leave(self, project_id: str, changed: asyncio.Event) -> None:
        watch = self._watched[project_id]
        watch.listeners.discard(changed)
        if not watch.listeners:
            del self._watched[project_id]
            if watch.task is not None:
                watch.task.cancel()

    async def _look(self, project_id: str, watch: _Watch) -> None:
        while True:
            try:
                mark = await self._database.read(partial(project_mark, project_id=project_id))
            except Exception as error:
                log.warning("live updates wait", extra={"fields": {"error": type(error).__name__}})
                mark = watch.mark
            if mark != watch.mark:
                watch.mark = mark
                for listener in watch.listeners:
                    listener.set()
            await asyncio.sleep(LOOK_SECONDS)
