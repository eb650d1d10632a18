"""Bounds on what an OTLP body in protobuf may hold.

A message can take two bytes on the wire and a hundred in memory, and what compresses that well arrives in a request of
a few kilobytes. So the parts of a large body are counted by its framing alone, before the parser allocates anything.
"""

from evenhand.core.errors import InputError, Refusal

MAX_PARTS = 1_000_000
"""Spans, events, attributes and so on in one body."""
UNCOUNTED_BYTES = 2 * 1024 * 1024
"""A body up to this size is parsed uncounted: it can hold a million messages, up to 180 MB for a moment. Exporters
send a few hundred spans at a time and do not pay for the count."""
PART_BYTES = 8
"""No span, event or attribute that says something is shorter."""
SPARE_PARTS = 1_000
"""Parts that a body may have beyond what its size says."""
MAX_DEPTH = 100
"""Messages inside each other; the parser has the same limit."""
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_Kind = dict[int, "_Kind"]
_VALUE: _Kind = {}
_PAIR: _Kind = {2: _VALUE}
_VALUE.update({5: {1: _VALUE}, 6: {1: _PAIR}})
_SPAN: _Kind = {9: _PAIR, 11: {3: _PAIR}, 13: {4: _PAIR}}
_LOG: _Kind = {5: _VALUE, 6: _PAIR}


def _request(record: _Kind) -> _Kind:
    return {1: {1: {1: _PAIR}, 2: {1: {3: _PAIR}, 2: record}}}


TRACES, LOGS = _request(_SPAN), _request(_LOG)
"""The messages inside each message by field number, from `ExportTraceServiceRequest`, or that of logs, down."""


class PartCounter:
    """Counts the parts of one body; `PAYLOAD_TOO_LARGE` when there are more than its size justifies."""

    def __init__(self, body_bytes: int) -> None:
        self._left = min(SPARE_PARTS + body_bytes // PART_BYTES, MAX_PARTS)

    def add(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise too_many_parts()


def too_many_parts() -> Refusal:
    return Refusal("PAYLOAD_TOO_LARGE", "The body holds too many spans, events, log records and attributes.")


def malformed(request: str = "ExportTraceServiceRequest") -> InputError:
    return InputError(f"the body is not an OTLP {request} in protobuf")


def count_parts(body: bytes, request: _Kind = TRACES) -> None:
    """`PAYLOAD_TOO_LARGE` for a body with too many messages inside, `InputError` for one whose framing is broken."""
    counter = PartCounter(len(body))
    outer: list[tuple[int, int, _Kind]] = []
    at, end, inside = 0, len(body), request
    while at < end or outer:
        if at == end:
            at, end, inside = outer.pop()
            continue
        tag, at = _varint(body, at, end)
        wire_type = tag & 7
        if wire_type == _LENGTH:
            size, at = _varint(body, at, end)
            stop = at + size
            kind = inside.get(tag >> 3)
            if stop > end or len(outer) > MAX_DEPTH:
                raise malformed()
            if kind is None:
                at = stop
            else:
                counter.add(1)
                outer.append((stop, end, inside))
                end, inside = stop, kind
        elif wire_type == _VARINT:
            _, at = _varint(body, at, end)
        elif wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if wire_type == _EIGHT_BYTES else 4
        else:
            raise malformed()
        if at > end:
            raise malformed()


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    number = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise malformed()
