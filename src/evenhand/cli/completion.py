"""`evenhand completion`: completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes evenhand's commands and options in SHELL.

    \b
    evenhand completion bash >> ~/.bashrc
    evenhand completion zsh >> ~/.zshrc
    evenhand completion fish > ~/.config/fish/completions/evenhand.fish
    """
    made = get_completion_class(shell)
    assert made is not None, "click knows all three shells"
    click.echo(made(ctx.find_root().command, {}, "evenhand", "_EVENHAND_COMPLETE").source())
