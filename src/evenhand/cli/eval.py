"""`evenhand eval`: run benchmarks, list them, look at results, put shards together."""

from importlib import import_module

import click

# name -> module and function; loaded when called, for a run needs half of what a report does
COMMANDS = {
    "run": ("evenhand.cli.eval_run", "run", "Run benchmarks against a model."),
    "list": ("evenhand.cli.eval_views", "list_benchmarks", "List the benchmarks that are known by name."),
    "report": (
        "evenhand.cli.eval_views",
        "report",
        "Print the result of a finished run and write its page anew.",
    ),
    "merge": ("evenhand.cli.eval_views", "merge", "Put the shards of one run together."),
}


class EvalGroup(click.Group):
    """Knows its commands by name and loads one when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        found = getattr(import_module(entry[0]), entry[1])
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])


@click.group(cls=EvalGroup)
def command() -> None:
    """Run benchmarks against a model, and look at what came out."""
