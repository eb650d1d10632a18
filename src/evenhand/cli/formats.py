"""The option `--format`, and JSON on stdout. Apart from `output`, so that a command without tables loads quickly."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from evenhand.core import jsontext

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
    click.echo(msgspec.json.format(jsontext.encode(value), indent=2).decode("utf-8"))
