"""Points and lines of several series on two axes."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import Scale, fitted, tick_text

LEFT, RIGHT = 7.0, 98.0
TOP = 34
BOTTOM = 250
HEIGHT = BOTTOM + 42
MOST_MARKS = 60
"""A line of more points is drawn without marks."""


class Point(Struct, frozen=True):
    """A point with an optional name that shows under the pointer."""

    x: float
    y: float
    label: str = ""


class Series(Struct, frozen=True):
    """Points that belong together."""

    name: str
    """What it is called."""
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
    parts = [*svg.y_axis(y, y_label), *svg.x_axis(x, TOP, BOTTOM, x_label)]
    for index, one in enumerate(series):
        for point in one.points:
            tip = f"{point.label or one.name}: {tick_text(point.x)}, {tick_text(point.y)}"
            parts.append(svg.mark(x.at(point.x), y.at(point.y), index=index, opacity=0.8, tip=tip))
    return svg.picture(HEIGHT, title, _words(series), [*parts, *_names(series)])


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
    parts = [*svg.y_axis(y, y_label), *svg.x_axis(x, TOP, BOTTOM, x_label)]
    if reference is not None:
        parts.append(svg.line(0, y.at(reference), 100, y.at(reference), stroke=svg.LIMIT, dash="4 3"))
    drawn = []
    for band in bands:
        there = [(x.at(at), y.at(high)) for at, _, high in band.steps]
        back = [(x.at(at), y.at(low)) for at, low, _ in reversed(band.steps)]
        if there:
            drawn.append(svg.area(there + back, fill=svg.colour(band.index)))
    for index, one in enumerate(series):
        spots = [(x.at(point.x), y.at(point.y)) for point in one.points]
        if len(spots) > 1:
            drawn.append(svg.path(spots, stroke=svg.colour(index)))
    parts.append(svg.stretched(HEIGHT, drawn))
    for index, one in enumerate(series):
        for point in one.points if len(one.points) <= MOST_MARKS else ():
            tip = f"{point.label or one.name}: {tick_text(point.x)}, {tick_text(point.y)}"
            parts.append(svg.mark(x.at(point.x), y.at(point.y), index=index, size=3, tip=tip))
    return svg.picture(HEIGHT, title, _words(series), [*parts, *_names(series)])


def _scales(
    series: Sequence[Series], bands: Sequence[Band], include_y: Iterable[float] = ()
) -> tuple[Scale, Scale]:
    points = [point for one in series for point in one.points]
    band_xs = [step[0] for band in bands for step in band.steps]
    band_ys = [height for band in bands for step in band.steps for height in step[1:]]
    x = fitted([*(point.x for point in points), *band_xs], LEFT, RIGHT)
    y = fitted([*(point.y for point in points), *band_ys], BOTTOM, TOP, include=include_y)
    return x, y


def _names(series: Sequence[Series]) -> list[str]:
    """The names with their marks along the top right; one series needs none."""
    parts: list[str] = []
    if len(series) < 2:
        return parts
    share = 60.0 / len(series)
    for index, one in enumerate(series):
        at = 100 - share * (len(series) - index)
        parts.append(svg.mark(at, 9, index=index))
        parts.append(svg.text(at, 13, svg.shortened(one.name, 22), fill=svg.INK, dx=10))
    return parts


def _words(series: Sequence[Series]) -> str:
    return "; ".join(f"{one.name}: {len(one.points)} points" for one in series)
