"""Pictures as SVG text. Pure: numbers in, text out.

Every picture has a title and a description for those who do not see it, takes its colours from the stylesheet's
variables (light and dark), fills the place it stands in, needs no script and no network, holds no `style` attribute
and escapes every label. Rows with intervals or bars are pictures for the cells of a table, so that labels and numbers
are text; `reports.components` has the tables.
"""

from evenhand.plots.histogram import histogram
from evenhand.plots.intervals import (
    IntervalRow,
    bar_picture,
    bar_scale,
    interval_axis,
    interval_picture,
    interval_scale,
)
from evenhand.plots.reliability import Bin, reliability
from evenhand.plots.series import Band, Point, Series, lines, scatter
from evenhand.plots.timeline import Step, timeline

__all__ = [
    "Band",
    "Bin",
    "IntervalRow",
    "Point",
    "Series",
    "Step",
    "bar_picture",
    "bar_scale",
    "histogram",
    "interval_axis",
    "interval_picture",
    "interval_scale",
    "lines",
    "reliability",
    "scatter",
    "timeline",
]
