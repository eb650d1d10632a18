"""The few SVG elements that the pictures are made of. All text is escaped here and nowhere else.

Positions along x are percentages of the picture's width and those along y are pixels: a picture fills the card it
stands in, and its text keeps its size. Colours are CSS variables in presentation attributes; a `style` attribute would
be refused under `default-src 'self'`.
"""

import re
from collections.abc import Iterable
from html import escape

from evenhand.plots.scale import Scale, tick_text

# Colours that people with the common kinds of colour blindness tell apart (Okabe and Ito).
SERIES_COLOURS = (
    "var(--accent-fill, #0072b2)",
    "var(--bad-fill, #d55e00)",
    "var(--good-fill, #009e73)",
    "#cc79a7",
    "var(--warn-fill, #b8860b)",
    "#56b4e9",
)
TONES = {
    "accent": "var(--accent-fill, #0072b2)",
    "good": "var(--good-fill, #009e73)",
    "bad": "var(--bad-fill, #d55e00)",
    "warn": "var(--warn-fill, #e69f00)",
    "plain": "var(--ink3, #63676e)",
}
INK = "var(--ink, #1a1c1f)"
FAINT = "var(--ink3, #63676e)"
GRID = "var(--line, #e3e2dd)"
CARD = "var(--card, #fff)"
LIMIT = "var(--ink2, #494d53)"
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


def colour(index: int) -> str:
    """The colour of the series number `index`."""
    return SERIES_COLOURS[index % len(SERIES_COLOURS)]


def picture(height: float, title: str, description: str, body: Iterable[str]) -> str:
    """An SVG document as wide as its place, with an accessible name and description."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' class='picture' width='100%' height='{height:.0f}' role='img' "
        f"aria-label='{safe(title)}'><title>{safe(title)}</title><desc>{safe(description)}</desc>{''.join(body)}</svg>"
    )


def without_forbidden(value: str) -> str:
    """`value` without the characters that XML forbids and halves of surrogate pairs, which UTF-8 cannot hold."""
    if value.isprintable():  # most texts; the pattern costs more
        return value
    return _FORBIDDEN.sub("", value)


def safe(value: str) -> str:
    """`value` as SVG or HTML text or attribute."""
    return escape(without_forbidden(value), quote=True)


def text(
    x: float,
    y: float,
    value: str,
    *,
    anchor: str = "start",
    fill: str = FAINT,
    halo: bool = False,
    dx: float = 0,
) -> str:
    """A line of text, `dx` pixels beside `x`; a `halo` in the card's colour keeps it readable over lines."""
    around = f" paint-order='stroke' stroke='{CARD}' stroke-width='4'" if halo else ""
    beside = f" dx='{dx:g}'" if dx else ""
    return (
        f"<text x='{x:.2f}%' y='{y:.1f}'{beside} text-anchor='{anchor}' font-size='12' fill='{fill}'{around}>"
        f"{safe(value)}</text>"
    )


def line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1, dash: str = ""
) -> str:
    """A straight line."""
    dashed = f" stroke-dasharray='{dash}'" if dash else ""
    return (
        f"<line x1='{x1:.2f}%' y1='{y1:.1f}' x2='{x2:.2f}%' y2='{y2:.1f}' stroke='{stroke}' "
        f"stroke-width='{width:g}'{dashed}/>"
    )


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    opacity: float = 1,
    tip: str = "",
    radius: float = 0,
) -> str:
    """A filled rectangle with an optional tool tip."""
    return (
        f"<rect x='{x:.2f}%' y='{y:.1f}' width='{max(width, 0):.2f}%' height='{max(height, 0):.1f}' rx='{radius:g}' "
        f"fill='{fill}' fill-opacity='{opacity:g}'>{_tip(tip)}</rect>"
    )


def dot(x: float, y: float, *, tone: str, size: float = 5, hollow: bool = False, tip: str = "") -> str:
    """An estimate: filled where it is shown, hollow where it is not yet."""
    colours = f"fill='{CARD}' stroke='{tone}' stroke-width='2'" if hollow else f"fill='{tone}'"
    return f"<circle cx='{x:.2f}%' cy='{y:.1f}' r='{size:g}' {colours}>{_tip(tip)}</circle>"


def mark(x: float, y: float, *, index: int = 0, size: float = 4.5, opacity: float = 1, tip: str = "") -> str:
    """A point; its shape and colour tell the series, so that it can be read without colour."""
    look = f"fill='{colour(index)}' fill-opacity='{opacity:g}'"
    match index % 4:
        case 0:
            return f"<circle cx='{x:.2f}%' cy='{y:.1f}' r='{size:g}' {look}>{_tip(tip)}</circle>"
        case 1:
            points = [(0, -size * 1.2), (size * 1.2, 0), (0, size * 1.2), (-size * 1.2, 0)]
        case 2:
            points = [(-size, -size), (size, -size), (size, size), (-size, size)]
        case _:
            points = [(0, -size * 1.2), (size * 1.1, size), (-size * 1.1, size)]
    corners = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    # Corners cannot be percentages: a small drawing stands at the point.
    return f"<svg x='{x:.2f}%' y='{y:.1f}' overflow='visible'><polygon points='{corners}' {look}>{_tip(tip)}</polygon></svg>"


def stretched(height: float, body: Iterable[str]) -> str:
    """Paths, whose points cannot be percentages: drawn on 100 units and stretched to the picture's width."""
    return (
        f"<svg viewBox='0 0 100 {height:g}' width='100%' height='{height:g}' preserveAspectRatio='none'>"
        f"{''.join(body)}</svg>"
    )


def path(points: Iterable[tuple[float, float]], *, stroke: str, width: float = 2) -> str:
    """A line through `points`; belongs into `stretched`."""
    return (
        f"<path d='M{_steps(points)}' fill='none' stroke='{stroke}' stroke-width='{width:g}' "
        "vector-effect='non-scaling-stroke'/>"
    )


def area(points: Iterable[tuple[float, float]], *, fill: str, opacity: float = 0.18) -> str:
    """A filled shape; belongs into `stretched`."""
    return f"<path d='M{_steps(points)} Z' fill='{fill}' fill-opacity='{opacity:g}'/>"


def x_axis(scale: Scale, top: float, bottom: float, label: str) -> list[str]:
    """Grid lines, tick labels and a name along the bottom."""
    parts = []
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(line(x, top, x, bottom, stroke=GRID))
        parts.append(text(x, bottom + 16, tick_text(tick), anchor="middle"))
    parts.append(text((scale.start + scale.end) / 2, bottom + 34, label, anchor="middle"))
    return parts


def y_axis(scale: Scale, label: str) -> list[str]:
    """Grid lines with their values above them at the left, and a name over them all."""
    parts = []
    for tick in scale.ticks(4):
        y = scale.at(tick)
        parts.append(line(0, y, 100, y, stroke=GRID))
        parts.append(text(0, y - 4, tick_text(tick), halo=True))
    parts.append(text(0, 12, label))
    return parts


def shortened(value: str, length: int) -> str:
    """`value`, cut to `length` characters."""
    return value if len(value) <= length else value[: length - 1] + "…"


def _steps(points: Iterable[tuple[float, float]]) -> str:
    return " L".join(f"{x:.2f} {y:.1f}" for x, y in points)


def _tip(tip: str) -> str:
    return f"<title>{safe(tip)}</title>" if tip else ""
