"""`evenhand score`: score outputs you already have. No model, no key."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.output import console, format_option, print_json, progress
from evenhand.cli.score_files import Fields, ScoresFile
from evenhand.cli.score_report import as_json, print_report
from evenhand.cli.scorer_spec import parse_scorer
from evenhand.core.errors import InputError, OptionError
from evenhand.core.terminal import printable
from evenhand.datasets import Row, read_rows
from evenhand.datasets.rows import FORMATS, guess_count
from evenhand.scoring.apply import score_sample
from evenhand.scoring.definition import Scorer
from evenhand.scoring.registry import get_scorer, scorer_names
from evenhand.scoring.summary import ScorerSummary
from evenhand.scoring.types import ScorerInput

if TYPE_CHECKING:
    from evenhand.cli.score_page import Examples

SHOWN_SKIPS = 20
"""How many skipped lines are listed."""
PROGRESS_STEP = 200


class Run:
    """Scoring one file: what to read, what to score with, and what came of it."""

    def __init__(
        self,
        path: Path,
        scorers: dict[str, Scorer],
        fields: Fields,
        examples: "dict[str, Examples] | None" = None,
    ) -> None:
        self.path = path
        self.scorers = scorers
        self.fields = fields
        self.examples = examples or {}
        self.summaries = {label: ScorerSummary() for label in scorers}
        self.rows = 0
        self.skipped = 0
        self.first_skips: list[InputError] = []
        self.repeats = False
        given = {"--metadata-field": fields.metadata, "--category-field": fields.category}
        self.unseen = {option: name for option, name in given.items() if name is not None}

    def skip(self, error: InputError) -> None:
        """Count a line that cannot be read."""
        self.skipped += 1
        if len(self.first_skips) < SHOWN_SKIPS:
            self.first_skips.append(error)

    def score(self, out: ScoresFile, *, input_format: str | None, skip_invalid: bool) -> None:
        """Read, score and write row by row."""
        reject = self.skip if skip_invalid else None
        rows = read_rows(self.path, format=input_format, reject=reject, surrogates=True)
        total = guess_count(self.path, format=input_format) if sys.stderr.isatty() else None
        with progress("Scoring", total=total) as steps:
            for row in rows:
                try:
                    sample = self.fields.sample(row, self.path)
                    group = self.fields.group_of(row, self.path)
                except InputError as error:
                    if not skip_invalid:
                        raise
                    self.skip(error)
                    continue
                category = self.fields.category_of(sample)
                outcomes = {label: score_sample(scorer, sample) for label, scorer in self.scorers.items()}
                for label, outcome in outcomes.items():
                    self.summaries[label].add(outcome, category=category, line=row.line, group=group)
                for label, kept in self.examples.items():
                    kept.add(outcomes[label], sample, category=category, line=row.line)
                out.write(row, category, outcomes)
                self.repeats = self.repeats or bool(row.values.get("repeat"))
                self.rows += 1
                if self.unseen:
                    self._note_fields(row, sample)
                if self.rows % PROGRESS_STEP == 0:
                    steps.advance(PROGRESS_STEP)
        if self.rows == 0:
            raise InputError("the file holds no rows that can be scored", path=self.path)
        if self.unseen:
            option, name = next(iter(self.unseen.items()))
            raise InputError(f"no row has the field '{name}' that {option} names", path=self.path)

    def _note_fields(self, row: Row, sample: ScorerInput) -> None:
        for option, place in (("--metadata-field", row.values), ("--category-field", sample.metadata)):
            if option in self.unseen and self.unseen[option] in place:
                del self.unseen[option]


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--scorer",
    "-s",
    "specs",
    multiple=True,
    metavar="NAME[:OPTION=VALUE,...]",
    help="A scorer; may be given several times. FILE.py:NAME takes one of your own, option=@FILE reads a value from a file.",
)
@click.option(
    "--response-field", help="The field with the response.  [default: response, model_response or output]"
)
@click.option(
    "--target-field",
    help="The field with the expected answer.  [default: target, expected_answer or expected_output]",
)
@click.option(
    "--metadata-field",
    help="The field with an object of metadata; other fields are metadata too.  [default: metadata]",
)
@click.option(
    "--category-field", help="The metadata field to break the summary down by.  [default: category]"
)
@click.option(
    "--group-field", help="Rows with the same value here (answers to one problem) are not independent."
)
@click.option(
    "--input-format", type=click.Choice(FORMATS), help="The file's format, when its name does not say."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the scores go: a .jsonl file, or a folder.  [default: scores.jsonl beside FILE]",
)
@click.option(
    "--skip-invalid", is_flag=True, help="Count lines that cannot be read instead of stopping at the first."
)
@click.option("--report", type=click.Path(path_type=Path), help="Write a report: out.html.")
@click.option("--list", "list_scorers", is_flag=True, help="List the scorers and their options.")
@format_option
def command(
    file: Path | None,
    specs: tuple[str, ...],
    response_field: str | None,
    target_field: str | None,
    metadata_field: str | None,
    category_field: str | None,
    group_field: str | None,
    input_format: str | None,
    output: Path | None,
    skip_invalid: bool,
    report: Path | None,
    list_scorers: bool,
    format_: str,
) -> int:
    """Score the responses in FILE (JSONL, also .gz, CSV or Parquet) and summarise them.

    \b
    evenhand score answers.jsonl --scorer exact_match --scorer fuzzy_match
    evenhand score answers.csv --response-field reply --scorer numeric_tolerance:abs=0.01
    evenhand score answers.jsonl --scorer json_schema:schema=@schema.json --format json
    evenhand score answers.jsonl --scorer exact_match --report scores.html

    Every sample ends as scored, unscored (nothing to compare with) or failed (the scorer could not do its
    work); only scored ones enter the mean. Exit status: 0 done, 1 done but a scorer scored nothing and failed,
    2 bad input or usage.
    """
    if list_scorers:
        _print_list(format_)
        return 0
    if file is None or not specs:
        raise click.UsageError("give a FILE and at least one --scorer; --list shows the scorers")
    fields = Fields(
        response=response_field,
        target=target_field,
        metadata=metadata_field,
        category=category_field,
        group=group_field,
    )
    if report is not None and report.suffix != ".html":
        raise OptionError(f"--report writes .html, not '{report.name}'")
    scorers = _labelled(specs)
    run = Run(file, scorers, fields, _examples(scorers) if report is not None else None)
    with ScoresFile(_output_path(file, output), file) as out:
        run.score(out, input_format=input_format, skip_invalid=skip_invalid)
    if report is not None:
        _write_report(run, report)
    if format_ == "json":
        _print_as_json(run, out.path)
    else:
        _print_as_text(run, out.path)
        if report is not None:
            console().print(f"Report: {printable(str(report))}", markup=False)
    parts = [summary.all.tally for summary in run.summaries.values()]
    return 1 if any(tally.failed and not tally.scored for tally in parts) else 0


def _labelled(specs: Iterable[str]) -> dict[str, Scorer]:
    """Scorers by the name under which they are reported: their own, or the whole text where names collide."""
    parsed = [(text, parse_scorer(text)) for text in specs]
    names = [scorer.name for _, scorer in parsed]
    labelled = {}
    for text, scorer in parsed:
        label = scorer.name if names.count(scorer.name) == 1 else text
        if label in labelled:
            raise OptionError(f"the scorer '{text}' is given twice")
        labelled[label] = scorer
    return labelled


def _examples(scorers: Iterable[str]) -> "dict[str, Examples]":
    from evenhand.cli.score_page import Examples

    return {label: Examples() for label in scorers}


def _write_report(run: Run, report: Path) -> None:
    from evenhand.cli.score_page import ScoredFile, score_page
    from evenhand.results.writing import write_text

    page = score_page(
        ScoredFile(
            name=run.path.name,
            rows=run.rows,
            skipped=run.skipped,
            first_skips=[str(error) for error in run.first_skips],
            repeats_alone=run.repeats and run.fields.group is None,
            scorers={label: scorer.identity for label, scorer in run.scorers.items()},
            summaries=run.summaries,
            examples=run.examples,
        )
    )
    report.parent.mkdir(parents=True, exist_ok=True)
    write_text(report, page)


def _output_path(file: Path, output: Path | None) -> Path:
    if output is None:
        return file.parent / "scores.jsonl"
    return output if output.suffix == ".jsonl" else output / "scores.jsonl"


def _print_as_text(run: Run, written: Path) -> None:
    screen = console()
    print_report(screen, run.summaries)
    screen.print()
    if run.repeats and run.fields.group is None:
        screen.print(
            "The rows are repeats of problems: --group-field gives intervals that respect it.", markup=False
        )
    if run.skipped:
        lines = "1 line" if run.skipped == 1 else f"{run.skipped:,} lines"
        screen.print(f"{lines} could not be read:", markup=False)
        for error in run.first_skips:
            screen.print(f"  {printable(str(error))}", markup=False)
    screen.print(f"Scores: {printable(str(written))}", markup=False)


def _print_as_json(run: Run, written: Path) -> None:
    print_json(
        {
            "file": str(run.path),
            "rows": run.rows,
            "skipped": run.skipped,
            "skipped_lines": [{"line": error.line, "reason": error.reason} for error in run.first_skips],
            "output": str(written),
            "scorers": [
                as_json(label, run.scorers[label], summary) for label, summary in run.summaries.items()
            ],
        }
    )


def _print_list(format_: str) -> None:
    scorers = [get_scorer(name) for name in scorer_names()]
    if format_ == "json":
        print_json([{**scorer.identity, "summary": scorer.summary} for scorer in scorers])
        return
    for scorer in scorers:
        click.echo(f"{scorer.name}: {scorer.summary}")
        for option in scorer.options.values():
            default = "required" if option.required else f"default {option.default!r}"
            click.echo(f"    {option.name}: {option.type_name}, {default}")
