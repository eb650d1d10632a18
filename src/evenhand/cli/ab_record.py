"""`evenhand ab record`: the arms as experiments of the scoring service."""

from pathlib import Path

import click

from evenhand.ab import load_records
from evenhand.cli.output import format_option, print_json
from evenhand.core.terminal import printable
from evenhand.evaluation.connecting import connected
from evenhand.evaluation.trials.recording import record_arms


@click.command(
    "record",
    epilog="""\b
Examples:
  evenhand ab record collected.jsonl http://127.0.0.1:8321 --project agents
  evenhand ab record collected.jsonl evenhand.db --name "new planner"

\b
Each arm becomes an experiment on one dataset of tasks; compare them with
GET /v1/experiments/ID/compare/OTHER. Sending the same runs twice changes nothing.

\b
Exit status: 0 recorded, 64 bad usage, 65 bad input or a refusal by the service, 66 no such file,
69 the service cannot be reached.""",
)
@click.argument("records", type=click.Path(path_type=Path))
@click.argument("target")
@click.option("--name", help="What to call the comparison; the name of the records' folder by default.")
@click.option("--token", help="The service's token; default EVENHAND_TOKEN.")
@click.option("--project", default="default", show_default=True, help="The service's project.")
@format_option
def record_command(
    records: Path, target: str, name: str | None, token: str | None, project: str, format_: str
) -> None:
    """Send RECORDS to a scoring service: TARGET is its URL, or its SQLite file."""
    table = load_records(records)
    with connected(target, token) as client:
        found = record_arms(table, client, project, name or records.resolve().parent.name)
    if format_ == "json":
        print_json({"experiments": found})
        return
    for arm, experiment in found.items():
        click.echo(f"{printable(arm)}: experiment {experiment}")
