"""`evenhand ab`: compare two arms from their run logs, or run both on a suite of tasks."""

from pathlib import Path

import click

from evenhand.ab import analyze, load_records
from evenhand.ab.arms import unknown_arms
from evenhand.cli.ab_files import exit_status, write_report
from evenhand.cli.ab_text import print_report
from evenhand.cli.lazy import Entry, LazyGroup
from evenhand.cli.output import format_option, print_json, save_audit
from evenhand.compare.audit import ab_audit
from evenhand.core.errors import Exit

ANALYZE_EXAMPLES = """
\b
Examples:
  evenhand ab analyze collected.jsonl
  evenhand ab analyze collected.jsonl --treatment new_prompt --control old_prompt --html analysis.html
  evenhand ab analyze collected.jsonl --strict && deploy

\b
Exit status: 0 analyzed, 64 bad usage, 65 bad input or insufficient data, 66 no such file.
With --strict: 0 prefer the treatment, 1 prefer the control, 2 mixed or insufficient.
"""


COMMANDS = {
    "analyze": Entry(
        "evenhand.cli.ab", "decide between two arms from the records of their runs", "analyze_command"
    ),
    "run": Entry("evenhand.cli.ab_run", "run a suite of tasks with every arm, then decide", "run_command"),
    "record": Entry("evenhand.cli.ab_record", "send the arms to a scoring service", "record_command"),
}


@click.group(cls=LazyGroup, entries=COMMANDS)
def command() -> None:
    """Compare two arms (agents, prompts, tools) run by run, and decide which to keep.

    \b
    evenhand ab analyze collected.jsonl
    evenhand ab run suite.json --arms with_tool,without_tool --repeats 5
    """


@click.command("analyze", epilog=ANALYZE_EXAMPLES)
@click.argument("records", type=click.Path(path_type=Path))
@click.option(
    "--treatment", help="The arm on trial. Arms called with_… and without_… are found by themselves."
)
@click.option("--control", help="The arm to compare it with.")
@click.option(
    "--output-json", type=click.Path(path_type=Path), help="Default: analysis.json next to the records."
)
@click.option(
    "--output-md", type=click.Path(path_type=Path), help="Default: analysis.md next to the records."
)
@click.option("--html", type=click.Path(path_type=Path), help="Also write a page with pictures to this file.")
@click.option("--skip-invalid", is_flag=True, help="Leave out and count bad lines instead of stopping.")
@click.option("--null-as-zero", is_flag=True, help="Read a missing amount as 0 instead of leaving it out.")
@click.option(
    "--require-significance", is_flag=True, help="A gate that no test proves makes the result mixed."
)
@click.option("--strict", is_flag=True, help="Use the decision as the exit status.")
@click.option(
    "--seed", default=0, type=click.IntRange(min=0), show_default=True, help="Seed of every resampling."
)
@click.option(
    "--audit",
    type=click.Path(path_type=Path),
    help="Also write everything the decision rests on, for tools/verify_verdict.py.",
)
@format_option
def analyze_command(
    records: Path,
    treatment: str | None,
    control: str | None,
    output_json: Path | None,
    output_md: Path | None,
    html: Path | None,
    skip_invalid: bool,
    null_as_zero: bool,
    require_significance: bool,
    strict: bool,
    seed: int,
    audit: Path | None,
    format_: str,
) -> int:
    """Decide between two arms from RECORDS, a JSON Lines file with one run per line."""
    table = load_records(records, skip_invalid=skip_invalid)
    report = analyze(
        table,
        treatment,
        control,
        null_as_zero=null_as_zero,
        require_significance=require_significance,
        seed=seed,
    )
    written = []
    # A mistyped name must not overwrite the report of the right one, nor end with the status of a verdict.
    unknown = unknown_arms(table.arms, treatment, control)
    if not unknown:
        written = write_report(
            report,
            json_file=output_json or records.parent / "analysis.json",
            md_file=output_md or records.parent / "analysis.md",
            html_file=html,
        )
        if audit is not None:
            options = {
                "null_as_zero": null_as_zero,
                "require_significance": require_significance,
                "seed": seed,
                "n_resamples": report.n_resamples,
            }
            save_audit(audit, ab_audit(records, report.to_dict(), options))
    if format_ == "json":
        print_json(report.to_dict())
    else:
        print_report(report, written)
    return Exit.DATA if unknown else exit_status(report, strict=strict)
