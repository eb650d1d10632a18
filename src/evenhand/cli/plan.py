"""`evenhand plan`: how many problems and repeats would show the effect, and at what price?"""

from pathlib import Path

import click
from rich.console import Console

from evenhand.cli.output import console, format_option, print_json, table
from evenhand.compare.planning import Cost, Noise, Planned, make_plan, noise_from_rates, noise_from_runs
from evenhand.core.errors import OptionError
from evenhand.metrics.types import Alternative
from evenhand.plots import Figure, Paragraph, Point, Section, Series, Table, document, lines
from evenhand.results import read_run, write_text


@click.command(
    epilog="""\b
Examples:
  evenhand plan --effect 0.025 --discordant 0.10           1,000 problems of which 100 differ: what is needed?
  evenhand plan --effect 0.01 --base-score 0.85            from an expected score, answers independent
  evenhand plan runs/base runs/candidate --effect 0.01     noise measured on a pilot
  evenhand plan runs/base --effect 0.02 --answer-cost 0.004 --judge-cost 0.001 --report plan.html"""
)
@click.argument("pilot", nargs=-1, type=click.Path(path_type=Path))
@click.option("--effect", type=float, required=True, help="The difference to be seen, on the score's scale.")
@click.option(
    "--power", type=float, default=0.8, show_default=True, help="The wanted probability of seeing it."
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="The error rate of the test.")
@click.option("--two-sided", is_flag=True, help="Plan for a difference in either direction.")
@click.option("--base-score", type=float, help="Without a pilot: the expected mean of yes-or-no scores.")
@click.option(
    "--discordant", type=float, help="Without a pilot: the share of problems on which the sides differ."
)
@click.option("--answer-cost", type=float, default=0.0, show_default=True, help="US dollars for one answer.")
@click.option(
    "--judge-cost", type=float, default=0.0, show_default=True, help="US dollars for one judged answer."
)
@click.option(
    "--label-cost", type=float, default=0.0, show_default=True, help="US dollars for one human label."
)
@click.option("--labels", type=int, default=0, show_default=True, help="How many human labels are wanted.")
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write a page with the chart of power against cost."
)
@format_option
def command(
    pilot: tuple[Path, ...],
    effect: float,
    power: float,
    alpha: float,
    two_sided: bool,
    base_score: float | None,
    discordant: float | None,
    answer_cost: float,
    judge_cost: float,
    label_cost: float,
    labels: int,
    report: Path | None,
    format_: str,
) -> int:
    """Plan a comparison: problems × repeats × cost for a wanted effect and power."""
    cost = Cost(answer=answer_cost, judge=judge_cost, label=label_cost, labels=labels)
    noise = _noise(pilot, base_score, discordant)
    if not pilot and discordant is not None and effect > discordant:
        raise OptionError(
            f"an effect of {effect:g} is impossible when only {discordant:g} of the problems differ (--discordant)"
        )
    side: Alternative = "two-sided" if two_sided else "greater"
    planned = make_plan(effect, noise, power=power, alpha=alpha, alternative=side, cost=cost)
    if report is not None:
        write_text(report, _page(planned))
    if format_ == "json":
        print_json(planned)
    else:
        _print(console(), planned)
    return 0


def _noise(pilot: tuple[Path, ...], base_score: float | None, discordant: float | None) -> Noise:
    if len(pilot) > 2:
        raise OptionError("a pilot is one run or two")
    if pilot:
        return noise_from_runs(read_run(pilot[0]), read_run(pilot[1]) if len(pilot) == 2 else None)
    if base_score is None and discordant is None:
        raise OptionError("plan needs a pilot run, --discordant or --base-score")
    return noise_from_rates(0.5 if base_score is None else base_score, discordant)


def _rows(planned: Planned) -> list[list[str]]:
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


def _repeats(number: int) -> str:
    return "1 repeat" if number == 1 else f"{number} repeats"


COLUMNS = ["problems", "repeats", "answers (both sides)", "cost (USD)", "power"]


def _print(out: Console, planned: Planned) -> None:
    best = planned.plans[0]
    out.print(
        f"{best.problems:,} problems × {_repeats(best.repeats)} on each side show a "
        f"difference of {planned.effect * 100:.1f} points with {best.power:.0%} power.",
        markup=False,
    )
    out.print(
        f"Noise: {planned.noise.source}; sd of a problem's difference {planned.noise.sd(best.repeats):.3f}\n",
        markup=False,
    )
    out.print(table("", COLUMNS, _rows(planned), numeric_from=0))


def _page(planned: Planned) -> str:
    priced = any(plan.cost_usd > 0 for plan in planned.curve)
    points = [
        Point(plan.cost_usd if priced else plan.problems, plan.power, f"{plan.problems:,} problems")
        for plan in planned.curve
    ]
    chart = lines(
        [Series(_repeats(planned.curve[0].repeats), points)],
        title=f"Power to see {planned.effect * 100:.1f} points",
        x_label="cost (USD)" if priced else "problems",
        y_label="power",
        reference=planned.wanted_power,
    )
    rows = _rows(planned)
    return document(
        "Plan of a comparison",
        [
            Section(
                "", [Paragraph(f"Noise: {planned.noise.source}."), Table(COLUMNS, rows, numeric=COLUMNS)]
            ),
            Section("Power", [Figure(chart, "The dashed line is the wanted power.")]),
        ],
    )
