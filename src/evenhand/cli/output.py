"""What commands print: tables, JSON, progress. Results go to stdout, everything about the work to stderr."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from evenhand.cli.formats import format_option as format_option
from evenhand.cli.formats import print_json as print_json
from evenhand.cli.formats import save_audit as save_audit
from evenhand.cli.formats import save_text as save_text
from evenhand.core.terminal import printable

LOG_SECONDS = 5.0
"""How often progress writes a line where there is no terminal."""

F = TypeVar("F", bound=Callable[..., Any])


class HasInterval(Protocol):
    """A value with an interval, such as `metrics.types.Interval`."""

    @property
    def value(self) -> float: ...
    @property
    def ci_lower(self) -> float: ...
    @property
    def ci_upper(self) -> float: ...


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would end the program with 1, which is a verdict of some commands.
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console; without a terminal it has no colours and does not fold lines."""
    made = _Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal:
        made.width = 10_000
    return made


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric_from: int = 1
) -> Table:
    """A table; columns from `numeric_from` on are aligned to the right. Cells are shown as they are."""
    made = Table(
        title=escape(printable(title)) or None,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for number, name in enumerate(columns):
        made.add_column(
            escape(printable(name)),
            justify="right" if number >= numeric_from else "left",
            no_wrap=number >= numeric_from,
        )
    for row in rows:
        made.add_row(*(escape(printable(cell)) for cell in row))
    return made


def interval_text(interval: HasInterval, *, digits: int = 4) -> str:
    """`0.7125 [0.6801, 0.7433]`."""
    return f"{interval.value:.{digits}f} [{interval.ci_lower:.{digits}f}, {interval.ci_upper:.{digits}f}]"


class Steps(Protocol):
    """What `progress` gives: tell it how far the work has come."""

    def advance(self, steps: int = 1) -> None:
        """So many more are done."""

    def note(self, text: str) -> None:
        """A short remark to show beside the count."""


@contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Steps]:
    """A bar on a terminal; in a log a plain line every few seconds. Always on stderr."""
    if sys.stderr.isatty():
        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        ]
        with Progress(*columns, console=console(stderr=True), transient=True) as bar:
            yield _Bar(bar, bar.add_task(escape(what), total=total, note=""))
    else:
        yield _Lines(what, total)


class _Bar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def advance(self, steps: int = 1) -> None:
        self._bar.advance(self._task, steps)

    def note(self, text: str) -> None:
        self._bar.update(self._task, note=escape(printable(text)))


class _Lines:
    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._note = ""
        self._next = time.monotonic() + LOG_SECONDS

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOG_SECONDS
            of = f" of {self._total:,}" if self._total is not None else ""
            note = f", {self._note}" if self._note else ""
            click.echo(f"{self._what}: {self._done:,}{of}{note}", err=True)

    def note(self, text: str) -> None:
        self._note = printable(text)
