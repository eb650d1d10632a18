"""`evenhand plan`: how many problems and repeats would show the effect, and at what price?"""

from pathlib import Path

import click
from rich.console import Console

from evenhand.cli.output import console, format_option, print_json, save_text, table
from evenhand.compare.planning import (
    SMALLER_BY,
    Cost,
    Planned,
    make_plan,
    noise_of,
    with_judge_noise,
)
from evenhand.core.errors import OptionError
from evenhand.core.terminal import printable
from evenhand.metrics.types import Alternative
from evenhand.reports.numbers import counted
from evenhand.reports.plan import plan_page, plan_table, reduction_table
from evenhand.results import read_run


@click.command(
    epilog="""\b
Examples:
  evenhand plan --effect 0.02                              nothing known yet: the widest spread is assumed
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
@click.option(
    "--rejudged",
    type=click.Path(path_type=Path),
    help="The first pilot run with the same answers judged again: how much of the noise is the judge's.",
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
    rejudged: Path | None,
    report: Path | None,
    format_: str,
) -> int:
    """Plan a comparison: problems × repeats × cost for a wanted effect and power."""
    cost = Cost(answer=answer_cost, judge=judge_cost, label=label_cost, labels=labels)
    runs = [read_run(path) for path in pilot]
    noise = noise_of(runs, effect, base_score=base_score, discordant=discordant)
    if rejudged is not None:
        if not pilot:
            raise OptionError("--rejudged needs the pilot run whose answers it judged again")
        noise = with_judge_noise(noise, runs[0], read_run(rejudged))
    side: Alternative = "two-sided" if two_sided else "greater"
    planned = make_plan(effect, noise, power=power, alpha=alpha, alternative=side, cost=cost)
    if report is not None:
        save_text(report, plan_page(planned))
    if format_ == "json":
        print_json(planned)
    else:
        _print(console(), planned)
    return 0


def _print(out: Console, planned: Planned) -> None:
    best = planned.plans[0]
    out.print(
        f"{best.problems:,} problems × {counted(best.repeats, 'repeat')} on each side show a "
        f"difference of {planned.effect * 100:.1f} points with {best.power:.0%} power.",
        markup=False,
    )
    out.print(
        f"Noise: {printable(planned.noise.source)}; sd of a problem's difference "
        f"{planned.noise.sd(best.repeats):.3f}\n",
        markup=False,
    )
    out.print(table("", *plan_table(planned), numeric_from=0))
    out.print(f"\nA standard error smaller by {SMALLER_BY:.0%} would take one of:", markup=False)
    out.print(table("", *reduction_table(planned)))
