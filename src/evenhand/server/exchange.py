"""One request and its answer, as the application sees them."""

import asyncio
from collections.abc import MutableMapping
from typing import Any, Protocol

from evenhand.core.errors import Refusal

Message = MutableMapping[str, Any]
_DISCONNECT: Message = {"type": "http.disconnect"}


class Connection(Protocol):
    """Where a request came from."""

    def wait_for_body(self, exchange: "Exchange") -> "asyncio.Future[None]": ...

    def answer(
        self, exchange: "Exchange", status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None: ...


class Exchange:
    """What has come of a request, and the ways to the rest of it and back to the client."""

    __slots__ = (
        "_connection",
        "_start",
        "answered",
        "arrived",
        "buffered",
        "complete",
        "keep_alive",
        "late",
        "lost",
        "parts",
        "scope",
        "task",
    )

    def __init__(self, connection: Connection, scope: Message, *, keep_alive: bool) -> None:
        self._connection = connection
        self._start: Message = {}
        self.scope = scope
        self.keep_alive = keep_alive
        self.task: asyncio.Task[None] | None = None
        self.parts: list[bytes] = []
        self.buffered = 0
        self.complete = False
        self.lost = False
        self.late = False
        self.answered = False
        self.arrived: asyncio.Future[None] | None = None

    def tell(self) -> None:
        """Something of the body came, or nothing more will."""
        if self.arrived is not None and not self.arrived.done():
            self.arrived.set_result(None)

    def end_wait(self) -> None:
        """If the application waits for the body, it has waited long enough."""
        if self.arrived is not None and not self.arrived.done():
            self.late, self.keep_alive = True, False
            self.arrived.set_result(None)

    async def receive(self) -> Message:
        """The next piece of the body; `REQUEST_TIMEOUT` when the client keeps it back."""
        while not (self.parts or self.complete or self.lost or self.late):
            self.arrived = self._connection.wait_for_body(self)
            await self.arrived
        if self.lost and not self.complete:
            return _DISCONNECT
        if self.late:
            raise Refusal("REQUEST_TIMEOUT", "The body took too long to arrive.")
        body = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
        self.parts, self.buffered = [], 0
        return {"type": "http.request", "body": body, "more_body": not self.complete}

    async def send(self, message: Message) -> None:
        """The head is kept until the body comes: they leave together."""
        if message["type"] == "http.response.start":
            self._start = message
        elif not self.answered:
            self._connection.answer(self, self._start["status"], self._start["headers"], message["body"])
            self.answered = True
