"""`evenhand view`: look at runs on disk with the pages of the service."""

from pathlib import Path

import click

from evenhand.core.errors import MissingExtra


@click.command(
    epilog="""\b
Examples:
  evenhand view out/gsm8k                       one run
  evenhand view runs/before runs/after          two runs over the same problems, to compare
  evenhand view results.json logs/task.eval     result files of promptfoo, Inspect and others"""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 takes a free one."
)
def command(paths: tuple[Path, ...], port: int) -> None:
    """Show runs on disk in a browser: run folders, folders of them, and result files of other tools.

    The pages are those of the service, over a temporary database on this machine alone. The printed link opens them
    once; nothing can be changed, and nothing is left behind when it is stopped with Ctrl-C.
    """
    try:
        from evenhand.server.http.logs import set_up_logging
        from evenhand.server.view import view
    except ImportError as error:
        raise MissingExtra(error.name or "uvicorn", "server", "the server") from error
    set_up_logging("warning")
    view(paths, port=port, announce=click.echo)
