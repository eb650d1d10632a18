"""Two changes to uvicorn's protocol: answers leave in one packet, and what is no HTTP gets the error envelope."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.server.answers import error_answer


class OnePacket:
    """A transport that sends what was written within one turn of the event loop together.

    uvicorn writes the head and the body of an answer one after the other; each would be a call to the system and
    wake the client, the first time for half an answer.
    """

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class ServerProtocol(HttpToolsProtocol):
    """uvicorn's protocol with these changes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn itself
        super().connection_made(cast(asyncio.Transport, OnePacket(transport, self.loop)))

    def send_400_response(self, msg: str) -> None:
        answer = error_answer("INVALID_REQUEST", "This is not a valid HTTP request.")
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n\r\n" % len(answer.body)
        )
        self.transport.write(head + answer.body)
        self.transport.close()
