"""`evenhand eval rescore`: score the stored responses of a run anew."""

from pathlib import Path

import click

from evenhand.cli.output import format_option, print_json, progress
from evenhand.cli.scorer_spec import parse_scorer
from evenhand.cli.think_tags import THINK_TAGS_HELP
from evenhand.evaluation.rescoring import rescore_run
from evenhand.evaluation.summary import summary_text
from evenhand.models.reasoning import parse_tags
from evenhand.reports.run import run_page


@click.command(
    epilog="""\b
Examples:
  evenhand eval rescore runs/base --scorer numeric_match
  evenhand eval rescore runs/candidate --scorer numeric_tolerance:abs=0.01 -o runs/candidate-tolerant

\b
Two runs that were scored differently become comparable when both are scored anew with one scorer."""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--scorer", required=True, help="NAME[:option=value,...] or FILE.py:FUNCTION.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to; FOLDER-rescored by default.")
@click.option("--think-tags", default="think", show_default=True, help=THINK_TAGS_HELP)
@format_option
def rescore(folder: Path, scorer: str, output: Path | None, think_tags: str, format_: str) -> int:
    """Score the stored responses of the run in FOLDER with another scorer, without calling the model."""
    chosen = parse_scorer(scorer)
    target = output or folder.with_name(folder.name + "-rescored")
    tags = parse_tags(think_tags)
    with progress("scoring") as steps:
        found = rescore_run(folder, target, chosen, steps.advance, think_tags=tags, report=run_page)
    if format_ == "json":
        print_json(found.bundle)
    else:
        click.echo(summary_text(found.bundle, target, found.failures))
    tally = found.bundle.benchmark.tally
    return 1 if tally is not None and tally.failed else 0
