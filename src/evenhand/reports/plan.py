"""The plan of a comparison: problems, repeats, cost and power."""

from evenhand.compare.planning import SMALLER_BY, Planned
from evenhand.plots import Point, Series, lines
from evenhand.reports.components import Figure, Section, Table, Tile, Tiles, numbers
from evenhand.reports.numbers import counted, number
from evenhand.reports.rendering import document

COLUMNS = ["problems", "repeats", "answers (both sides)", "cost (USD)", "power"]


def plan_rows(planned: Planned) -> list[list[str]]:
    """The plans as text cells, under `COLUMNS`."""
    return [
        [
            f"{plan.problems:,}",
            f"{plan.repeats}",
            f"{plan.answers:,}",
            f"{plan.cost_usd:,.2f}",
            f"{plan.power:.1%}",
        ]
        for plan in planned.plans
    ]


REDUCTION_COLUMNS = ["more", "part of the noise", "now", "needed", "extra cost (USD)"]


def reduction_rows(planned: Planned) -> list[list[str]]:
    """What a smaller standard error would take, as text cells under `REDUCTION_COLUMNS`."""
    rows = []
    for one in planned.reductions:
        share = "not measured" if one.share is None else f"{one.share:.0%}"
        none = "–" if one.share is None else "no number would do"
        needed = none if one.needed is None else f"{one.needed:,}"
        cost = "–" if one.extra_cost is None else f"{one.extra_cost:,.2f}"
        name = {"items": "problems", "repeats": "repeats", "judgements": "judgements per answer"}[one.lever]
        rows.append([name, share, f"{one.now:,}", needed, cost])
    return rows


def plan_page(planned: Planned) -> str:
    """The plans as a table, and power against cost."""
    best = planned.plans[0]
    priced = any(plan.cost_usd > 0 for plan in planned.curve)
    points = [
        Point(plan.cost_usd if priced else plan.problems, plan.power, f"{plan.problems:,} problems")
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
    return document(
        "Plan of a comparison",
        [
            Section("", [Tiles(tiles)]),
            Section("Plans that reach it", [Table(numbers(*COLUMNS), plan_rows(planned))], half=True),
            Section(
                f"What a standard error smaller by {SMALLER_BY:.0%} would take",
                [Table([REDUCTION_COLUMNS[0], *numbers(*REDUCTION_COLUMNS[1:])], reduction_rows(planned))],
                half=True,
            ),
            Section("Power", [Figure(chart, title, "The dashed line is the wanted power.")], half=True),
        ],
        crumb="plan",
    )
