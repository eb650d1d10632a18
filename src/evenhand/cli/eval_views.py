"""`evenhand eval list|report|merge`."""

from pathlib import Path

import click

from evenhand.benchmarks.registry import benchmark_names, get_benchmark
from evenhand.cli.output import console, format_option, print_json, save_text, table
from evenhand.evaluation.merging import merge_runs
from evenhand.evaluation.summary import summary_text
from evenhand.evaluation.viewing import read_report
from evenhand.reports.run import run_page
from evenhand.results.reading import run_folders


@click.command("list")
@format_option
def list_benchmarks(format_: str) -> None:
    """List the benchmarks that are known by name."""
    found = [get_benchmark(name) for name in benchmark_names()]
    if format_ == "json":
        print_json(
            [
                {
                    "name": one.name,
                    "description": one.description,
                    "dataset": str(one.dataset) if isinstance(one.dataset, str | Path) else "function",
                    "judge": one.judge is not None,
                    "sandbox": one.uses_sandbox,
                    "sample": one.sample is not None,
                }
                for one in found
            ]
        )
        return
    rows = []
    for one in found:
        needs = [
            word for word, yes in (("judge", one.judge is not None), ("sandbox", one.uses_sandbox)) if yes
        ]
        rows.append([one.name, ", ".join(needs) or "–", one.description])
    console().print(table("", ["benchmark", "needs", "what it is"], rows, numeric_from=9))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@format_option
def report(folder: Path, format_: str) -> None:
    """Print the result of a finished run (or of every run in FOLDER) and write its report.html anew.

    \b
    evenhand eval report out
    evenhand eval report nightly --format json
    """
    for path in run_folders(folder).values():
        found = read_report(path)
        save_text(path / "report.html", run_page(found))
        if format_ == "json":
            print_json(found.bundle)
            continue
        click.echo(summary_text(found.bundle, path, found.failures))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to; FOLDER/merged by default.")
@format_option
def merge(folder: Path, output: Path | None, format_: str) -> None:
    """Put the shards of one run together: every finished run in FOLDER's sub-folders.

    The shards must agree in everything but the shard, and together hold every problem once.

    \b
    evenhand eval run --bench gsm8k --shard 1/2 -o runs/one ...
    evenhand eval run --bench gsm8k --shard 2/2 -o runs/two ...
    evenhand eval merge runs
    """
    target = output or folder / "merged"
    merge_runs(folder, target, report=run_page)
    found = read_report(target)
    if format_ == "json":
        print_json(found.bundle)
        return
    click.echo(summary_text(found.bundle, target, found.failures))
