"""How durations, tokens, costs, scores and differences are spread, and differences by category."""

from collections.abc import Sequence

from evenhand.core.objects.experiments import CategoryDelta, ItemComparison
from evenhand.core.objects.reviews import Estimate
from evenhand.plots import histogram
from evenhand.server.pages.estimates import estimates_grid
from evenhand.server.pages.grid import Cell, Grid
from evenhand.store.connection import Connection
from evenhand.store.totals import item_totals
from evenhand.store.traces import TraceFilter, list_traces

NEWEST_TRACES = 300
"""Traces that the pictures of a dashboard are about."""
MOST_ITEMS = 5_000
"""An experiment with more items has no picture of their scores: it would take too long to read them."""


def trace_pictures(connection: Connection, project_id: str) -> list[tuple[str, str]]:
    """Duration, tokens and cost of the newest traces: a heading and a picture each; none without traces."""
    found = list_traces(
        connection, project_id=project_id, narrow=TraceFilter(), before=None, limit=NEWEST_TRACES
    )
    rows = [row for _, row in found]
    values = {
        "Duration": ("seconds", [row.duration_ms / 1000 for row in rows if row.duration_ms is not None]),
        "Tokens": ("tokens", [float(row.tokens) for row in rows if row.tokens]),
        "Cost": ("dollars", [row.cost_usd for row in rows if row.cost_usd]),
    }
    return [
        (name, histogram({"newest traces": own}, title=f"{name} of the newest traces", x_label=unit))
        for name, (unit, own) in values.items()
        if len(own) > 1
    ]


def score_pictures(
    connection: Connection, experiment_id: str, scorers: Sequence[str], items: int
) -> list[tuple[str, str]]:
    """How the mean scores of an experiment's items are spread, for scorers with numbers."""
    if items > MOST_ITEMS:
        return []
    found = []
    for name in scorers:
        own = [
            float(one.total) / one.score_count
            for one in item_totals(connection, experiment_id, name).get(name, {}).values()
            if one.score_count
        ]
        if len(own) > 1:
            found.append(
                (name, histogram({"items": own}, title=f"{name} by item", x_label="mean of an item"))
            )
    return found


def delta_picture(items: Sequence[ItemComparison], scorer: str) -> str:
    """How the items moved; empty for labels."""
    deltas = [one.delta for one in items if one.delta is not None]
    if len(deltas) < 2:
        return ""
    return histogram(
        {"items": deltas}, title=f"{scorer}: difference by item", x_label="candidate minus base", bins=20
    )


def category_grid(categories: Sequence[CategoryDelta]) -> Grid | None:
    """The difference of each category with its interval; None without categories."""
    if len(categories) < 2:
        return None
    return estimates_grid(
        [
            (
                one.category,
                Estimate(
                    value=one.delta,
                    ci_lower=one.delta if one.ci_lower is None else one.ci_lower,
                    ci_upper=one.delta if one.ci_upper is None else one.ci_upper,
                    method="",
                    n=one.item_count,
                ),
                [Cell(text=f"{one.item_count:,}", value=one.item_count)],
            )
            for one in categories
        ],
        ("Category", "Items"),
        "Difference by category",
        include=(0.0,),
    )
