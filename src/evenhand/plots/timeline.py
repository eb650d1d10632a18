"""Values over time with their uncertainty. A gap stays a gap: it is hatched and named, never a zero. What was measured in
another way is another series, with a line of its own."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from evenhand.plots import svg
from evenhand.plots.scale import Scale, fitted, tick_text

LEFT, RIGHT = 6.0, 98.5
TOP, BOTTOM = 26, 196
HEIGHT = BOTTOM + 26
MOST_LABELS = 5


class Step(Struct, frozen=True, kw_only=True):
    """One stretch of time."""

    label: str
    """Its name on the axis, such as a date."""
    value: float | None
    """None where nothing was measured."""
    low: float | None = None
    """The lower end of its interval."""
    high: float | None = None
    """The upper end."""
    note: str = ""
    """More about it under the pointer, such as a count."""
    series: str = ""
    """What measured it, such as a version of a judge. Where it changes, a new line begins."""


def timeline(
    steps: Sequence[Step],
    *,
    title: str,
    tone: str = "accent",
    write: Callable[[float], str] = tick_text,
    floor: float | None = None,
    gap: str = "nothing measured",
    bounds: tuple[float, float] = (float("-inf"), float("inf")),
) -> str:
    """A line per stretch without gaps, its band behind it, and hatching where nothing was measured.

    `floor` is kept in view; `bounds` are what the values cannot leave.
    """
    steps = [_within(step, bounds) for step in steps]
    ends = [one for step in steps for one in (step.value, step.low, step.high)]
    y = fitted(ends, BOTTOM, TOP, include=() if floor is None else (floor,))
    low, high = max(y.low, bounds[0]), min(y.high, bounds[1])
    y = type(y)(low, high if high > low else low + 1, BOTTOM, TOP)
    width = (RIGHT - LEFT) / max(len(steps) - 1, 1)
    colour = "var(--err-fill, #c2255c)" if tone == "error" else svg.TONES[tone]
    parts = [*_grid(y, write)]
    widest = max((len(list(some)) for missing, some in _stretches(steps) if missing), default=0)
    hatch = f"gap-{crc32(title.encode()):x}"  # pictures of one page must not share an id
    drawn: list[str] = []
    marks: list[str] = []
    names = list(dict.fromkeys(step.series for step in steps if step.value is not None))
    before, changes = "", 0
    for missing, some in _stretches(steps):
        stretch = list(some)
        first, last = stretch[0][0], stretch[-1][0]
        if missing:
            # One gap is named, so that names do not run into each other.
            named = len(stretch) == widest and first > 0 and last < len(steps) - 1
            parts += _hatched(hatch, first, last, width, gap if named else "")
            widest += named
            continue
        own = stretch[0][1].series
        if len(names) > 1:
            colour = svg.colour(names.index(own))
            if own != before:
                at = LEFT + (first - 0.5) * width
                marks += _begins(own, at, to_left=first > len(steps) / 2, line=changes)
                changes += 1
        before = own
        drawn += _band(stretch, width, y.at, colour)
        spots = [(LEFT + at * width, y.at(step.value or 0.0)) for at, step in stretch]
        if len(spots) > 1:
            drawn.append(svg.path(spots, stroke=colour))
        marks += _points(stretch, width, y.at, colour, write, alone=len(spots) == 1)
    parts.append(svg.stretched(HEIGHT, drawn))
    return svg.picture(
        HEIGHT, title, _words(steps, write), [_hatch(hatch), *parts, *marks, *_labels(steps, width)]
    )


def _stretches(steps: Sequence[Step]) -> Iterator[tuple[bool, Iterator[tuple[int, Step]]]]:
    """The steps with their positions, by whether nothing was measured and by series."""
    for (missing, _), some in groupby(
        enumerate(steps),
        key=lambda pair: (pair[1].value is None, pair[1].value is not None and pair[1].series),
    ):
        yield missing, some


def _begins(name: str, at: float, *, to_left: bool, line: int) -> Iterator[str]:
    """Where another series begins, with its name; names on different lines do not run into each other."""
    at = max(at, LEFT)
    yield svg.line(at, TOP - 6, at, BOTTOM, stroke=svg.LIMIT, dash="1 3")
    words = f"{svg.shortened(name, 28)} from here"
    anchor, dx = ("end", -6) if to_left else ("start", 6)
    yield svg.text(at, BOTTOM - 6 - 16 * (line % 3), words, anchor=anchor, dx=dx, halo=True)


def _within(step: Step, bounds: tuple[float, float]) -> Step:
    """The step with its interval cut to what is possible."""
    if step.low is None or step.high is None:
        return step
    return replace(step, low=max(step.low, bounds[0]), high=min(step.high, bounds[1]))


def _hatch(name: str) -> str:
    return (
        f"<defs><pattern id='{name}' width='5' height='5' patternUnits='userSpaceOnUse' "
        f"patternTransform='rotate(45)'><path d='M0 0v5' stroke='{svg.FAINT}' stroke-width='1'/></pattern></defs>"
    )


def _grid(y: Scale, write: Callable[[float], str]) -> Iterator[str]:
    for tick in y.ticks(3):
        at = y.at(tick)
        yield svg.line(0, at, 100, at, stroke=svg.GRID)
        yield svg.text(0, at - 4, write(tick), halo=True)


def _hatched(name: str, first: int, last: int, width: float, gap: str) -> Iterator[str]:
    start, end = LEFT + (first - 0.5) * width, LEFT + (last + 0.5) * width
    start, end = max(start, LEFT), min(end, RIGHT)
    yield svg.rectangle(start, TOP - 6, end - start, BOTTOM - TOP + 6, fill=f"url(#{name})", opacity=0.3)
    if gap:
        yield svg.text((start + end) / 2, TOP - 12, gap, anchor="middle")


def _band(
    stretch: Sequence[tuple[int, Step]], width: float, at_y: Callable[[float], float], colour: str
) -> Iterator[str]:
    for known, some in groupby(
        stretch, key=lambda pair: pair[1].low is not None and pair[1].high is not None
    ):
        ends = list(some)
        if not known:
            continue
        over = [(LEFT + at * width, at_y(step.high or 0.0)) for at, step in ends]
        under = [(LEFT + at * width, at_y(step.low or 0.0)) for at, step in reversed(ends)]
        if len(ends) == 1:  # a band of one day is as wide as half a day
            (x, top), (_, bottom) = over[0], under[0]
            over, under = (
                [(x - width / 4, top), (x + width / 4, top)],
                [(x + width / 4, bottom), (x - width / 4, bottom)],
            )
        yield svg.area(over + under, fill=colour)


def _points(
    stretch: Sequence[tuple[int, Step]],
    width: float,
    at_y: Callable[[float], float],
    colour: str,
    write: Callable[[float], str],
    *,
    alone: bool,
) -> Iterator[str]:
    for at, step in stretch:
        value = step.value or 0.0
        interval = (
            "" if step.low is None or step.high is None else f" ({write(step.low)} to {write(step.high)})"
        )
        more = "".join(f", {text}" for text in (step.series, step.note) if text)
        tip = f"{step.label}: {write(value)}{interval}{more}"
        newest = at == stretch[-1][0] and not alone
        yield svg.dot(LEFT + at * width, at_y(value), tone=colour, size=4 if newest or alone else 2, tip=tip)


def _labels(steps: Sequence[Step], width: float) -> Iterator[str]:
    every = max(1, -(-(len(steps) - 1) // (MOST_LABELS - 1)))
    shown = [at for at in range(0, len(steps), every) if len(steps) - 1 - at >= every * 0.8]
    for at in [*shown, len(steps) - 1]:
        anchor = "start" if at == 0 else "end" if at == len(steps) - 1 else "middle"
        yield svg.text(LEFT + at * width, BOTTOM + 18, steps[at].label, anchor=anchor)


def _words(steps: Sequence[Step], write: Callable[[float], str]) -> str:
    return "; ".join(
        f"{step.label}: {'nothing' if step.value is None else write(step.value)}"
        f"{', ' + step.series if step.series and step.value is not None else ''}"
        for step in steps
    )
