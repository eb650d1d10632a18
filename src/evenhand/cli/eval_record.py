"""`evenhand eval record`, and `--record` of `eval run`: a finished run goes to the scoring service."""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from evenhand import settings
from evenhand.client.service import ServiceClient
from evenhand.core.errors import EvenhandError, ServiceError
from evenhand.core.secret import Secret
from evenhand.core.terminal import printable
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

    Sending the same results twice changes nothing. Exit status: 0 recorded, 1 the service refused or cannot be
    reached, 2 bad input or usage.
    """
    click.echo(_words(send(folder, target, token, project), target))


def record_quietly(folder: Path, target: str, token: str | None, project: str) -> None:
    """`--record`: whatever goes wrong is a warning; the run and its exit status stand."""
    try:
        click.echo(_words(send(folder, target, token, project), target))
    except (EvenhandError, OSError) as error:
        click.echo(f"Warning: the run was not recorded: {printable(str(error))}", err=True)
        click.echo(f"send it later with: evenhand eval record {folder} {target}", err=True)


def send(folder: Path, target: str, token: str | None, project: str) -> Recorded:
    """Record the run."""
    with connected(target, token) as client:
        return record_run(folder, client, project)


@contextmanager
def connected(target: str, token: str | None) -> Iterator[ServiceClient]:
    """A client of the service at `target`; a file is opened by a server of our own for as long as it takes."""
    key = Secret(token) if token else settings.load().token
    if "://" in target and not target.startswith("sqlite:"):
        with ServiceClient(target, key) as client:
            yield client
    else:
        with _serving(target) as (url, admin), ServiceClient(url, admin) as client:
            yield client


@contextmanager
def _serving(target: str) -> Iterator[tuple[str, Secret]]:
    token = "evh_" + secrets.token_urlsafe(32)
    database = target if target.startswith("sqlite:") else f"sqlite:///{Path(target).resolve()}"
    process = subprocess.Popen(  # noqa: S603  our own command
        [
            sys.executable,
            "-m",
            "evenhand",
            "serve",
            "--port",
            "0",
            "--database",
            database,
            "--log-level",
            "error",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=settings.child_environment(EVENHAND_ADMIN_TOKEN=token),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if address is None:
            process.kill()
            _, errors = process.communicate()
            raise ServiceError(f"{database} cannot be opened: {errors.strip().splitlines()[-1:] or line}")
        yield address, Secret(token)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _words(recorded: Recorded, target: str) -> str:
    left = recorded["without_answer"]
    note = f" ({left:,} without an answer left out)" if left else ""
    return (
        f"  recorded: {recorded['runs']:,} runs as experiment {recorded['experiment_id']} in {target}{note}"
    )
