"""Answers that wait to be read, over all connections of a server."""

import logging
from typing import Protocol

log = logging.getLogger("evenhand.server")


class Reader(Protocol):
    """Somebody who has not read yet."""

    def let_go(self) -> None: ...


class Backlog:
    """Keeps what waits to be read within a limit. Who has kept it waiting for longest goes first: those who read go on."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[Reader, int] = {}
        self.used = 0

    def add(self, reader: Reader, size: int) -> None:
        """So many bytes wait for `reader`."""
        self._waiting[reader] = size
        self.used += size
        while self.used > self._limit and len(self._waiting) > 1:  # one answer may be as large as it is
            slowest = next(iter(self._waiting))
            self.remove(slowest)
            log.warning("let go of a client that does not read: too much waits to be sent")
            slowest.let_go()

    def remove(self, reader: Reader) -> None:
        """`reader` has read most of it, or is gone."""
        self.used -= self._waiting.pop(reader, 0)
