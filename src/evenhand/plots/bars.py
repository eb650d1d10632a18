"""Horizontal bars, with an interval where there is one."""

from collections.abc import Sequence

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import fitted, tick_text

ROW = 26
LABEL_WIDTH = 210
WIDTH = 760


class Bar(Struct, frozen=True):
    """One bar."""

    label: str
    """What it measures."""
    value: float | None
    """How long it is; None is drawn as words, not as zero."""
    low: float | None = None
    """The lower end of an interval."""
    high: float | None = None
    """The upper end of an interval."""


def bars(rows: Sequence[Bar], *, title: str, x_label: str) -> str:
    """One bar per row, from zero."""
    top, bottom = 34, 34 + ROW * max(len(rows), 1)
    right = WIDTH - 70
    scale = fitted(
        [n for row in rows for n in (row.value, row.low, row.high)], LABEL_WIDTH, right, include=(0.0,)
    )
    parts = svg.x_axis(scale, top, bottom, x_label)
    words = []
    for index, row in enumerate(rows):
        y = top + ROW * (index + 0.5)
        parts.append(svg.row_label(LABEL_WIDTH - 10, y + 4, row.label))
        if row.value is None:
            parts.append(svg.text(LABEL_WIDTH + 10, y + 4, "no data", fill=svg.FAINT))
            words.append(f"{row.label}: no data")
            continue
        words.append(f"{row.label}: {tick_text(row.value)}")
        x0, x1 = sorted((scale.at(0.0), scale.at(row.value)))
        parts.append(
            svg.rectangle(x0, y - 8, x1 - x0, 16, fill=svg.colour(0), opacity=0.75, tip=words[-1], radius=2)
        )
        far = x1
        if row.low is not None and row.high is not None:
            far = max(far, scale.at(row.high))
            parts.append(svg.line(scale.at(row.low), y, scale.at(row.high), y, width=2))
        parts.append(svg.text(far + 6, y + 4, tick_text(row.value), size=11))
    return svg.picture(WIDTH, bottom + 42, title, "; ".join(words), parts)
