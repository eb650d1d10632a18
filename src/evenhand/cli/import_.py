"""`evenhand import`: read the results of another tool."""

from pathlib import Path
from typing import Any

import click

from evenhand.cli.output import console, format_option, interval_text, print_json, table
from evenhand.core.errors import OptionError
from evenhand.core.terminal import preview, printable
from evenhand.integrations.comparable import scorer_names
from evenhand.integrations.port import ImportedRun
from evenhand.integrations.registry import IMPORTERS, read_foreign
from evenhand.integrations.writing import send_runs, write_runs
from evenhand.scoring.summary import Summary

NAMES = [importer.name for importer in IMPORTERS]


@click.command(
    epilog="""\b
Examples:
  evenhand import results.json                       what is in it, the tool's own figure and ours
  evenhand import logs/2026-11-16_task.eval -o runs/inspect
  evenhand import out/results_2026-11-16.json -o runs/lm-eval
  evenhand import results.json --to http://127.0.0.1:8321 --project demo

Files can be compared without importing them first: evenhand compare before.json after.json"""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Write run folders here."
)
@click.option("--to", "target", help="Send everything to a scoring service at this address.")
@click.option("--token", help="The service's token; default EVENHAND_TOKEN.")
@click.option("--project", default="default", show_default=True, help="The service's project.")
@click.option("--input-format", type=click.Choice(NAMES), help="The tool; recognised by the file otherwise.")
@format_option
def command(
    paths: tuple[Path, ...],
    output: Path | None,
    target: str | None,
    token: str | None,
    project: str,
    input_format: str | None,
    format_: str,
) -> None:
    """Read result files of promptfoo, Inspect, lm-evaluation-harness, DeepEval or NeMo Evaluator.

    The tool's own figure is computed again under the tool's own rule; beside it stand ours, with every sample
    counted as scored, unscored or failed.
    """
    if output is not None and output.exists() and any(output.iterdir()):
        raise OptionError(f"the folder '{output}' is not empty")
    runs = [run for path in paths for run in read_foreign(path, input_format)]
    written = write_runs(runs, output) if output is not None else []
    sent = send_runs(runs, target, token, project) if target is not None else []
    if format_ == "json":
        print_json(
            {
                "runs": [_as_json(run) for run in runs],
                "folders": [str(path) for path in written],
                "experiments": sent,
            }
        )
        return
    for run in runs:
        _show(run)
    out = console()
    for path in written:
        out.print(f"Wrote {printable(str(path))}", markup=False)
    for one in sent:
        out.print(f"Experiment {one['experiment_id']}: {one['runs']:,} runs", markup=False)


def _summary(run: ImportedRun, scorer: str) -> Summary:
    found = Summary()
    for sample in run.samples:
        if scorer in sample.outcomes:
            found.add(sample.outcomes[scorer], group=sample.item)
    return found


def _as_json(run: ImportedRun) -> dict[str, Any]:
    return {
        "tool": run.tool,
        "name": run.name,
        "variant": run.variant,
        "treatment": run.treatment,
        "samples": len(run.samples),
        "figures": run.figures,
        "scorers": {name: _numbers(_summary(run, name)) for name in scorer_names(run)},
        "unmapped": run.unmapped,
    }


def _numbers(summary: Summary) -> dict[str, Any]:
    interval = summary.mean.interval()
    return {
        "mean": summary.mean.value,
        "ci_lower": interval.ci_lower if interval else None,
        "ci_upper": interval.ci_upper if interval else None,
        "scored": summary.tally.scored,
        "unscored": summary.tally.unscored,
        "failed": summary.tally.failed,
    }


def _show(run: ImportedRun) -> None:
    out = console()
    title = f"{run.tool}: {run.name}" + (f", {run.variant}" if run.variant else "")
    out.print(printable(title), style="bold", markup=False)
    for figure in run.figures:
        printed = "not in the file" if figure.printed is None else f"{figure.printed:.4f}"
        again = "–" if figure.reproduced is None else f"{figure.reproduced:.4f}"
        out.print(
            f"  {figure.name}: {printed} as the tool says, {again} computed again ({figure.rule})",
            markup=False,
        )
    rows = []
    for name in scorer_names(run):
        summary = _summary(run, name)
        interval = summary.mean.interval()
        counts = (summary.tally.scored, summary.tally.unscored, summary.tally.failed)
        mean = interval_text(interval) if interval else f"{summary.mean.value:.4f} (too few for an interval)"
        rows.append([preview(name, 60), mean, *(f"{count:,}" for count in counts)])
    out.print(table("", ["scorer", "mean [95 % interval]", "scored", "unscored", "failed"], rows))
    for words in run.unmapped:
        out.print(f"Note: {printable(words)}", markup=False)
    out.print()
