"""What a project's traces come to, kept by stretch of time: a summary adds up a few thousand rows, however many traces
there are.

A stretch is the first eight characters of a trace's key, 65 seconds of arrivals. Late spans change the stretch of their
trace; deleted traces are taken out again. Durations are summed as floats, everything else exactly.
"""

from collections.abc import Iterable
from typing import NamedTuple

from evenhand.core.spans import PICO
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST

STRETCH = 8
"""Characters of a key that name its stretch."""
TRACE_COLUMNS = (
    "trace_key, span_count, error_count, root_duration_ms, tokens, cost_pico, cost_known, cost_unknown"
)
"""What `totals_of` needs of a trace's row."""


class TraceTotals(NamedTuple):
    """What some traces come to, or what a batch adds to that; the columns of the table after its key."""

    trace_count: int = 0
    span_count: int = 0
    failed_count: int = 0
    """Traces with a span that failed."""
    timed_count: int = 0
    """Traces whose root has a duration."""
    duration_ms: float = 0.0
    """The sum of these durations."""
    tokens: int = 0
    cost_usd: int = 0
    """Whole dollars of the known costs."""
    cost_pico: int = 0
    """Picodollars beside the whole dollars; may be more than one dollar."""
    cost_known: int = 0
    """Model calls whose cost is known."""
    cost_unknown: int = 0
    """Model calls whose cost is not."""

    def plus(self, other: "TraceTotals") -> "TraceTotals":
        sums: list[float] = [one + two for one, two in zip(self, other, strict=True)]
        return TraceTotals(*sums)  # type: ignore[arg-type]  # integers plus integers

    @property
    def total_pico(self) -> int:
        """The sum of the known costs."""
        return self.cost_usd * PICO + self.cost_pico


_LITTLE = 1e-6
"""The part of a sum below which its digits are doubtful after the rest was taken out."""
_COLUMNS = TraceTotals._fields
_SUMS = ", ".join(f"COALESCE(SUM({column}), 0)" for column in _COLUMNS)
_UPSERT = (
    f"INSERT INTO trace_totals (project_id, stretch, {', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 12)})"  # noqa: S608  constant columns
    " ON CONFLICT (project_id, stretch) DO UPDATE SET "
    + ", ".join(f"{column} = trace_totals.{column} + excluded.{column}" for column in _COLUMNS)
)
_TAKE = (
    f"UPDATE trace_totals SET {', '.join(f'{column} = {column} - ?' for column in _COLUMNS)}"  # noqa: S608  constant columns
    " WHERE project_id = ? AND stretch = ?"
)


def cost_parts(pico: int) -> tuple[int, int]:
    """Whole dollars and the rest; the rest has the sign of the whole, as it has in SQL."""
    dollars, rest = divmod(abs(pico), PICO)
    return (dollars, rest) if pico >= 0 else (-dollars, -rest)


def totals_of(row: Row) -> TraceTotals:
    """What one trace comes to, from its `TRACE_COLUMNS`."""
    _, spans, errors, duration, tokens, cost, known, unknown = row
    return TraceTotals(
        1,
        spans,
        int(errors > 0),
        int(duration is not None),
        duration or 0.0,
        tokens,
        *cost_parts(cost or 0),
        known,
        unknown,
    )


def by_stretch(changes: Iterable[tuple[str, TraceTotals]]) -> dict[str, TraceTotals]:
    """Changes of traces, by key, added up by stretch."""
    found: dict[str, TraceTotals] = {}
    for key, change in changes:
        stretch = key[:STRETCH]
        known = found.get(stretch)
        found[stretch] = change if known is None else known.plus(change)
    return found


def add_totals(connection: Connection, project_id: str, changes: Iterable[tuple[str, TraceTotals]]) -> None:
    """Count what a batch adds to traces, by their keys."""
    rows = [(project_id, stretch, *change) for stretch, change in sorted(by_stretch(changes).items())]
    connection.run_many(_UPSERT, rows)


def take_totals(connection: Connection, project_id: str, deleted: Iterable[Row]) -> None:
    """Count deleted traces out, given their `TRACE_COLUMNS`; a stretch without traces goes."""
    for stretch, gone in sorted(by_stretch((row[0], totals_of(row)) for row in deleted).items()):
        connection.run(_TAKE, *gone, project_id, stretch)
        # Where little is left of a large sum, the float's last digits are those of what was taken out.
        connection.run(
            "UPDATE trace_totals SET duration_ms = COALESCE((SELECT SUM(root_duration_ms) FROM traces WHERE project_id = ?"
            " AND trace_key >= ? AND trace_key < ?), 0.0) WHERE project_id = ? AND stretch = ? AND duration_ms < ?",
            project_id,
            stretch,
            stretch + LAST,
            project_id,
            stretch,
            gone.duration_ms * _LITTLE,
        )
        connection.run(
            "DELETE FROM trace_totals WHERE project_id = ? AND stretch = ? AND trace_count = 0",
            project_id,
            stretch,
        )


def totals_between(
    connection: Connection, project_id: str, start: str, end: str | None = None
) -> TraceTotals:
    """What the traces with keys from `start` to before `end` come to (`key_from`; None: all later ones).

    Whole stretches are added up from what is kept; only at both ends traces are read, those of 65 seconds at most.
    """
    first = start[:STRETCH] if start[STRETCH:] in ("", "-0000") else _next(start[:STRETCH])
    last = LAST if end is None else end[:STRETCH]
    if first > last:
        return _counted(connection, project_id, start, end or LAST)
    row = connection.one(
        f"SELECT {_SUMS} FROM trace_totals WHERE project_id = ? AND stretch >= ? AND stretch < ?",  # noqa: S608  constant columns
        project_id,
        first,
        last,
    )
    assert row is not None
    total = _as_totals(row)
    if start < first:
        total = total.plus(_counted(connection, project_id, start, first))
    if end is not None and end > last:
        total = total.plus(_counted(connection, project_id, last, end))
    return total


def _next(stretch: str) -> str:
    """The stretch after one; `LAST` after the last one."""
    number = int(stretch, 16) + 1
    return f"{number:08x}" if number < 1 << 32 else LAST


def _counted(connection: Connection, project_id: str, start: str, end: str) -> TraceTotals:
    row = connection.one(
        "SELECT COUNT(*), COALESCE(SUM(span_count), 0), COUNT(CASE WHEN error_count > 0 THEN 1 END),"  # noqa: S608  a constant
        " COUNT(root_duration_ms), COALESCE(SUM(root_duration_ms), 0), COALESCE(SUM(tokens), 0),"
        f" COALESCE(SUM(cost_pico / {PICO}), 0), COALESCE(SUM(cost_pico % {PICO}), 0),"
        " COALESCE(SUM(cost_known), 0), COALESCE(SUM(cost_unknown), 0)"
        " FROM traces WHERE project_id = ? AND trace_key >= ? AND trace_key < ?",
        project_id,
        start,
        end,
    )
    assert row is not None
    return _as_totals(row)


def _as_totals(row: Row) -> TraceTotals:
    """PostgreSQL's sums of integers are decimals."""
    numbers: list[float] = [
        float(value) if name == "duration_ms" else int(value)
        for name, value in zip(_COLUMNS, row, strict=True)
    ]
    return TraceTotals(*numbers)  # type: ignore[arg-type]  # integers where they belong, as just made
