"""`evenhand db`: the scoring service's database."""

import sys
from pathlib import Path

import click

from evenhand.cli.tokens import database_option, opened
from evenhand.core.terminal import printable
from evenhand.settings import load
from evenhand.store.backups import back_up
from evenhand.store.checking import check as find_faults
from evenhand.store.database import reading


@click.group()
def command() -> None:
    """Bring the service's database up to date, copy it, check it.

    \b
    evenhand db migrate --database sqlite:///scores.db
    evenhand db backup copy.db
    evenhand db check
    """


@command.command()
@database_option
def migrate(database: str | None) -> None:
    """Bring the schema up to date. `evenhand serve` does this too when it starts."""
    with opened(database) as found:
        done = found.migrated
    for name in done:
        click.echo(f"Applied {name}")
    click.echo("The schema is up to date.")


@command.command()
@click.argument("target", type=click.Path(path_type=Path))
@database_option
def backup(target: Path, database: str | None) -> None:
    """Write a consistent copy to TARGET, while the server runs."""
    back_up(database or load().database, target)
    click.echo(f"Wrote {printable(str(target))} ({target.stat().st_size:,} bytes).")


@command.command()
@database_option
def check(database: str | None) -> None:
    """Count everything again and compare it with what is kept. Exit status 1 when something differs."""
    faults = 0
    with reading(database or load().database) as connection:
        for fault in find_faults(connection):
            faults += 1
            click.echo(printable(fault))
    click.echo("Everything agrees with a recount." if not faults else f"{faults} faults.")
    sys.exit(1 if faults else 0)
