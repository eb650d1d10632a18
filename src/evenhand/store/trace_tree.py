"""The spans of a trace without what they carried: enough to draw its tree, however large the trace is."""

from collections.abc import Sequence

from msgspec import Struct

from evenhand.store.connection import Connection


class SpanRow(Struct, frozen=True, gc=False):
    """A span in a tree."""

    id: str
    """Unique within its trace."""
    parent_span_id: str | None
    """The span that caused it; it may not have arrived."""
    name: str
    """What the operation is called."""
    start_us: int
    """Microseconds since 1970."""
    end_us: int | None
    """The same; None while it is not known."""
    duration_ms: float | None
    """How long it took."""
    tokens: int
    """Tokens read and written; 0 for one that repeats those below it."""
    model: str | None
    """The model that was asked for."""
    failed: bool
    """Whether it has an error."""
    cost_pico: int | None
    """What it cost; None when that is not known, or when it repeats those below it."""


def list_span_rows(connection: Connection, trace_key: str) -> list[SpanRow]:
    """Every span of the trace, by start time."""
    rows = connection.all(
        "SELECT id, parent_span_id, name, start_us, end_us, duration_ms, tokens_input, tokens_output, model,"
        " CASE WHEN error IS NULL THEN 0 ELSE 1 END, cost_pico, is_total FROM spans WHERE trace_key = ?"
        " ORDER BY start_us, id",
        trace_key,
    )
    return [
        SpanRow(
            row[0],
            row[1],
            row[2],
            row[3],
            row[4],
            row[5],
            0 if row[11] else (row[6] or 0) + (row[7] or 0),
            row[8],
            bool(row[9]),
            None if row[11] else row[10],
        )
        for row in rows
    ]


def main_models(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """The model of each trace, by its key: the root's, else the most common of its spans, the first by name of equals."""
    counted = connection.look_up(
        "trace_key, model, COUNT(*), MAX(CASE WHEN parent_span_id IS NULL THEN 1 ELSE 0 END)",
        "FROM spans WHERE trace_key IN [?] AND model IS NOT NULL GROUP BY trace_key, model",
        list(keys),
    )()
    found: dict[str, str] = {}
    for key, model, _, _ in sorted(counted, key=lambda row: (-row[3], -row[2], row[1])):
        found.setdefault(key, model)
    return found
