"""Messages over a descriptor: one letter, four bytes of length, the body."""

import json
import os
import struct
from typing import Any

LARGEST = 32 * 1024 * 1024
"""A longer message is refused: the sender is not trusted."""

_HEADER = struct.Struct(">cI")


class Broken(Exception):
    """The other side sent something that is not a message."""


def write_frame(fd: int, kind: bytes, body: bytes) -> None:
    """Send one message whole."""
    data = memoryview(_HEADER.pack(kind, len(body)) + body)
    while data:
        data = data[os.write(fd, data) :]


def read_frame(fd: int, largest: int = LARGEST) -> tuple[bytes, bytes] | None:
    """The next message, or None when the other side is gone."""
    header = _read_exactly(fd, _HEADER.size)
    if header is None:
        return None
    kind, length = _HEADER.unpack(header)
    if length > largest:
        raise Broken(f"a message of {length} bytes, at most {largest} are allowed")
    body = _read_exactly(fd, length)
    return None if body is None else (kind, body)


def _read_exactly(fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        try:
            part = os.read(fd, min(count, 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def write_json(fd: int, value: Any) -> None:
    """Send a JSON message."""
    write_frame(fd, b"J", json.dumps(value).encode("ascii"))


def read_json(fd: int, largest: int = LARGEST) -> dict[str, Any] | None:
    """The next JSON message, or None when the other side is gone."""
    frame = read_frame(fd, largest)
    if frame is None:
        return None
    try:
        value = json.loads(frame[1])
    except (ValueError, RecursionError) as error:
        raise Broken(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Broken("not a JSON object")
    return value
