"""A table of estimates with their intervals, whose pictures share one axis."""

from collections.abc import Sequence

from evenhand.core.objects.reviews import Estimate
from evenhand.metrics.types import Interval
from evenhand.plots.intervals import IntervalRow, interval_axis, interval_picture, interval_scale
from evenhand.server.pages.grid import Cell, Column, Grid, Row


def estimates_grid(
    rows: Sequence[tuple[str, Estimate | Interval | None, Sequence[Cell]]],
    names: Sequence[str],
    caption: str,
    *,
    include: Sequence[float] = (0.0, 1.0),
) -> Grid:
    """A table of estimates whose pictures share one axis."""
    drawn = [
        IntervalRow(
            label=label,
            value=None if found is None else found.value,
            low=None if found is None else found.ci_lower,
            high=None if found is None else found.ci_upper,
        )
        for label, found, _ in rows
    ]
    scale = interval_scale(drawn, include=include)
    return Grid(
        caption=caption,
        columns=[
            Column(name=names[0]),
            *(Column(name=name, kind="num") for name in names[1:]),
            Column(name="Value, 95 %", kind="num"),
            Column(name="On one axis", kind="plot", hide_name=True, picture=interval_axis(scale)),
        ],
        rows=[
            Row(
                cells=[
                    Cell(text=label),
                    *more,
                    Cell(
                        text="—" if found is None else f"{found.value:.2f}".replace("-", "−"),
                        value=None if found is None else found.value,
                        note=""
                        if found is None
                        else f"[{found.ci_lower:.2f}, {found.ci_upper:.2f}]".replace("-", "−"),
                    ),
                    Cell(picture=interval_picture(row, scale, reference=0.0), value=""),
                ]
            )
            for (label, found, more), row in zip(rows, drawn, strict=True)
        ],
        exported_columns=range(len(names) + 1),
    )
