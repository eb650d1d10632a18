"""Reading request bodies: bounded memory also for compressed ones, and strict JSON only."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from evenhand.core.errors import InputError, Refusal
from evenhand.core.jsontext import check_depth, reason_for, repeated_key
from evenhand.server.config import RequestLimits
from evenhand.server.http.routes import Route

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
OFF_LOOP_BYTES = 1024 * 1024
"""Larger bodies are decoded in a thread. Smaller ones take at most a few milliseconds on the event loop; in threads
they would compete with each other and the writer for the interpreter's lock and take longer."""
MOST_KEYS = 500_000
"""Keys of all objects in one body: 10,000 whole spans have 300,000."""
_KEY = re.compile(rb'"\s*:')
_UNPACKED_BYTES = 256 * 1024
_PACKED_BYTES = 16 * 1024
_NUL = b"\\u0000"


class Disconnected(Exception):
    """The client went away before its body was complete."""


class MemoryBudget:
    """A limit on the bytes of bodies in memory, over all requests."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0

    def reserve(self, count: int) -> None:
        if self.used + count > self._limit:
            raise Refusal("OVERLOADED", "Too many large requests are under way; try again in a moment.")
        self.used += count

    def release(self, count: int) -> None:
        self.used -= count


def with_timeout(receive: Receive, seconds: float) -> Receive:
    """`receive` that raises `REQUEST_TIMEOUT` when the client sends nothing for so long."""

    async def receive_in_time() -> Message:
        try:
            async with asyncio.timeout(seconds):
                return await receive()
        except TimeoutError:
            raise Refusal("REQUEST_TIMEOUT", "The body took too long to arrive.") from None

    return receive_in_time


def too_large(limit: int) -> Refusal:
    return Refusal("PAYLOAD_TOO_LARGE", f"The body is larger than {limit} bytes.", {"limit_bytes": limit})


def limit_for(route: Route, limits: RequestLimits) -> int:
    return {"body": limits.body_bytes, "otlp": limits.otlp_bytes, "import": limits.import_bytes}[
        route.body_limit
    ]


def check_length(headers: dict[bytes, bytes], limit: int) -> None:
    """Refuse by the announced length, before anything is read."""
    announced = headers.get(b"content-length")
    if announced is None:
        return
    if not announced.isdigit():
        raise Refusal("INVALID_REQUEST", "The Content-Length is not a number.")
    if len(announced) > 18 or int(announced) > limit:
        raise too_large(limit)


async def body_chunks(receive: Receive, headers: dict[bytes, bytes], limit: int) -> AsyncIterator[bytes]:
    """The unpacked body in chunks; `PAYLOAD_TOO_LARGE` as soon as it exceeds `limit`."""
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    total = 0
    async for piece in _unpacked(_received(receive, limit), encoding):
        total += len(piece)
        if total > limit:
            raise too_large(limit)
        yield piece


async def _received(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    total = 0
    while True:
        message = await _receive_body(receive)
        piece = message.get("body", b"")
        total += len(piece)
        if total > limit:
            raise too_large(limit)
        if piece:
            yield piece
        if not message.get("more_body", False):
            return


async def _unpacked(packed: AsyncIterator[bytes], encoding: bytes) -> AsyncIterator[bytes]:
    if encoding in (b"identity", b""):
        async for piece in packed:
            yield piece
        return
    if encoding not in (b"gzip", b"x-gzip", b"deflate"):
        raise Refusal("UNSUPPORTED_MEDIA_TYPE", "The Content-Encoding can be gzip, deflate or identity.")
    window = 15 if encoding == b"deflate" else 47
    unpacker = zlib.decompressobj(window)
    try:
        async for piece in packed:
            for start in range(0, len(piece), _PACKED_BYTES):
                data = piece[start : start + _PACKED_BYTES]
                while data:
                    if unpacker.eof and window != 15:  # gzip allows several members in one stream
                        unpacker = zlib.decompressobj(window)
                    elif unpacker.eof:
                        raise Refusal("INVALID_REQUEST", "Something follows the compressed body.")
                    if unpacked := unpacker.decompress(data, _UNPACKED_BYTES):
                        yield unpacked
                    data = unpacker.unconsumed_tail or unpacker.unused_data
                    await asyncio.sleep(0)  # a small piece can unpack to much: let other requests run
        rest = unpacker.flush()
    except zlib.error:
        raise Refusal("INVALID_REQUEST", "The body is not valid compressed data.") from None
    if rest:
        yield rest
    if not unpacker.eof:
        raise Refusal("INVALID_REQUEST", "The compressed body is cut off.")


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int, budget: MemoryBudget) -> bytes:
    """The whole unpacked body; `check_length` has been called."""
    if b"content-encoding" not in headers:
        # Nearly every body arrives in one piece, which needs no generators.
        message = await _receive_body(receive)
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if len(body) > limit:
                raise too_large(limit)
            return body
        receive = _starting_with(message, receive)
    whole = bytearray()  # not a list: many tiny pieces would take many times their size
    try:
        async for piece in body_chunks(receive, headers, limit):
            budget.reserve(len(piece))
            whole += piece
        return bytes(whole)
    finally:
        budget.release(len(whole))


async def _receive_body(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    return message


def _starting_with(first: Message, receive: Receive) -> Receive:
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def check_media_type(route: Route, headers: dict[bytes, bytes]) -> str:
    """The content type without parameters; `UNSUPPORTED_MEDIA_TYPE` when the endpoint does not take it."""
    given = headers.get(b"content-type")
    if given == b"application/json" and route.media_types[0] == "application/json":
        return "application/json"
    # A body without a type is taken for the endpoint's first one: many small clients send none.
    if given is None:
        return route.media_types[0]
    media_type = given.split(b";", 1)[0].strip().lower().decode("latin-1")
    if media_type not in route.media_types:
        allowed = ", ".join(route.media_types)
        raise Refusal("UNSUPPORTED_MEDIA_TYPE", f"The Content-Type can be: {allowed}.", {"allowed": allowed})
    return media_type


def has_too_many_keys(body: bytes) -> bool:
    """Whether JSON text has more than `MOST_KEYS` keys; a text of this length at most cannot."""
    return len(body) > OFF_LOOP_BYTES and len(_KEY.findall(body)) > MOST_KEYS


def decode_body(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The typed body; `InputError` for anything that is not strict JSON of that type."""
    check_depth(body)
    if has_too_many_keys(body):
        raise InputError(f"the body has more than {MOST_KEYS:,} keys")
    try:
        if not body.isascii():
            body.decode("utf-8")
        value = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"invalid JSON: {reason_for(error, body)}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"invalid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InputError("JSON is nested too deeply") from None
    refuse_repeated_key(body)
    if b"\\" in body and _NUL in body:  # most bodies have no backslash, which is found fast
        _refuse_nul(value, "$")
    return value


def refuse_repeated_key(body: bytes) -> None:
    """`INVALID_REQUEST` when an object names a key twice, because one of the values would be lost."""
    key = repeated_key(body)
    if key is not None:
        shown = key[:200]
        raise Refusal("INVALID_REQUEST", f"The key '{shown}' is given twice in one object.", {"key": shown})


def _refuse_nul(value: Any, place: str) -> None:
    """Refuse NUL in names and ids; free JSON, which is kept as raw text, may contain it."""
    if isinstance(value, str):
        if "\x00" in value:
            raise InputError(f"the character NUL is not possible here - at `{place}`")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _refuse_nul(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_nul(item, f"{place}[...]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(key, place)
            _refuse_nul(item, f"{place}[...]")
