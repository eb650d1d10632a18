"""Pictures as SVG text, and self-contained HTML reports. Pure: numbers in, text out.

Every picture has a title and a description for those who do not see it, works in light and dark, needs no
script and no network, and escapes every label.
"""

from evenhand.plots.bars import Bar, bars
from evenhand.plots.document import (
    Badge,
    Columns,
    Details,
    Figure,
    Paragraph,
    Preformatted,
    Section,
    Table,
    document,
)
from evenhand.plots.forest import IntervalRow, forest
from evenhand.plots.heat_map import heat_map
from evenhand.plots.histogram import histogram
from evenhand.plots.series import Band, Point, Series, lines, scatter

__all__ = [
    "Badge",
    "Band",
    "Bar",
    "Columns",
    "Details",
    "Figure",
    "IntervalRow",
    "Paragraph",
    "Point",
    "Preformatted",
    "Section",
    "Series",
    "Table",
    "bars",
    "document",
    "forest",
    "heat_map",
    "histogram",
    "lines",
    "scatter",
]
