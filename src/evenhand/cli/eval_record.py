"""`evenhand eval record`, and `--record` of `eval run`: a finished run goes to the scoring service."""

import shlex
from pathlib import Path

import click

from evenhand.core.errors import EvenhandError
from evenhand.core.secret import without_password
from evenhand.core.terminal import printable
from evenhand.evaluation.connecting import connected
from evenhand.evaluation.recording import Recorded, record_run


@click.command("record")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("target")
@click.option("--token", help="The service's token; default EVENHAND_TOKEN.")
@click.option("--project", default="default", show_default=True, help="The service's project.")
def record(folder: Path, target: str, token: str | None, project: str) -> None:
    """Send a finished run to a scoring service: TARGET is its URL, or its SQLite file.

    \b
    evenhand eval record out http://127.0.0.1:8321 --project models
    evenhand eval record out evenhand.db

    Sending the same results twice changes nothing. Exit status: 0 recorded, 64 bad usage, 65 bad
    input or a refusal by the service, 66 no such folder, 69 the service cannot be reached.
    """
    click.echo(_words(send(folder, target, token, project), target))


def record_quietly(folder: Path, target: str, token: str | None, project: str) -> None:
    """`--record`: whatever goes wrong is a warning; the run and its exit status stand."""
    try:
        click.echo(_words(send(folder, target, token, project), target))
    except (EvenhandError, OSError) as error:
        click.echo(f"Warning: the run was not recorded: {printable(str(error))}", err=True)
        later = shlex.join(["evenhand", "eval", "record", str(folder), without_password(target)])
        click.echo(f"send it later with: {printable(later)}", err=True)


def send(folder: Path, target: str, token: str | None, project: str) -> Recorded:
    """Record the run."""
    with connected(target, token) as client:
        return record_run(folder, client, project)


def _words(recorded: Recorded, target: str) -> str:
    left = recorded["without_answer"]
    note = f" ({left:,} without an answer left out)" if left else ""
    return f"  recorded: {recorded['runs']:,} runs as experiment {recorded['experiment_id']} in {printable(without_password(target))}{note}"
