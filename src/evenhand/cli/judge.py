"""`evenhand judge`: judge stored answers, and check a judge against people."""

import asyncio
from pathlib import Path
from typing import Any

import click

from evenhand.cli.judge_options import JudgeOptions, judge_options
from evenhand.cli.judge_score import command as score_command
from evenhand.cli.output import console, format_option, interval_text, print_json, save_text, table
from evenhand.core.terminal import printable

CALIBRATE_EXAMPLES = """
\b
Examples:
  evenhand judge calibrate scores.jsonl --human-field human
  evenhand judge calibrate scores.jsonl --judge-field score --human-field rating --threshold 3
  evenhand judge calibrate results.jsonl --judge-field scoring_details.label \\
      --human-field metadata.human --positive CORRECT --report calibration.html

\b
Exit status: 0 the judge may be trusted, as it is or corrected; 1 not, or too few labels;
64 bad usage, 65 bad input, 66 no such file.
"""

COMPARE_EXAMPLES = """
\b
Examples:
  evenhand judge compare base/results.jsonl candidate/results.jsonl --human-field metadata.human
  evenhand judge compare a.jsonl b.jsonl --id-field id --judge-field score --human-field rating --threshold 3
"""


@click.group()
def command() -> None:
    """Judge answers with a language model, and check the judge against people.

    \b
    Examples:
      evenhand judge score answers.jsonl --judge-url URL --judge-id ID -o judged.jsonl
      evenhand judge calibrate judged.jsonl --human-field metadata.human
      evenhand judge compare base.jsonl candidate.jsonl --human-field metadata.human
    """


command.add_command(score_command, "score")


@command.command("selftest", short_help="ask a judge about answers whose grades are known")
@judge_options
@format_option
@click.pass_context
def selftest_command(context: click.Context, /, **_: object) -> int:
    """Ask a judge about answers whose grades are known, and see what it falls for.

    Four kinds of answers: right, wrong, empty openers such as "Thought process:", and wrong ones that try to steer
    the judge. A sound judge errs on at most a tenth of each kind.

    \b
    Example:
      evenhand judge selftest --judge-url http://127.0.0.1:8001/v1 --judge-id m --rubric simpleqa

    \b
    Exit status: 0 sound, 1 not, 64 bad usage, 65 bad input, 69 the judge cannot be reached.
    """
    from evenhand.judging.rubric_files import read_rubric
    from evenhand.judging.selftest import run_selftest
    from evenhand.models.address import reachable
    from evenhand.models.connect import connect

    options = JudgeOptions(**context.params)

    async def ask() -> Any:
        endpoint = options.endpoint()
        await reachable(endpoint.base_url)
        model = connect(endpoint)
        try:
            return await run_selftest(model, read_rubric(options.rubric), concurrency=options.concurrency)
        finally:
            await model.aclose()

    found = asyncio.run(ask())
    if options.format_ == "json":
        print_json(found)
    else:
        rows = [
            [
                name,
                "pass" if group.should_pass else "fail",
                "none" if group.passed is None else interval_text(group.passed, digits=2),
                str(group.no_verdict),
            ]
            for name, group in found.groups.items()
        ]
        columns = ["answers", "should", "share passed [95% interval]", "no judgement"]
        console().print(table("", columns, rows))
        click.echo("This judge is sound on these answers." if found.sound else "This judge is not sound.")
    return 0 if found.sound else 1


human_field = click.option(
    "--human-field",
    required=True,
    help="Field with the human score, on some of the rows; a.b reaches into objects.",
)
judge_field = click.option(
    "--judge-field", default="reward", show_default=True, help="Field with the judge's score, on all rows."
)


@command.command("calibrate", short_help="how far the judge agrees with people", epilog=CALIBRATE_EXAMPLES)
@click.argument("scores", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@human_field
@judge_field
@click.option("--threshold", type=float, help="Turn numbers into passes (at least this) and failures.")
@click.option("--positive", multiple=True, help="A label that is a pass; several times for several.")
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.5, 0.999),
    help="Level of the intervals.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the resampling.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with charts.")
