"""A large OTLP body in pieces, and a bound on what it can hold.

A message can take two bytes on the wire and hundreds in memory, and what compresses that well comes in a request of a
few kilobytes. So the parser never sees a large body whole: it is cut between spans, by its framing alone, and reading
ends where there is too much of it.
"""

from collections.abc import Iterator

from evenhand.core.errors import InputError, Refusal

PIECE = 256 * 1024
"""Bytes of spans that are parsed at once."""
MOST_PARTS = 1_000_000
"""Spans, events, attributes and so on in one body."""
PART_BYTES = 8
"""No span, event or attribute that says something is shorter."""
SPARE_PARTS = 1_000
"""Parts that a body may have beyond what its size says."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_INSIDE: dict[str, dict[int, str]] = {
    "resource": {1: "pair"},
    "scope": {3: "pair"},
    "span": {9: "pair", 11: "event", 13: "link"},
    "event": {3: "pair"},
    "link": {4: "pair"},
    "pair": {2: "value"},
    "value": {5: "array", 6: "map"},
    "array": {1: "value"},
    "map": {1: "pair"},
}
"""The messages that each message may hold, by field number."""


class Room:
    """How many parts may still come."""

    def __init__(self, body_bytes: int) -> None:
        self._left = min(SPARE_PARTS + body_bytes // PART_BYTES, MOST_PARTS)

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise too_many_parts()


def too_many_parts() -> Refusal:
    return Refusal("PAYLOAD_TOO_LARGE", "The body holds too many spans, events and attributes.")


def pieces(body: bytes, room: Room) -> Iterator[bytes]:
    """Smaller requests with all the spans of a large one, in their order."""
    for number, _, start, end in _fields(body, 0, len(body)):
        if number == 1:
            room.take(1)
            yield from _of_group(body, start, end, room)


def _of_group(body: bytes, start: int, end: int, room: Room) -> Iterator[bytes]:
    resource = _collected(body, start, end, "resource", room)
    for number, _, at, stop in _fields(body, start, end):
        if number == 2:
            room.take(1)
            scope = _collected(body, at, stop, "scope", room)
            for spans in _of_scope(body, at, stop, room):
                yield bytes_field(1, resource + bytes_field(2, scope + spans))


def _of_scope(body: bytes, start: int, end: int, room: Room) -> Iterator[bytes]:
    batch: list[bytes] = []
    size = 0
    for number, tag, at, stop in _fields(body, start, end):
        if number == 2:
            room.take(1)
            if stop - at > PIECE:
                _check(body, at, stop, "span", room)
            if batch and size + stop - tag > PIECE:
                yield b"".join(batch)
                batch, size = [], 0
            batch.append(body[tag:stop])
            size += stop - tag
    if batch:
        yield b"".join(batch)


def _collected(body: bytes, start: int, end: int, kind: str, room: Room) -> bytes:
    """Field 1 of a message, as it stands there; the parser joins it where it comes twice."""
    found: list[bytes] = []
    for number, tag, at, stop in _fields(body, start, end):
        if number == 1:
            room.take(1)
            _check(body, at, stop, kind, room)
            found.append(body[tag:stop])
    return b"".join(found)


def _check(body: bytes, start: int, end: int, kind: str, room: Room) -> None:
    """Take room for every message inside."""
    stack = [(start, end, kind)]
    while stack:
        at, stop, name = stack.pop()
        inside = _INSIDE[name]
        for number, _, first, last in _fields(body, at, stop):
            if number in inside:
                room.take(1)
                stack.append((first, last, inside[number]))


def _fields(body: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message that may be messages: number, where the tag is, where the content starts and ends."""
    while at < end:
        start = at
        tag, at = _varint(body, at, end)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(body, at, end)
            if size > end - at:
                raise malformed()
            yield tag >> 3, start, at, at + size
            at += size
        elif kind == _VARINT:
            _, at = _varint(body, at, end)
        elif kind in (_EIGHT, _FOUR):
            at += 8 if kind == _EIGHT else 4
        else:
            raise malformed()


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    number = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise malformed()


def malformed() -> InputError:
    return InputError("the body is not an OTLP ExportTraceServiceRequest in protobuf")


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def bytes_field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(payload)) + payload
