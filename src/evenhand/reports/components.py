"""The parts that a report is made of, as data; `templates/components.html` draws them.

Solid and filled is shown, striped and hollow is not yet shown, hatched is unknown, dashed is a limit that somebody set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from evenhand.plots import (
    IntervalRow,
    bar_picture,
    bar_scale,
    interval_axis,
    interval_picture,
    interval_scale,
)
from evenhand.reports.numbers import number

Tone = Literal["good", "bad", "warn", "plain"]


class Paragraph(Struct, frozen=True):
    """Plain text."""

    text: str


class Reason(Struct, frozen=True):
    """One line under a verdict, with a mark that says what it speaks for."""

    text: str
    tone: Tone = "plain"

    @property
    def mark(self) -> str:
        """✓ for, ✕ against, ! beware, ○ neither."""
        return {"good": "✓", "bad": "✕", "warn": "!", "plain": "○"}[self.tone]


class VerdictBanner(Struct, frozen=True, kw_only=True):
    """The largest thing on its page: one word or two, one sentence, the reasons, and what to do next."""

    name: str
    """The verdict itself."""
    sentence: str
    """What it says."""
    tone: Tone = "plain"
    """Its colour; the words carry the meaning."""
    shown: bool = True
    """Whether the data show it (solid edge, filled mark) or not yet (striped, hollow)."""
    reasons: Sequence[Reason] = ()
    """Why."""
    next_steps: Sequence[str] = ()
    """What to do about it."""


class Tile(Struct, frozen=True):
    """One figure that matters."""

    label: str
    """What it is."""
    value: str
    """The figure."""
    note: str = ""
    """Its interval, or a few words."""


class Tiles(Struct, frozen=True):
    """Figures side by side."""

    tiles: Sequence[Tile]


class Ledger(Struct, frozen=True, kw_only=True):
    """Every sample by what became of it: a failure is never a zero, and nothing leaves the count."""

    scored: int
    """With a score."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Without one, by reason."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Failed, by error."""
    note: str = ""
    """What follows for the mean."""


class Column(Struct, frozen=True):
    """A column of a table."""

    name: str
    """Its head."""
    kind: Literal["text", "number", "plot"] = "text"
    """Numbers are aligned to the right; plots take what width is left."""
    axis: str = ""
    """The axis that the pictures below share, made by `evenhand.plots`."""


class Cell(Struct, frozen=True):
    """A cell that is more than text."""

    text: str = ""
    """What it says."""
    note: str = ""
    """Small words after it, such as an interval."""
    below: str = ""
    """Small words under it."""
    tone: Tone | None = None
    """A colour; the words carry the meaning."""
    svg: str = ""
    """A picture made by `evenhand.plots`; it is put in as it is."""
    shade: int | None = None
    """From 0 (nothing) to 10 (all): the background of a number between two ends."""
    unknown: bool = False
    """Hatched: nobody knows the value."""


class Table(Struct, frozen=True):
    """Rows under a head; the first cell of a row names it."""

    columns: Sequence[Column | str]
    """A text stands for a column of text."""
    rows: Sequence[Sequence[Cell | str]]
    caption: str = ""


class Figure(Struct, frozen=True):
    """A picture made by `evenhand.plots`; it is put in as it is."""

    svg: str
    title: str = ""
    """What it shows, over it."""
    caption: str = ""
    """How to read it, under it."""


class Preformatted(Struct, frozen=True):
    """Text whose line breaks matter: an answer, a reply, a program."""

    text: str
    caption: str = ""


class Details(Struct, frozen=True):
    """Parts behind a line that opens on a click."""

    summary: str
    parts: Sequence["Part"]


class Fold(Struct, frozen=True, kw_only=True):
    """A row that opens: what it is about, what it shows, and everything behind it."""

    label: str
    """Which one: a number or a name."""
    text: str
    """One line of it."""
    badge: str = ""
    """A word such as the category."""
    value: str = ""
    """The figure at the right, such as `0.67 → 0.33`."""
    change: str = ""
    """The figure that the rows are ordered by."""
    tone: Tone | None = None
    """The colour of the change; its sign and words carry the meaning."""
    parts: Sequence["Part"] = ()
    """What opens."""


class Folds(Struct, frozen=True, kw_only=True):
    """Rows that open, under one head."""

    rows: Sequence[Fold]
    label: str = "#"
    text: str = ""
    value: str = ""
    change: str = ""


class Columns(Struct, frozen=True):
    """Parts side by side; one below the other where the screen is narrow."""

    parts: Sequence["Part"]


class Block(Struct, frozen=True, array_like=True):
    """A text under its caption."""

    caption: str
    text: str
    kind: int = 0
    """0 text, 1 text that stays folded, 2 a message with its role as the caption, 3 words of our own."""


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sample as the page shows it. The names are short because there are many of them."""

    i: int
    """Problem."""
    r: int = 0
    """Repeat."""
    s: str
    """Status."""
    v: list[float | str | None]
    """What each scorer says; null where there is no score."""
    w: str = ""
    """Why it counts as a failure, or why there is no score."""
    c: str | None = None
    """Category."""
    q: str = ""
    """The start of the question; empty for later repeats of a problem, as are `asked`."""
    a: str = ""
    """The start of the answer, or of the error."""
    f: str = ""
    """Tokens, time, attempts."""
    asked: list[Block] = []
    """Messages and target."""
    got: list[Block] = []
    """Thinking, answer, what was extracted."""
    why: list[Block] = []
    """What each scorer and the judge say."""


