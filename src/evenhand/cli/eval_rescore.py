"""`evenhand eval rescore`: score the stored responses of a run anew."""

from pathlib import Path

import click

from evenhand.cli.output import format_option, print_json, progress
from evenhand.cli.scorer_spec import parse_scorer
from evenhand.evaluation.rescoring import rescore_run
from evenhand.evaluation.summary import summary_text


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
@format_option
def rescore(folder: Path, scorer: str, output: Path | None, format_: str) -> int:
    """Score the stored responses of the run in FOLDER with another scorer, without calling the model."""
    chosen = parse_scorer(scorer)
    target = output or folder.with_name(folder.name + "-rescored")
    with progress("scoring") as steps:
        bundle = rescore_run(folder, target, chosen, steps.advance)
    if format_ == "json":
        print_json(bundle)
    else:
        click.echo(summary_text(bundle, target))
    tally = bundle.benchmark.tally
    return 1 if tally is not None and tally.failed else 0
