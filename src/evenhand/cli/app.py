"""`evenhand`: the group of all commands. A command's module is imported only when it is called."""

import errno
import gc
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from evenhand import __version__
from evenhand.cli.lazy import Entry, LazyGroup
from evenhand.core.errors import EvenhandError, Exit
from evenhand.core.terminal import printable

if TYPE_CHECKING:  # for the import linter: `COMMANDS` names these modules
    from evenhand.cli import (  # noqa: F401
        ab,
        compare,
        completion,
        db,
        doctor,
        eval,  # noqa: A004  the command's name
        gate,
        import_,
        init,
        judge,
        mock_model,
        plan,
        score,
        serve,
        tokens,
        validate,
        view,
    )

CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# Each module defines `command`, a click command or group, and is among the imports above.
COMMANDS: dict[str, Entry] = {
    "score": Entry("evenhand.cli.score", "score outputs you already have"),
    "compare": Entry("evenhand.cli.compare", "is the change real? compare runs, problem by problem"),
    "gate": Entry("evenhand.cli.gate", "may it ship? judge a candidate by a release policy"),
    "import": Entry("evenhand.cli.import_", "read result files of other tools"),
    "init": Entry("evenhand.cli.init", "write a first evenhand.yaml, which runs as it is"),
    "plan": Entry("evenhand.cli.plan", "how many problems and repeats would show the effect"),
    "eval": Entry("evenhand.cli.eval", "run benchmarks against a model"),
    "validate": Entry("evenhand.cli.validate", "check a benchmark without calling a model"),
    "serve": Entry("evenhand.cli.serve", "run the scoring service"),
    "view": Entry("evenhand.cli.view", "look at runs on disk in a browser"),
    "token": Entry("evenhand.cli.tokens", "who may use the scoring service"),
    "db": Entry("evenhand.cli.db", "the scoring service's database: migrate, back up, check"),
    "ab": Entry("evenhand.cli.ab", "compare two arms run by run, and decide"),
    "doctor": Entry("evenhand.cli.doctor", "show what works on this machine, and what to install"),
    "judge": Entry("evenhand.cli.judge", "judge answers with a model, and check the judge against people"),
    "mock-model": Entry("evenhand.cli.mock_model", "serve scripted answers as a chat endpoint"),
    "completion": Entry("evenhand.cli.completion", "print the script for completion in a shell"),
}


FIRST_STEPS = """\
Evenhand turns AI outputs into measurements, and measurements into decisions. First steps:

  I have outputs           evenhand score answers.jsonl --scorer exact_match
  I have a model           evenhand eval run --bench gsm8k --model-url URL --model-id ID -o out
  I have two prompts       evenhand init, then evenhand eval run evenhand.yaml
  I have two runs          evenhand compare out-before out-after
  I have traces            evenhand serve --demo        (then open the printed link)

No model at hand: `evenhand mock-model` serves scripted answers. What is installed: `evenhand doctor`.
All commands: `evenhand --help`; one of them: `evenhand COMMAND --help`.
"""


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="evenhand")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Turn AI outputs into measurements, and measurements into decisions.

    \b
    Exit status: 0 done, 1 done but a check failed, 64 bad usage, 65 bad or incomparable input,
    66 a missing file, 69 a service is unavailable or a package is missing, 70 an internal error, 74 the output
    cannot be written, 75 another process is using it, 78 a database of another version, 130 interrupted, 141
    broken pipe. 0, 1 and 2 of compare --strict, gate and ab --strict are verdicts.
    """
    if ctx.invoked_subcommand is None:
        click.echo(FIRST_STEPS, nl=False)


def main(args: list[str] | None = None) -> None:
    """Run the command line; what went wrong on purpose becomes one sentence and an exit status."""
    # Loading modules makes many objects and little garbage: looking for it as often as Python does by default costs
    # about a tenth of their processor time.
    gc.set_threshold(10_000, 20, 20)
    try:
        status = command.main(args=args, prog_name="evenhand", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(_click_status(error))
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(Exit.INTERRUPTED)
    except EvenhandError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        _leave(Exit.BROKEN_PIPE)
    except OSError as error:
        _end_on_os_error(error)
    except Exception:
        _end_on_fault()
    if status == Exit.BROKEN_PIPE:
        _leave(Exit.BROKEN_PIPE)
    sys.exit(status if isinstance(status, int) else 0)


def _click_status(error: click.ClickException) -> int:
    """click ends bad usage with 2, which is a verdict of some commands, and a missing file likewise."""
    if isinstance(error, click.BadParameter) and error.param is not None:
        kind = error.param.type
        if isinstance(kind, click.Path) and kind.exists and "does not exist" in error.message:
            return Exit.NO_INPUT
    return Exit.NO_INPUT if isinstance(error, click.FileError) else Exit.USAGE


def _end_on_os_error(error: OSError) -> NoReturn:
    if error.errno in CANNOT_WRITE:
        place = "the output" if error.filename is None else printable(str(error.filename))
        click.echo(f"Error: {place} cannot be written: {error.strerror}", err=True)
        _leave(Exit.OUTPUT)
    if error.filename is not None:
        click.echo(f"Error: {printable(str(error.filename))}: {error.strerror}", err=True)
        sys.exit(Exit.NO_INPUT)
    if isinstance(error, ConnectionError | TimeoutError):
        click.echo(f"Error: the connection failed: {printable(str(error))}", err=True)
        sys.exit(Exit.UNAVAILABLE)
    _end_on_fault()


def _end_on_fault() -> NoReturn:
    import traceback  # takes its time to load, and is rarely needed

    traceback.print_exc()
    click.echo("This is a fault of evenhand itself; please report it with the lines above.", err=True)
    sys.exit(Exit.INTERNAL)


def _leave(status: int) -> NoReturn:
    # What stdout still holds has nowhere to go: the interpreter must not try again on its way out.
    sys.stdout = None
    sys.exit(status)
