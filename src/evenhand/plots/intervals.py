"""An estimate with its interval as a small picture for a table's cell; all rows of a column share one axis."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import Scale, fitted, tick_text

HEIGHT = 32
AXIS_HEIGHT = 20
LEFT, RIGHT = 4.0, 96.0

Tone = Literal["good", "bad", "warn", "accent", "plain"]


class IntervalRow(Struct, frozen=True, kw_only=True):
    """One estimate."""

    label: str
    """What was estimated."""
    value: float | None
    """The estimate; None when there is none, which is drawn as a hatched bar, not as zero."""
    low: float | None = None
    """The lower end of the interval."""
    high: float | None = None
    """The upper end of the interval."""
    corrected: tuple[float, float] | None = None
    """The interval after a correction for several tests: a thin line beyond the thick one."""
    tone: Tone = "accent"
    """The colour; the words beside it carry the meaning."""
    shown: bool = True
    """Whether the data show it: a filled dot; a hollow one where they do not yet."""


def interval_scale(rows: Sequence[IntervalRow], include: Sequence[float] = ()) -> Scale:
    """One axis for all rows; `include` are the reference and limits that must be on it."""
    numbers = [n for row in rows for n in (row.value, row.low, row.high, *(row.corrected or ()))]
    return fitted(numbers, LEFT, RIGHT, include=include)


def interval_axis(scale: Scale) -> str:
    """Tick labels for the head of the column."""
    labels = [svg.text(scale.at(tick), 14, tick_text(tick), anchor="middle") for tick in scale.ticks(4)]
    return (
        f"<svg class='picture' width='100%' height='{AXIS_HEIGHT}' aria-hidden='true'>{''.join(labels)}</svg>"
    )


def interval_picture(
    row: IntervalRow,
    scale: Scale,
    *,
    reference: float | None = None,
    limit: float | None = None,
    ticks: bool = True,
) -> str:
    """The row against the `reference` (solid) and a `limit` that somebody set (dashed); `ticks` only where the head
    of the column names them."""
    middle = HEIGHT / 2
    parts = []
    if ticks:
        parts += [
            svg.line(scale.at(tick), 0, scale.at(tick), HEIGHT, stroke=svg.GRID) for tick in scale.ticks(4)
        ]
    if reference is not None:
        parts.append(svg.line(scale.at(reference), 0, scale.at(reference), HEIGHT, stroke=svg.FAINT))
    if limit is not None:
        parts.append(
            svg.line(scale.at(limit), 0, scale.at(limit), HEIGHT, stroke=svg.LIMIT, width=1.5, dash="4 3")
        )
    words = describe(row)
    if row.value is None:
        parts.append(svg.text(50, middle + 4, "no data", anchor="middle", halo=True))
        return svg.picture(HEIGHT, row.label, words, parts)
    tone = svg.TONES[row.tone]
    if row.corrected is not None:
        low, high = row.corrected
        parts.append(svg.line(scale.at(low), middle, scale.at(high), middle, stroke=tone, width=1.5))
    if row.low is not None and row.high is not None:
        parts.append(svg.line(scale.at(row.low), middle, scale.at(row.high), middle, stroke=tone, width=3))
    parts.append(svg.dot(scale.at(row.value), middle, tone=tone, hollow=not row.shown, tip=words))
    return svg.picture(HEIGHT, row.label, words, parts)


def bar_picture(label: str, value: float | None, scale: Scale, *, tone: Tone = "accent") -> str:
    """A bar from zero; None is drawn as words."""
    if value is None:
        return svg.picture(HEIGHT, label, f"{label}: no data", [svg.text(LEFT, HEIGHT / 2 + 4, "no data")])
    words = f"{label}: {tick_text(value)}"
    start, end = sorted((scale.at(0.0), scale.at(value)))
    bar = svg.rectangle(start, 9, end - start, HEIGHT - 18, fill=svg.TONES[tone], tip=words, radius=3)
    return svg.picture(HEIGHT, label, words, [bar])


def bar_scale(values: Sequence[float | None]) -> Scale:
    """One axis for the bars of a column, zero at its left end."""
    most = max((value for value in values if value is not None), default=0.0)
    return Scale(0.0, most if most > 0 else 1.0, 0.0, RIGHT)


def describe(row: IntervalRow) -> str:
    """The row in words."""
    if row.value is None:
        return f"{row.label}: no data"
    words = f"{row.label}: {tick_text(row.value)}"
    if row.low is not None and row.high is not None:
        words += f" [{tick_text(row.low)}, {tick_text(row.high)}]"
    return words
