"""Points and lines of several series on two axes."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import Scale, fitted, tick_text

WIDTH = 760
LEFT = 64
TOP = 74
BOTTOM = 340


class Point(Struct, frozen=True):
    """A point with an optional name that shows under the pointer."""

    x: float
    y: float
    label: str = ""


class Series(Struct, frozen=True):
    """Points that belong together."""

    name: str
    """What the legend says."""
    points: Sequence[Point]
    """In drawing order."""


class Band(Struct, frozen=True):
    """The uncertainty around a line: x, low and high per step."""

    steps: Sequence[tuple[float, float, float]]
    """(x, low, high) in drawing order."""
    index: int = 0
    """The series whose colour it takes."""


def scatter(series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """A mark per point; shape and colour tell the series."""
    x, y = _scales(series, ())
    parts = _frame(series, x, y, x_label, y_label)
    for index, one in enumerate(series):
        for point in one.points:
            tip = f"{point.label or one.name}: {tick_text(point.x)}, {tick_text(point.y)}"
            parts.append(svg.mark(x.at(point.x), y.at(point.y), index=index, opacity=0.8, tip=tip))
    return svg.picture(WIDTH, BOTTOM + 44, title, _words(series), parts)


def lines(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    bands: Sequence[Band] = (),
    reference: float | None = None,
) -> str:
    """A line with marks per series, bands behind them; `reference` draws a dashed horizontal line."""
    x, y = _scales(series, bands, include_y=() if reference is None else (reference,))
    parts = _frame(series, x, y, x_label, y_label)
    if reference is not None:
        parts.append(svg.line(LEFT, y.at(reference), WIDTH - 20, y.at(reference), dash="4 3"))
    for band in bands:
        there = [(x.at(at), y.at(high)) for at, _, high in band.steps]
        back = [(x.at(at), y.at(low)) for at, low, _ in reversed(band.steps)]
        if there:
            parts.append(svg.area(there + back, fill=svg.colour(band.index)))
    for index, one in enumerate(series):
        spots = [(x.at(point.x), y.at(point.y)) for point in one.points]
        if len(spots) > 1:
            parts.append(svg.path(spots, stroke=svg.colour(index)))
        if len(spots) <= 60:
            for point, (at_x, at_y) in zip(one.points, spots, strict=True):
                tip = f"{point.label or one.name}: {tick_text(point.x)}, {tick_text(point.y)}"
                parts.append(svg.mark(at_x, at_y, index=index, size=3, tip=tip))
    return svg.picture(WIDTH, BOTTOM + 44, title, _words(series), parts)


def _scales(
    series: Sequence[Series], bands: Sequence[Band], include_y: Iterable[float] = ()
) -> tuple[Scale, Scale]:
    points = [point for one in series for point in one.points]
    band_xs = [step[0] for band in bands for step in band.steps]
    band_ys = [height for band in bands for step in band.steps for height in step[1:]]
    x = fitted([*(point.x for point in points), *band_xs], LEFT, WIDTH - 20)
    y = fitted([*(point.y for point in points), *band_ys], BOTTOM, TOP, include=include_y)
    return x, y


def _frame(series: Sequence[Series], x: Scale, y: Scale, x_label: str, y_label: str) -> list[str]:
    return [
        *svg.legend([one.name for one in series], 0, 40),
        *svg.y_axis(y, LEFT, WIDTH - 20, y_label),
        *svg.x_axis(x, TOP, BOTTOM, x_label),
    ]


def _words(series: Sequence[Series]) -> str:
    return "; ".join(f"{one.name}: {len(one.points)} points" for one in series)
