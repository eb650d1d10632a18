"""The few SVG elements that the pictures are made of. All text is escaped here and nowhere else."""

from collections.abc import Iterable
from html import escape

from evenhand.plots.scale import Scale, tick_text

# Colours that people with the common kinds of colour blindness tell apart (Okabe and Ito).
SERIES_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
INK = "var(--ink, #1f2328)"
FAINT = "var(--faint, #6a737d)"
GRID = "var(--grid, #d8dee4)"
BACK = "var(--back, #fff)"
ROW_LABEL = 29
"""How many characters of a row's name fit beside a picture."""
FONT = "font-family='system-ui, sans-serif'"


def colour(index: int) -> str:
    """The colour of the series number `index`."""
    return SERIES_COLOURS[index % len(SERIES_COLOURS)]


def picture(width: float, height: float, title: str, description: str, body: Iterable[str]) -> str:
    """An SVG document with an accessible name and description."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' "
        f"style='min-width:min({width:.0f}px,34rem)' role='img' aria-label='{safe(title)}' {FONT}>"
        f"<title>{safe(title)}</title><desc>{safe(description)}</desc>"
        f"{text(0, 16, title, size=14, weight=600)}{''.join(body)}</svg>"
    )


def safe(value: str) -> str:
    """`value` as SVG or HTML text or attribute; characters that XML forbids are dropped."""
    return escape(
        "".join(
            c
            for c in value
            if c in "\t\n" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        ),
        quote=True,
    )


def text(
    x: float,
    y: float,
    value: str,
    *,
    anchor: str = "start",
    size: float = 12,
    fill: str = INK,
    weight: int = 400,
    halo: bool = False,
    tip: str = "",
) -> str:
    """A line of text; a `halo` in the page's colour keeps it readable where lines pass behind it."""
    around = f";paint-order:stroke;stroke:{BACK};stroke-width:4px" if halo else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size:g}' font-weight='{weight}' "
        f"style='fill:{fill}{around}'>{safe(value)}{_tip(tip)}</text>"
    )


def row_label(right: float, y: float, label: str) -> str:
    """The name of a row, ending at `right`; what is cut off shows when pointed at."""
    shown = shortened(label, ROW_LABEL)
    return text(right, y, shown, anchor="end", tip=label if shown != label else "")


def line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1, dash: str = ""
) -> str:
    """A straight line."""
    dashed = f" stroke-dasharray='{dash}'" if dash else ""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' style='stroke:{stroke}' "
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
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0):.1f}' height='{max(height, 0):.1f}' rx='{radius:g}' "
        f"style='fill:{fill}' fill-opacity='{opacity:g}'>{_tip(tip)}</rect>"
    )


def mark(x: float, y: float, *, index: int = 0, size: float = 4.5, opacity: float = 1, tip: str = "") -> str:
    """A point; its shape and colour tell the series, so that it can be read without colour."""
    style = f"style='fill:{colour(index)}' fill-opacity='{opacity:g}'"
    match index % 4:
        case 0:
            return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{size:g}' {style}>{_tip(tip)}</circle>"
        case 1:
            points = [(x, y - size * 1.2), (x + size * 1.2, y), (x, y + size * 1.2), (x - size * 1.2, y)]
        case 2:
            points = [(x - size, y - size), (x + size, y - size), (x + size, y + size), (x - size, y + size)]
        case _:
            points = [(x, y - size * 1.2), (x + size * 1.1, y + size), (x - size * 1.1, y + size)]
    corners = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f"<polygon points='{corners}' {style}>{_tip(tip)}</polygon>"


def path(points: Iterable[tuple[float, float]], *, stroke: str, width: float = 2) -> str:
    """A line through `points`."""
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"<path d='M{steps}' fill='none' style='stroke:{stroke}' stroke-width='{width:g}'/>"


def area(points: Iterable[tuple[float, float]], *, fill: str, opacity: float = 0.18) -> str:
    """A filled shape."""
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"<path d='M{steps} Z' style='fill:{fill}' fill-opacity='{opacity:g}'/>"


def x_axis(scale: Scale, top: float, bottom: float, label: str) -> list[str]:
    """Grid lines, tick labels and a name along the bottom."""
    parts = []
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(line(x, top, x, bottom, stroke=GRID))
        parts.append(text(x, bottom + 15, tick_text(tick), anchor="middle", size=11, fill=FAINT))
    parts.append(text((scale.start + scale.end) / 2, bottom + 33, label, anchor="middle", fill=FAINT))
    return parts


def y_axis(scale: Scale, left: float, right: float, label: str) -> list[str]:
    """Grid lines, tick labels and a name along the left side."""
    parts = []
    for tick in scale.ticks():
        y = scale.at(tick)
        parts.append(line(left, y, right, y, stroke=GRID))
        parts.append(text(left - 6, y + 4, tick_text(tick), anchor="end", size=11, fill=FAINT))
    parts.append(text(0, min(scale.start, scale.end) - 10, label, fill=FAINT))
    return parts


def legend(names: Iterable[str], x: float, y: float) -> list[str]:
    """Names of the series with their marks, one after the other."""
    parts = []
    for index, name in enumerate(names):
        shown = shortened(name, 28)
        parts += [mark(x + 5, y - 4, index=index), text(x + 15, y, shown)]
        x += 30 + 7 * len(shown)
    return parts


def shortened(value: str, length: int) -> str:
    """`value`, cut to `length` characters."""
    return value if len(value) <= length else value[: length - 1] + "…"


def _tip(tip: str) -> str:
    return f"<title>{safe(tip)}</title>" if tip else ""
