"""Tables of pages: drawn by the macro `grid` of `parts.html`, exported as CSV and JSON exactly as they are on screen."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

Tone = Literal["good", "bad", "warn", "err", "info", "plain", "unk"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Column(Struct, frozen=True, kw_only=True):
    """A column."""

    name: str
    """Its head; also its name in exports."""
    kind: Literal["text", "num", "cut", "plot"] = "text"
    """`num`: aligned to the right; `cut`: takes the room that is left, one line; `plot`: pictures, as wide as the rest."""
    hide_name: bool = False
    """The head is for screen readers only."""
    sort: str = ""
    """The address that orders the table by this column; empty where that is not possible."""
    order: Literal["", "ascending", "descending"] = ""
    """How the table is ordered by this column now."""
    picture: str = ""
    """An axis made by `evenhand.plots` that the pictures below share."""


class Button(Struct, frozen=True, kw_only=True):
    """A form of one button, in a cell."""

    text: str
    """What it does."""
    about: str
    """To what, for screen readers."""
    action: str
    """Where it posts to."""
    fields: dict[str, str] = {}
    """What it posts."""


class Cell(Struct, frozen=True, kw_only=True):
    """A cell: text with what stands beside it."""

    text: str = ""
    """What it says."""
    value: Any = None
    """What exports say instead, such as the number behind `1.2s`; None: the text."""
    href: str = ""
    """A link; the first link of a row is the row's own."""
    badge: Tone | None = None
    """The text as a badge of this tone; the words carry the meaning."""
    note: str = ""
    """Small words after it, such as an interval."""
    below: str = ""
    """Small words under it."""
    instant: str = ""
    """An instant; shown as an age, with the instant itself under the pointer."""
    picture: str = ""
    """A picture made by `evenhand.plots`."""
    button: Button | None = None
    """A button instead of text."""
    check: tuple[str, str, bool] | None = None
    """A box to tick instead of text: the field's name, its value, whether it is ticked. The text names it."""
    quiet: bool = False
    """Less important than the rest."""

    def exported(self) -> Any:
        """What an export says."""
        return self.text if self.value is None else self.value


class Row(Struct, frozen=True, kw_only=True):
    """A row. With `href` all of it is a link, which stands in its first cell of kind `cut` or text."""

    cells: Sequence[Cell]
    href: str = ""
    """Where the row leads to."""
    current: bool = False
    """The row that is open or picked."""
    anchor: str = ""
    """Its id in the page."""


class Grid(Struct, frozen=True, kw_only=True):
    """A table."""

    caption: str
    """What it shows, for screen readers."""
    columns: Sequence[Column]
    rows: Sequence[Row]
    exported_columns: Sequence[int] | None = None
    """The columns that exports have, by position; None for all."""

    def _positions(self) -> Sequence[int]:
        return range(len(self.columns)) if self.exported_columns is None else self.exported_columns

    def records(self) -> list[dict[str, Any]]:
        """One object per row."""
        names, places = self.heads(), list(self._positions())
        return [
            {name: row.cells[at].exported() for name, at in zip(names, places, strict=True)}
            for row in self.rows
        ]

    def heads(self) -> list[str]:
        """The names of the exported columns, each once: a scorer may be called like another column."""
        found: list[str] = []
        for at in self._positions():
            name, number = self.columns[at].name, 2
            while name in found:
                name, number = f"{self.columns[at].name} ({number})", number + 1
            found.append(name)
        return found

    def lines(self) -> list[list[Any]]:
        """Heads and rows for CSV; text that a spreadsheet would take for a formula gets an apostrophe before it."""
        rows = [[row.cells[at].exported() for at in self._positions()] for row in self.rows]
        return [[_plain(value) for value in row] for row in (self.heads(), *rows)]


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
