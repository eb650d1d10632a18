"""`evenhand eval`: run benchmarks, list them, look at results, put shards together."""

from typing import TYPE_CHECKING

import click

from evenhand.cli.lazy import Entry, LazyGroup

if TYPE_CHECKING:  # for the import linter: `COMMANDS` names these modules
    from evenhand.cli import (  # noqa: F401
        eval_record,
        eval_rescore,
        eval_run,
        eval_views,
    )

COMMANDS = {
    "run": Entry("evenhand.cli.eval_run", "run benchmarks against a model", "run"),
    "list": Entry("evenhand.cli.eval_views", "list the benchmarks that are known by name", "list_benchmarks"),
    "report": Entry(
        "evenhand.cli.eval_views", "print the result of a finished run and write its page anew", "report"
    ),
    "record": Entry("evenhand.cli.eval_record", "send a finished run to a scoring service", "record"),
    "merge": Entry("evenhand.cli.eval_views", "put the shards of one run together", "merge"),
    "rescore": Entry("evenhand.cli.eval_rescore", "score the stored responses of a run anew", "rescore"),
}


@click.group(cls=LazyGroup, entries=COMMANDS)
def command() -> None:
    """Run benchmarks against a model, and look at what came out.

    \b
    evenhand eval list
    evenhand eval run --bench gsm8k --model-url http://127.0.0.1:8000/v1 --model-id my-model -o out
    evenhand eval report out
    """
