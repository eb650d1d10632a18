"""`evenhand score`: score outputs you already have. No model, no key."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from evenhand.cli.output import console, format_option, print_json, progress, save_text
from evenhand.cli.score_report import as_json, print_report
from evenhand.cli.scorer_spec import parse_scorer
from evenhand.cli.think_tags import THINK_TAGS_HELP
from evenhand.core.errors import OptionError
from evenhand.core.terminal import printable
from evenhand.datasets.rows import FORMATS, STDIN, guess_count
from evenhand.evaluation.score_file import Fields, FileScoring, ScoresFile
from evenhand.models.reasoning import parse_tags
from evenhand.scoring.definition import Scorer
from evenhand.scoring.registry import get_scorer, scorer_names


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1)
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
@click.option("--think-tags", default="think", show_default=True, help=THINK_TAGS_HELP)
@click.option(
    "--input-format", type=click.Choice(FORMATS), help="The file's format, when its name does not say."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the scores go: a .jsonl file, or a folder.  [default: scores.jsonl beside the first FILE]",
)
@click.option(
    "--skip-invalid", is_flag=True, help="Count lines that cannot be read instead of stopping at the first."
)
@click.option("--report", type=click.Path(path_type=Path), help="Write a report: out.html.")
@click.option("--list", "list_scorers", is_flag=True, help="List the scorers and their options.")
@format_option
def command(
    files: tuple[Path, ...],
    specs: tuple[str, ...],
    response_field: str | None,
    target_field: str | None,
    metadata_field: str | None,
    category_field: str | None,
    group_field: str | None,
    think_tags: str,
    input_format: str | None,
    output: Path | None,
    skip_invalid: bool,
    report: Path | None,
    list_scorers: bool,
    format_: str,
) -> int:
    """Score the responses in FILES and summarise them: JSONL, JSON arrays, CSV, TSV (also .gz) or Parquet; - is stdin.

    \b
    evenhand score answers.jsonl --scorer exact_match --scorer fuzzy_match
    evenhand score monday.jsonl tuesday.csv --scorer exact_match -o scores
    jq -c '.runs[]' log.json | evenhand score - --scorer fuzzy_match
    evenhand score answers.csv --response-field reply --scorer numeric_tolerance:abs=0.01
    evenhand score answers.jsonl --scorer json_schema:schema=@schema.json --format json
    evenhand score answers.jsonl --scorer exact_match --report scores.html

    Every sample ends as scored, unscored (nothing to compare with) or failed (the scorer could not do its
    work); only scored ones enter the mean. Exit status: 0 done, 1 done but a scorer scored nothing and failed,
    64 bad usage, 65 bad input, 66 no such file, 69 a package that the scorer needs is missing.
    """
    if list_scorers:
        _print_list(format_)
        return 0
    if not files or not specs:
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
    _check_files(files)
    scorers = _labelled(specs)
    run = FileScoring(
        files, scorers, fields, keep_examples=report is not None, think_tags=parse_tags(think_tags)
    )
    total = _guess_total(files, input_format) if sys.stderr.isatty() else None
    with (
        ScoresFile(_output_path(files[0], output), files, scorers) as out,
        progress("Scoring", total=total) as steps,
    ):
        run.score(out, input_format=input_format, skip_invalid=skip_invalid, advance=steps.advance)
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


def _check_files(files: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for file in files:
        place = file if file == STDIN else file.resolve()
        if place in seen:
            raise OptionError(f"the file '{file}' is given twice: its rows would count twice")
        seen.add(place)


def _guess_total(files: Sequence[Path], format_: str | None) -> int | None:
    counts = [guess_count(file, format=format_) for file in files if file == STDIN or file.exists()]
    return sum(count or 0 for count in counts) if None not in counts else None


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


def _write_report(run: FileScoring, report: Path) -> None:
    from evenhand.reports.scores import ScoredFile, score_page

    page = score_page(
        ScoredFile(
            name=run.name,
            rows=run.rows,
            skipped=run.skipped,
            first_skips=[str(error) for error in run.first_skips],
            repeats_alone=run.repeats_alone,
            scorers={label: scorer.identity for label, scorer in run.scorers.items()},
            summaries=run.summaries,
            examples=run.examples,
        )
    )
    report.parent.mkdir(parents=True, exist_ok=True)
    save_text(report, page)


def _output_path(file: Path, output: Path | None) -> Path:
    if output is None:
        return file.parent / "scores.jsonl"
    return output if output.suffix == ".jsonl" else output / "scores.jsonl"


def _print_as_text(run: FileScoring, written: Path) -> None:
    screen = console()
    print_report(screen, run.summaries)
    screen.print()
    if run.repeats_alone:
        screen.print(
            "The rows are repeats of problems: --group-field gives intervals that respect it.", markup=False
        )
    if run.truncated:
        responses = "1 response was" if run.truncated == 1 else f"{run.truncated:,} responses were"
        screen.print(
            f"{responses} cut off (truncated): raise the token limit of the model that wrote them.",
            markup=False,
        )
    if run.skipped:
        lines = "1 line" if run.skipped == 1 else f"{run.skipped:,} lines"
        screen.print(f"{lines} could not be read:", markup=False)
        for error in run.first_skips:
            screen.print(f"  {printable(str(error))}", markup=False)
    screen.print(f"Scores: {printable(str(written))}", markup=False)


def _print_as_json(run: FileScoring, written: Path) -> None:
    print_json(
        {
            "file": str(run.paths[0]),
            "files": [str(path) for path in run.paths],
            "rows": run.rows,
            "truncated": run.truncated,
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