@format_option
def calibrate_command(
    scores: Path,
    human_field: str,
    judge_field: str,
    threshold: float | None,
    positive: tuple[str, ...],
    confidence: float,
    seed: int,
    report: Path | None,
    format_: str,
) -> int:
    """How far does the judge in SCORES agree with people, and what would people have said?

    SCORES is a JSONL, CSV or Parquet file: every row has the judge's score, some (a random few) a human one.
    """
    from evenhand.judging.calibration import calibrate
    from evenhand.judging.ratings import read_rated
    from evenhand.reports.calibration import calibration_page

    found = calibrate(
        read_rated(scores, judge_field, human_field),
        threshold=threshold,
        positive=positive,
        confidence_level=confidence,
        seed=seed,
    )
    if report is not None:
        save_text(report, calibration_page(found, source=scores.name))
    if format_ == "json":
        print_json(found)
    else:
        print_calibration(found, report)
    return 0 if found.trust in ("trusted", "corrected_only") else 1


@command.command(
    "compare", short_help="what people would say about the difference of two systems", epilog=COMPARE_EXAMPLES
)
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("candidate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@human_field
@judge_field
@click.option(
    "--id-field",
    default="problem_idx",
    show_default=True,
    help="Field that names the item; rows of one item are averaged.",
)
@click.option("--threshold", type=float, help="Turn numbers into passes (at least this) and failures.")
@click.option("--positive", multiple=True, help="A label that is a pass; several times for several.")
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.5, 0.999),
    help="Level of the intervals.",
)
@format_option
def compare_command(
    base: Path,
    candidate: Path,
    human_field: str,
    judge_field: str,
    id_field: str,
    threshold: float | None,
    positive: tuple[str, ...],
    confidence: float,
    format_: str,
) -> int:
    """How much better would people find CANDIDATE than BASE?

    Both are JSONL, CSV or Parquet files of the same items, scored by one judge. On a random few items, people have
    scored both answers. The judge's difference is corrected by what it gets wrong there.
    """
    from evenhand.judging.difference import judged_difference
    from evenhand.judging.ratings import read_two_systems

    sides = read_two_systems(
        base, candidate, id_field=id_field, judge_field=judge_field, human_field=human_field
    )
    found = judged_difference(*sides, threshold=threshold, positive=positive, confidence_level=confidence)
    if format_ == "json":
        print_json(found)
        return 0
    out = console()
    out.print(
        f"{found.compared:,} of {found.items:,} items compared, {found.labelled:,} with human scores on both sides; "
        f"left out: {found.one_side_only:,} on one side only, {found.no_judge_score:,} without a score of the judge"
    )
    if found.partly_labelled:
        out.print(
            f"{found.partly_labelled:,} items have human scores on some answers only: those are not used"
        )
    out.print()
    rows = (
        ("judge only", found.judge_only),
        ("people only, labelled items", found.human_only),
        ("corrected (PPI++)", found.corrected),
        ("judge minus people, labelled items", found.judge_bias),
    )
    columns = ["candidate minus base", f"value [{found.confidence_level:.0%} interval]", "n"]
    out.print(table("", columns, [[name, interval_text(one), f"{one.n:,}"] for name, one in rows]))
    out.print()
    click.echo(printable(found.sentence))
    click.echo("The correction holds if the labelled items were drawn at random from all.")
    return 0


def print_calibration(found: Any, report: Path | None) -> None:
    """The result for people."""
    from evenhand.reports.calibration import agreement_of, means_of

    level = f"{found.confidence_level:.0%}"
    out = console()
    out.print(
        f"{found.items:,} items, {found.labelled:,} with a human label, "
        f"{found.no_judge_score:,} without a score of the judge"
    )
    out.print()
    for title, rows in (("Mean", means_of(found)), ("Agreement", agreement_of(found))):
        out.print(
            table(
                "",
                [title, f"value [{level} interval]", "n"],
                [[name, interval_text(interval), f"{interval.n:,}"] for name, interval in rows],
            )
        )
        out.print()
    if found.labels:
        cells = [[name, *map(str, row)] for name, row in zip(found.labels, found.confusion, strict=True)]
        out.print(table("", ["human \\ judge", *found.labels], cells))
        out.print()
    click.echo(printable(found.sentence))
    click.echo("The correction holds if the labelled items were drawn at random from all.")
    if report is not None:
        click.echo(f"Report: {report}")
