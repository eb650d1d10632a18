"""`evenhand token`: who may use the scoring service."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import click

from evenhand.cli.output import format_option, print_json
from evenhand.core.errors import OptionError
from evenhand.core.objects.projects import NewToken, Role
from evenhand.core.terminal import printable
from evenhand.settings import load
from evenhand.store.connection import Connection
from evenhand.store.database import Database, changing, open_database, reading
from evenhand.store.projects import require_project
from evenhand.store.tokens import TRUSTED_SECONDS, check_role_scope, create_token, list_tokens, revoke_token

database_option = click.option(
    "--database", help="sqlite:///PATH or postgresql://… (evenhand.db in the data folder)."
)


@contextmanager
def opened(database: str | None) -> Iterator[Database]:
    found = open_database(database or load().database)
    try:
        yield found
    finally:
        found.close()


@click.group()
def command() -> None:
    """Make, list and revoke tokens of the scoring service.

    \b
    evenhand token create --project shop --role write --name nightly
    evenhand token list
    evenhand token revoke TOKEN_ID

    The server may be running.
    """


@command.command()
@click.option("--name", default="command line", help="Who or what will use it.")
@click.option("--project", "project_id", help="The one project that it opens; absent: all (role admin).")
@click.option(
    "--role",
    type=click.Choice(["review", "read", "write", "admin"]),
    help="write for a project, admin for all.",
)
@database_option
@format_option
def create(name: str, project_id: str | None, role: str | None, database: str | None, format_: str) -> None:
    """Make a token and print its secret, once."""
    chosen = cast(Role, role or ("write" if project_id else "admin"))
    if not name or not name.isprintable():
        raise OptionError("--name must be printable")
    check_role_scope(chosen, project_id)

    def work(connection: Connection) -> NewToken:
        if project_id is not None:
            require_project(connection, project_id, scope=None, may_create=True)
        return create_token(connection, name=name, project_id=project_id, role=chosen)

    with changing(database or load().database) as connection:
        made = work(connection)
    if format_ == "json":
        print_json(made)
    else:
        click.echo(f"Token, shown once: {made.token}")


@command.command(name="list")
@database_option
@format_option
def list_(database: str | None, format_: str) -> None:
    """List all tokens; secrets are not stored and not shown."""
    with reading(database or load().database) as connection:
        tokens = list_tokens(connection, scope=None, after=None, limit=100_000)
    if format_ == "json":
        print_json(tokens)
        return
    for token in tokens:
        state = f"revoked {token.revoked_at}" if token.revoked_at else "valid"
        line = f"{token.id}  {token.role:5}  {token.project_id or 'all projects'}  {state}  {token.name}"
        click.echo(printable(line))


@command.command()
@click.argument("token_id")
@database_option
def revoke(token_id: str, database: str | None) -> None:
    """Revoke a token. When the command ends, no server takes it any more."""
    with changing(database or load().database) as connection:
        token = revoke_token(connection, token_id, scope=None)
    time.sleep(TRUSTED_SECONDS + 0.5)  # and a moment for a look-up that had begun already
    click.echo(f"Revoked {token.id}; no server takes it any more.")
