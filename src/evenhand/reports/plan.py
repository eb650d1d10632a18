"""The plan of a comparison: problems, repeats, cost and power."""

from evenhand.compare.planning import SMALLER_BY, Planned
from evenhand.plots import Point, Series, lines
from evenhand.reports.components import Figure, Section, Table, Tile, Tiles, numbers
from evenhand.reports.numbers import counted, number
from evenhand.reports.rendering import document


def plan_table(planned: Planned) -> tuple[list[str], list[list[str]]]:
    """The plans: columns and text cells. Without prices there is no cost."""
    columns = ["problems", "repeats", "answers (both sides)", "power"]
    rows = [
        [f"{plan.problems:,}", f"{plan.repeats}", f"{plan.answers:,}", f"{plan.power:.1%}"]
        for plan in planned.plans
    ]
    if planned.priced:
        columns.insert(3, "cost (USD)")
        for row, plan in zip(rows, planned.plans, strict=True):
            row.insert(3, f"{plan.cost_usd or 0.0:,.2f}")
    return columns, rows


def reduction_table(planned: Planned) -> tuple[list[str], list[list[str]]]:
    """What a smaller standard error would take: columns and text cells. Without prices there is no cost."""
    rows = []
    for one in planned.reductions:
        share = "not measured" if one.share is None else f"{one.share:.0%}"
        none = "–" if one.share is None else "no number would do"
        needed = none if one.needed is None else f"{one.needed:,}"
        name = {"items": "problems", "repeats": "repeats", "judgements": "judgements per answer"}[one.lever]
        cost = ["–" if one.extra_cost is None else f"{one.extra_cost:,.2f}"] if planned.priced else []
        rows.append([name, share, f"{one.now:,}", needed, *cost])
    columns = ["more", "part of the noise", "now", "needed"]
    return [*columns, "extra cost (USD)"] if planned.priced else columns, rows


def plan_page(planned: Planned) -> str:
    """The plans as a table, and power against cost."""
    best = planned.plans[0]
    priced = planned.priced
    points = [
        Point(
            plan.problems if plan.cost_usd is None else plan.cost_usd,
            plan.power,
            f"{plan.problems:,} problems",
        )
        for plan in planned.curve
    ]
    title = f"Power to see {planned.effect * 100:.1f} points"
    chart = lines(
        [Series(counted(planned.curve[0].repeats, "repeat"), points)],
        title=title,
        x_label="cost (USD)" if priced else "problems",
        y_label="power",
        reference=planned.wanted_power,
    )
    tiles = [
        Tile("problems", f"{best.problems:,}", f"× {counted(best.repeats, 'repeat')} on each side"),
        Tile("effect to see", f"{planned.effect * 100:.1f} points", f"with {best.power:.0%} power"),
        Tile("answers", f"{best.answers:,}", "both sides together"),
        Tile("sd of a problem's difference", number(planned.noise.sd(best.repeats)), planned.noise.source),
    ]
    if priced:
        tiles.insert(3, Tile("cost", f"${best.cost_usd:,.2f}"))
    columns, rows = plan_table(planned)
    levers, reductions = reduction_table(planned)
    return document(
        "Plan of a comparison",
        [
            Section("", [Tiles(tiles)]),
            Section("Plans that reach it", [Table(numbers(*columns), rows)], half=True),
            Section(
                f"What a standard error smaller by {SMALLER_BY:.0%} would take",
                [Table([levers[0], *numbers(*levers[1:])], reductions)],
                half=True,
            ),
            Section("Power", [Figure(chart, title, "The dashed line is the wanted power.")], half=True),
        ],
        crumb="plan",
    )
