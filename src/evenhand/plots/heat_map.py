"""A table of numbers as shades."""

from collections.abc import Sequence

from evenhand.plots import svg
from evenhand.plots.scale import tick_text

CELL_HEIGHT = 24
LABEL_WIDTH = 210


def heat_map(
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    cells: Sequence[Sequence[float | None]],
    *,
    title: str,
    low: float = 0.0,
    high: float = 1.0,
) -> str:
    """One cell per number, darker for higher; None is hatched as missing. The number stands in the cell."""
    if len(cells) != len(row_labels) or any(len(row) != len(column_labels) for row in cells):
        raise ValueError("cells must have one row per row label and one entry per column label")
    width = max(60.0, min(130.0, 520 / max(len(column_labels), 1)))
    top = 52
    parts = [
        svg.text(
            LABEL_WIDTH + width * (index + 0.5),
            top - 8,
            svg.shortened(name, int(width / 7)),
            anchor="middle",
            size=11,
        )
        for index, name in enumerate(column_labels)
    ]
    words = []
    for row, (label, values) in enumerate(zip(row_labels, cells, strict=True)):
        y = top + CELL_HEIGHT * row
        parts.append(svg.row_label(LABEL_WIDTH - 10, y + 16, label))
        for column, value in enumerate(values):
            x = LABEL_WIDTH + width * column
            tip = f"{label}, {column_labels[column]}: {'no data' if value is None else tick_text(value)}"
            words.append(tip)
            parts += _cell(x, y, width, value, low, high, tip)
    height = top + CELL_HEIGHT * len(row_labels) + 10
    return svg.picture(
        LABEL_WIDTH + width * len(column_labels) + 20, height, title, "; ".join(words[:200]), parts
    )


def _cell(
    x: float, y: float, width: float, value: float | None, low: float, high: float, tip: str
) -> list[str]:
    if value is None:
        return [
            svg.rectangle(
                x + 1, y + 1, width - 2, CELL_HEIGHT - 2, fill=svg.GRID, opacity=0.5, tip=tip, radius=2
            ),
            svg.text(x + width / 2, y + 16, "–", anchor="middle", size=11, fill=svg.FAINT),
        ]
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    dark = share > 0.55
    return [
        svg.rectangle(
            x + 1,
            y + 1,
            width - 2,
            CELL_HEIGHT - 2,
            fill=svg.colour(0),
            opacity=0.06 + 0.94 * share,
            tip=tip,
            radius=2,
        ),
        svg.text(
            x + width / 2,
            y + 16,
            tick_text(value),
            anchor="middle",
            size=11,
            fill="#ffffff" if dark else svg.INK,
        ),
    ]
