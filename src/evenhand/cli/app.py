"""`evenhand`: the group of all commands. A command's module is imported only when it is called."""

import errno
import sys
from typing import NoReturn

import click

from evenhand import __version__
from evenhand.cli.lazy import READER_GONE, Entry, LazyGroup
from evenhand.core.errors import EvenhandError
from evenhand.core.terminal import printable

CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
CANNOT_WRITE_STATUS = 74

# Each module defines `command`, a click command or group.
COMMANDS: dict[str, Entry] = {
    "score": Entry("evenhand.cli.score", "score outputs you already have"),
    "compare": Entry("evenhand.cli.compare", "is the change real? compare runs, problem by problem"),
    "gate": Entry("evenhand.cli.gate", "may it ship? judge a candidate by a release policy"),
    "plan": Entry("evenhand.cli.plan", "how many problems and repeats would show the effect"),
    "eval": Entry("evenhand.cli.eval", "run benchmarks against a model"),
    "validate": Entry("evenhand.cli.validate", "check a benchmark without calling a model"),
    "serve": Entry("evenhand.cli.serve", "run the scoring service"),
    "token": Entry("evenhand.cli.tokens", "who may use the scoring service"),
    "db": Entry("evenhand.cli.db", "the scoring service's database: migrate, back up, check"),
    "ab": Entry("evenhand.cli.ab", "compare two arms run by run, and decide"),
    "doctor": Entry("evenhand.cli.doctor", "show which sandboxes work here, and what to install"),
    "judge": Entry("evenhand.cli.judge", "judge answers with a model, and check the judge against people"),
    "mock-model": Entry("evenhand.cli.mock_model", "serve scripted answers as a chat endpoint"),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="evenhand")
def command() -> None:
    """Turn AI outputs into measurements, and measurements into decisions.

    \b
    Exit status: 0 done, 1 something failed or a service is away, 2 bad input or usage,
    74 the output cannot be written, 75 another process works on it, 130 interrupted, 141 its reader went away.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line; what went wrong on purpose becomes one sentence and an exit status."""
    try:
        status = command.main(args=args, prog_name="evenhand", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except EvenhandError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        _leave(READER_GONE)
    except OSError as error:
        if error.filename is not None:
            click.echo(f"Error: {printable(str(error.filename))}: {error.strerror}", err=True)
            sys.exit(2)
        if error.errno not in CANNOT_WRITE:
            raise
        click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
        _leave(CANNOT_WRITE_STATUS)
    if status == READER_GONE:
        _leave(READER_GONE)
    sys.exit(status if isinstance(status, int) else 0)


def _leave(status: int) -> NoReturn:
    # What stdout still holds has nowhere to go: the interpreter must not try again on its way out.
    sys.stdout = None
    sys.exit(status)
