"""Estimates with their intervals, one row each, against a reference line."""

from collections.abc import Sequence

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import fitted, tick_text

ROW = 26
LABEL_WIDTH = 210
WIDTH = 760


class IntervalRow(Struct, frozen=True):
    """One estimate."""

    label: str
    """What was estimated."""
    value: float | None
    """The estimate; None when there is none, which is drawn as words, not as zero."""
    low: float | None = None
    """The lower end of the interval."""
    high: float | None = None
    """The upper end of the interval."""
    note: str = ""
    """A few words at the right."""


def forest(rows: Sequence[IntervalRow], *, title: str, x_label: str, reference: float | None = 0.0) -> str:
    """A dot with an interval per row; `reference` draws a dashed line (None: no line)."""
    top, bottom = 34, 34 + ROW * max(len(rows), 1)
    right = WIDTH - (170 if any(row.note for row in rows) else 20)
    numbers = [number for row in rows for number in (row.value, row.low, row.high)]
    scale = fitted(numbers, LABEL_WIDTH, right, include=() if reference is None else (reference,))
    parts = svg.x_axis(scale, top, bottom, x_label)
    if reference is not None:
        at = scale.at(reference)
        parts.append(svg.line(at, top - 4, at, bottom, stroke=svg.INK, dash="4 3"))
    for index, row in enumerate(rows):
        y = top + ROW * (index + 0.5)
        parts.append(svg.row_label(LABEL_WIDTH - 10, y + 4, row.label))
        parts.append(svg.text(right + 12, y + 4, svg.shortened(row.note, 26), size=11, fill=svg.FAINT))
        if row.value is None:
            parts.append(
                svg.text((LABEL_WIDTH + right) / 2, y + 4, "no data", anchor="middle", fill=svg.FAINT)
            )
            continue
        tip = describe(row)
        if row.low is not None and row.high is not None:
            parts.append(svg.line(scale.at(row.low), y, scale.at(row.high), y, stroke=svg.colour(0), width=3))
            parts += [
                svg.line(scale.at(end), y - 5, scale.at(end), y + 5, stroke=svg.colour(0), width=2)
                for end in (row.low, row.high)
            ]
        parts.append(svg.mark(scale.at(row.value), y, size=5, tip=tip))
    return svg.picture(WIDTH, bottom + 42, title, "; ".join(describe(row) for row in rows), parts)


def describe(row: IntervalRow) -> str:
    """The row in words."""
    if row.value is None:
        return f"{row.label}: no data"
    words = f"{row.label}: {tick_text(row.value)}"
    if row.low is not None and row.high is not None:
        words += f" [{tick_text(row.low)}, {tick_text(row.high)}]"
    return words
