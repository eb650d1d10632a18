"""From OTLP log records to texts of spans: some instrumentations put what was said into events of the log."""

import hashlib
from collections.abc import Iterable
from typing import Any

from evenhand.server.ingest.otlp_texts import encoded, json_text, message_of
from evenhand.server.ingest.otlp_wire import WireLog
from evenhand.store.texts import SpanText

NOT_KEPT = "only gen_ai events that carry a message of a span are kept; send logs to a log store"
MAX_TIME_NS = 2**63 - 1
_WHOLE = (("gen_ai.input.messages", "input"), ("gen_ai.output.messages", "output"))
"""Attributes of an event that hold whole texts."""


def span_texts(records: Iterable[WireLog]) -> tuple[list[SpanText], int]:
    """The texts, and how many records carry none."""
    found: list[SpanText] = []
    left_out = 0
    for record in records:
        texts = list(_texts(record)) if _belongs_to_span(record) else []
        found += texts
        left_out += not texts
    return found, left_out


def _belongs_to_span(record: WireLog) -> bool:
    named = record.name.startswith("gen_ai.") and len(record.trace_id) == 32 and len(record.span_id) == 16
    return named and bool(record.trace_id.strip("0")) and bool(record.span_id.strip("0"))


def _texts(record: WireLog) -> Iterable[SpanText]:
    message = message_of(record.name, record.body, record.attributes)
    if message is not None:
        is_output, content = message
        yield _text(record, "output" if is_output else "input", encoded(content), whole=False)
        return
    places: dict[str, Any] = record.attributes
    if isinstance(record.body, dict):
        places = {**record.body, **record.attributes}
    for name, place in _WHOLE:
        if name in places:
            yield _text(record, place, json_text(places[name]), whole=True)


def _text(record: WireLog, place: str, text: str, *, whole: bool) -> SpanText:
    return SpanText(
        trace_id=record.trace_id,
        span_id=record.span_id,
        place=place,
        at_ns=min(record.time_ns, MAX_TIME_NS),
        digest=hashlib.sha256(text.encode()).hexdigest()[:32],
        whole=int(whole),
        text=text,
    )
