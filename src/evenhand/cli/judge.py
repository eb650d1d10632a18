"""`evenhand judge`: judge stored answers, and check a judge against people."""

import asyncio
from pathlib import Path
from typing import Any

import click

from evenhand.cli.judge_options import endpoint, judge_options, read_rubric
from evenhand.cli.judge_score import command as score_command
from evenhand.cli.output import console, format_option, interval_text, print_json, table
from evenhand.core.errors import InputError
from evenhand.core.terminal import printable

# Where results, judged samples and records keep the identity of the judge.
IDENTITY_FIELDS = ("scoring_details.judge_identity", "scoring_details.judge.identity", "judge.identity")

CALIBRATE_EXAMPLES = """
\b
Examples:
  evenhand judge calibrate scores.jsonl --human-field human
  evenhand judge calibrate scores.jsonl --judge-field score --human-field rating --threshold 3
  evenhand judge calibrate results.jsonl --judge-field scoring_details.label \\
      --human-field metadata.human --positive CORRECT --report calibration.html

\b
Exit status: 0 the judge may be trusted, as it is or corrected; 1 not, or too few labels; 2 bad input.
"""


@click.group()
def command() -> None:
    """Judge answers with a language model, and check the judge against people.

    \b
    Examples:
      evenhand judge score answers.jsonl --judge-url URL --judge-id ID -o judged.jsonl
      evenhand judge calibrate judged.jsonl --human-field metadata.human
    """


command.add_command(score_command, "score")


@command.command("selftest", short_help="ask a judge about answers whose grades are known")
@judge_options
@format_option
def selftest_command(format_: str, **options: Any) -> int:
    """Ask a judge about answers whose grades are known, and see what it falls for.

    Four kinds of answers: right, wrong, empty openers such as "Thought process:", and wrong ones that try to steer
    the judge. A sound judge errs on at most a tenth of each kind.

    \b
    Example:
      evenhand judge selftest --judge-url http://127.0.0.1:8001/v1 --judge-id m --rubric simpleqa

    \b
    Exit status: 0 sound, 1 not, 2 bad input.
    """
    from evenhand.models.address import reachable
    from evenhand.models.connect import connect
    from evenhand.scoring.judging.selftest import run_selftest

    async def ask() -> Any:
        await reachable(options["judge_url"])
        model = connect(endpoint(options))
        try:
            return await run_selftest(
                model, read_rubric(options["rubric"]), concurrency=options["concurrency"]
            )
        finally:
            await model.aclose()

    found = asyncio.run(ask())
    if format_ == "json":
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
        columns = ["answers", "should", "share passed [95% interval]", "no verdict"]
        console().print(table("", columns, rows))
        click.echo("This judge is sound on these answers." if found.sound else "This judge is not sound.")
    return 0 if found.sound else 1


@command.command("calibrate", short_help="how far the judge agrees with people", epilog=CALIBRATE_EXAMPLES)
@click.argument("scores", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--human-field",
    required=True,
    help="Field with the human score, on some of the rows; a.b reaches into objects.",
)
@click.option(
    "--judge-field", default="reward", show_default=True, help="Field with the judge's score, on all rows."
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
    from evenhand.results.writing import write_text
    from evenhand.scoring.judging.calibration import calibrate
    from evenhand.scoring.judging.calibration_report import calibration_page

    found = calibrate(
        read_rated(scores, judge_field, human_field),
        threshold=threshold,
        positive=positive,
        confidence_level=confidence,
        seed=seed,
    )
    if report is not None:
        write_text(report, calibration_page(found, source=scores.name))
    if format_ == "json":
        print_json(found)
    else:
        print_calibration(found, report)
    return 0 if found.trust in ("trusted", "corrected_only") else 1


def read_rated(path: Path, judge_field: str, human_field: str) -> list[Any]:
    """The rows as ratings; scores of several judges in one file are refused."""
    from evenhand.datasets import read_rows
    from evenhand.scoring.judging.calibration import Rated
    from evenhand.scoring.judging.identity import one_identity

    rated = []
    identities: set[Any] = set()
    seen = [False, False]
    for row in read_rows(path):
        judge = field_of(row.values, judge_field)
        human = field_of(row.values, human_field)
        seen = [seen[0] or judge is not None, seen[1] or human is not None]
        rated.append(
            Rated(
                judge=as_value(judge, path, row.line, judge_field),
                human=as_value(human, path, row.line, human_field),
            )
        )
        identities.update(field_of(row.values, name) for name in IDENTITY_FIELDS)
    for name, found in zip((judge_field, human_field), seen, strict=True):
        if not found:
            raise InputError("no row has a value in this field", path=path, field=name)
    one_identity(identity for identity in identities if isinstance(identity, str))
    return rated


def field_of(values: Any, name: str) -> Any:
    """The value of a field; `a.b` reaches into objects, unless a field has that very name."""
    if isinstance(values, dict) and name in values:
        return values[name]
    head, _, rest = name.partition(".")
    inner = values.get(head) if isinstance(values, dict) else None
    return field_of(inner, rest) if rest and inner is not None else None


def as_value(value: Any, path: Path, line: int, name: str) -> float | str | None:
    """A score: a number, true or false, a label, or nothing."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    raise InputError("a score must be a number, true or false, or a label", path=path, line=line, field=name)


def print_calibration(found: Any, report: Path | None) -> None:
    """The result for people."""
    from evenhand.scoring.judging.calibration_report import agreement_of, means_of

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
