"""Answers that are sent as streams: exports as lines of JSON, and server-sent events.

A handler makes rows or events in an asynchronous generator; these functions turn it into a `StreamingAnswer`. See
"Streaming" in docs/service-internals.md.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec import Struct

from evenhand.server.call import Call
from evenhand.server.http.answers import StreamingAnswer, encode_json
from evenhand.store.connection import Connection

T = TypeVar("T")
K = TypeVar("K")

NDJSON = "application/x-ndjson"
"""Of the `stream_types` of a route that answers with `ndjson_answer`."""
PARQUET = "application/vnd.apache.parquet"
EVENTS = "text/event-stream"
"""Of the `stream_types` of a route that answers with `events_answer`."""
HEARTBEAT_SECONDS = 15.0
"""How often an event stream without news sends a comment, so that proxies and clients see that it is alive."""
_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


class Event(Struct, frozen=True, kw_only=True):
    """One server-sent event."""

    data: Any
    """Sent as JSON on one line."""
    name: str = ""
    """The event's type: the browser's listener of that name gets it."""
    id: str = ""
    """What the browser sends as `Last-Event-ID` when it connects again."""


async def read_pages(
    call: Call,
    read: Callable[[Connection, K | None], list[T]],
    key: Callable[[T], K],
) -> AsyncGenerator[list[T], None]:
    """Lists of rows until there are none: `read(connection, after)` gives the next rows after a key, None at first.

    Each list is one short read, so a client that reads slowly holds no transaction and no reader of the database. The
    export is therefore no snapshot: rows that others add while it runs may be in it.
    """
    after: K | None = None
    while rows := await call.read(lambda connection, after=after: read(connection, after)):  # type: ignore[misc]
        yield rows
        after = key(rows[-1])


def ndjson_answer(pages: AsyncGenerator[Sequence[Any], None], *, file_name: str = "") -> StreamingAnswer:
    """One JSON value to a line. With a file name browsers save it instead of showing it."""
    return ndjson_stream(_lines(pages), file_name=file_name)


def ndjson_stream(lines: AsyncGenerator[bytes, None], *, file_name: str = "") -> StreamingAnswer:
    """`ndjson_answer` for lines that are JSON already, in pieces of any size."""
    headers = []
    if file_name:
        safe = _NOT_IN_FILE_NAMES.sub("_", file_name).encode()
        headers.append((b"content-disposition", b'attachment; filename="%b"' % safe))
    return StreamingAnswer(lines, content_type=NDJSON.encode(), headers=headers)


async def _lines(pages: AsyncGenerator[Sequence[Any], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pages):
        async for rows in pages:
            if rows:
                yield b"".join(encode_json(row) + b"\n" for row in rows)


def events_answer(
    events: AsyncGenerator[Event, None], *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> StreamingAnswer:
    """Server-sent events until `events` ends, the client leaves or the server stops."""
    return StreamingAnswer(
        _event_texts(events, heartbeat_seconds), content_type=EVENTS.encode(), endless=True
    )


async def _event_texts(
    events: AsyncGenerator[Event, None], heartbeat_seconds: float
) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        coming: asyncio.Future[Event] | None = None
        try:
            yield b": open\n\n"  # the head and the first bytes reach the browser at once
            while True:
                coming = coming or asyncio.ensure_future(anext(events))
                done, _ = await asyncio.wait((coming,), timeout=heartbeat_seconds)
                if not done:
                    yield b": waiting\n\n"
                    continue
                try:
                    event = coming.result()
                except StopAsyncIteration:
                    return
                coming = None
                yield event_text(event)
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


def event_text(event: Event) -> bytes:
    """The event as its text on the wire."""
    lines = []
    for field, value in ((b"id", event.id), (b"event", event.name)):
        if value:
            if any(mark in value for mark in "\r\n\x00"):
                raise ValueError(f"the {field.decode()} of an event is one line")
            lines.append(field + b": " + value.encode())
    return b"\n".join((*lines, b"data: " + encode_json(event.data), b"", b""))
