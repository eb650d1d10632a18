"""What a judge says against what people say: a dot for each stretch of the judge's values, on two axes from 0 to 1."""

from collections.abc import Sequence

from msgspec import Struct

from evenhand.plots import svg
from evenhand.plots.scale import Scale, tick_text

LEFT, RIGHT = 8.0, 97.0
TOP, BOTTOM = 30, 250
HEIGHT = BOTTOM + 42


class Bin(Struct, frozen=True, kw_only=True):
    """The items on which the judge said about the same."""

    judge: float
    """The mean of the judge's values."""
    people: float
    """The mean of what people said."""
    low: float | None
    """The lower end of the people's interval; None where there are too few items for one."""
    high: float | None
    """Its upper end."""
    count: int
    """How many items."""


def reliability(bins: Sequence[Bin], *, title: str) -> str:
    """Dots on the diagonal: people say what the judge says. Below it the judge is too kind, above it too strict."""
    x = Scale(0.0, 1.0, LEFT, RIGHT)
    y = Scale(0.0, 1.0, BOTTOM, TOP)
    parts = [*svg.y_axis(y, "people"), *svg.x_axis(x, TOP, BOTTOM, "judge")]
    parts.append(svg.line(x.at(0), y.at(0), x.at(1), y.at(1), stroke=svg.LIMIT, dash="4 3"))
    parts.append(svg.text(x.at(0.02), y.at(0.93), "too strict", anchor="start", halo=True))
    parts.append(svg.text(x.at(0.98), y.at(0.06), "too kind", anchor="end", halo=True))
    for one in bins:
        if one.low is not None and one.high is not None:
            at = x.at(one.judge)
            parts.append(svg.line(at, y.at(one.low), at, y.at(one.high), stroke=svg.TONES["accent"], width=3))
        parts.append(
            svg.dot(x.at(one.judge), y.at(one.people), tone=svg.TONES["accent"], tip=_words(one), size=5)
        )
        parts.append(svg.text(x.at(one.judge), y.at(one.people) + 4, f"{one.count:,}", dx=9, halo=True))
    return svg.picture(HEIGHT, title, "; ".join(_words(one) for one in bins) or "no data", parts)


def _words(one: Bin) -> str:
    interval = (
        "" if one.low is None or one.high is None else f" ({tick_text(one.low)} to {tick_text(one.high)})"
    )
    return f"judge {tick_text(round(one.judge, 2))}, people {tick_text(round(one.people, 2))}{interval}, {one.count:,} items"