class Samples(Struct, frozen=True, kw_only=True):
    """Rows to filter and to open, made by `reports.samples`; shown a page at a time by `static/samples.js`."""

    first: Sequence[Row]
    """Shown without scripts."""
    scorers: Sequence[str]
    """Names of what `Row.v` holds."""
    chunks: Iterable[str]
    """All rows as JSON, safe inside a script element; `rendering.document_parts` puts them at the end of the file."""
    held: int
    """How many rows the data hold."""
    total: int
    """How many samples the run has."""


Part = (
    Paragraph
    | VerdictBanner
    | Tiles
    | Ledger
    | Table
    | Figure
    | Preformatted
    | Details
    | Folds
    | Columns
    | Samples
)


class Section(Struct, frozen=True):
    """A card: a heading with its parts. A verdict or tiles stand without a card."""

    heading: str
    parts: Sequence[Part]
    note: str = ""
    """How to read it, beside the heading."""
    half: bool = False
    """Takes half the width where there is room for two."""

    @property
    def bare(self) -> bool:
        """Whether it is drawn without a card."""
        return not self.heading and all(isinstance(part, VerdictBanner | Tiles) for part in self.parts)


def numbers(*names: str) -> list[Column]:
    """Columns of numbers."""
    return [Column(name, "number") for name in names]


def interval_table(
    rows: Sequence[tuple[IntervalRow, Sequence[Cell | str]]],
    *,
    label: str,
    value: str,
    others: Sequence[Column | str] = (),
    reference: float | None = None,
    limit: float | None = None,
    write: Callable[[float], str] = number,
    write_end: Callable[[float], str] = number,
    caption: str = "",
) -> Table:
    """Estimates with their intervals as numbers and as pictures on one axis, and the `others` columns after them.

    `write` writes an estimate and `write_end` the ends of its interval.
    """
    pictured = [row for row, _ in rows]
    scale = interval_scale(pictured, [n for n in (reference, limit) if n is not None])
    return Table(
        [
            Column(label),
            Column(value, "number"),
            Column(f"{value} as a plot", "plot", interval_axis(scale)),
            *others,
        ],
        [
            [
                row.label,
                Cell("no data", unknown=True)
                if row.value is None
                else Cell(write(row.value), _ends(row, write_end)),
                Cell(svg=interval_picture(row, scale, reference=reference, limit=limit)),
                *cells,
            ]
            for row, cells in rows
        ],
        caption,
    )


def _ends(row: IntervalRow, write: Callable[[float], str]) -> str:
    return "" if row.low is None or row.high is None else f"[{write(row.low)}, {write(row.high)}]"


def bar_table(
    rows: Sequence[tuple[str, float | None, Sequence[Cell | str]]],
    *,
    label: str,
    value: str,
    others: Sequence[Column | str] = (),
) -> Table:
    """Amounts as numbers and as bars on one axis, and the `others` columns after them."""
    scale = bar_scale([amount for _, amount, _ in rows])
    return Table(
        [Column(label), Column(value, "number"), Column(f"{value} as a plot", "plot"), *others],
        [
            [
                name,
                Cell("no data", unknown=True) if amount is None else f"{amount:,.10g}",
                Cell(svg=bar_picture(name, amount, scale)),
                *cells,
            ]
            for name, amount, cells in rows
        ],
    )


def shaded(value: float | None, *, digits: int = 3) -> Cell:
    """A share between 0 and 1 as a shaded cell; None is hatched."""
    if value is None:
        return Cell("no data", unknown=True)
    return Cell(number(value, digits), shade=min(10, max(0, round(value * 10))))
