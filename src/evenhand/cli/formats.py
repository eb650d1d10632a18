"""The option `--format`, JSON on stdout, reports in files. Apart from `output`, so that a command without tables loads quickly."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from evenhand import __version__
from evenhand.core import jsontext
from evenhand.core.errors import OutputError
from evenhand.core.terminal import printable_json

F = TypeVar("F", bound=Callable[..., Any])


def format_option(function: F) -> F:
    """The option `--format text|json`, given to the command as `format_`."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the result.",
    )(function)


def print_json(value: Any) -> None:
    """One JSON document on stdout, indented; never NaN."""
    click.echo(printable_json(json_text(value)), nl=False)


def json_text(value: Any) -> str:
    """One JSON document, indented; never NaN."""
    return msgspec.json.format(jsontext.encode(value), indent=2).decode("utf-8") + "\n"


def save_audit(path: Path, document: dict[str, Any]) -> None:
    """Write an audit of a verdict, with the version of the program that reached it."""
    save_text(path, json_text({"evenhand": __version__, **document}))


def save_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a report, or its parts, whole or not at all; `OutputError` says why it could not be done."""
    from evenhand.results.writing import write_text  # most commands write no report

    try:
        write_text(path, text)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
