"""Groups of commands that import a command's module only when it is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from evenhand.core.errors import Exit, UnknownName


class Entry(NamedTuple):
    """Where a command lives and what the list of commands says of it."""

    module: str
    summary: str
    name: str = "command"
    """What the command is called in its module."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and summary."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **more: Any) -> None:
        super().__init__(*args, **more)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        found = getattr(import_module(entry.module), entry.name)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.entries:
            raise UnknownName("command", args[0], self.entries)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # click would end the program with 1, which is a verdict of some commands.
            raise click.exceptions.Exit(Exit.BROKEN_PIPE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])
