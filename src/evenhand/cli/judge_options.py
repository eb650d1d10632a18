"""What every command that asks a judge takes: where it is, what it is asked, what it may cost."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret

if TYPE_CHECKING:
    from evenhand.evaluation.model_names import Located
    from evenhand.models.config import EndpointConfig

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--judge", "judge_name", metavar="PROVIDER/MODEL", help="The judge by name: openai/gpt-4o, ..."
    ),
    click.option("--judge-url", help="Base URL of the judge's endpoint, up to /v1."),
    click.option("--judge-id", help="The judge model's id."),
    click.option("--judge-api-key", help="The key; better in the environment or in a file."),
    click.option(
        "--judge-api-key-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file that holds the key.",
    ),
    click.option(
        "--dialect",
        type=click.Choice(["openai", "anthropic"]),
        default="openai",
        show_default=True,
        help="Protocol.",
    ),
    click.option(
        "--rubric", default="default", show_default=True, help="default, simpleqa, healthbench or a file."
    ),
    click.option(
        "--concurrency", default=32, show_default=True, type=click.IntRange(1), help="Calls at a time."
    ),
    click.option(
        "--spend-cap", type=click.FloatRange(0), help="US dollars; no call is started past it. Needs --price."
    ),
    click.option("--price", help="IN,OUT: US dollars for a million tokens, in place of the shipped table."),
    click.option("--no-cache", is_flag=True, help="Ask again even where a reply is on disk."),
)


class JudgeOptions(Struct, kw_only=True):
    """What these options say; commands add their own."""

    judge_name: str | None
    judge_url: str | None
    judge_id: str | None
    judge_api_key: str | None
    judge_api_key_file: Path | None
    dialect: Literal["openai", "anthropic"]
    rubric: str
    concurrency: int
    spend_cap: float | None
    price: str | None
    no_cache: bool
    format_: str

    def endpoint(self) -> "EndpointConfig":
        """The judge's endpoint, from options and settings."""
        from evenhand import settings
        from evenhand.models.address import base_url
        from evenhand.models.config import EndpointConfig, Price

        located = self._located()
        price = prices(self.price, "--price")
        return EndpointConfig(
            base_url=base_url(located.url),
            model=located.id,
            api_key=located.api_key,
            dialect=located.dialect,
            concurrency=self.concurrency,
            spend_cap_usd=self.spend_cap,
            price=None if price is None else Price(input_usd=price[0], output_usd=price[1]),
            cache_path=None if self.no_cache else settings.load().cache_folder / "replies.db",
        )

    def _located(self) -> "Located":
        from evenhand import settings
        from evenhand.evaluation.model_names import Located, locate

        key = None
        if self.judge_api_key_file is not None:
            key = Secret(self.judge_api_key_file.read_text(encoding="utf-8").strip())
        elif self.judge_api_key:
            key = Secret(self.judge_api_key)
        if self.judge_name is not None:
            if self.judge_url or self.judge_id:
                raise OptionError("give --judge, or --judge-url and --judge-id, not both")
            return locate(self.judge_name, api_key=key, general_key="EVENHAND_JUDGE_API_KEY")
        if not self.judge_url or not self.judge_id:
            raise OptionError(
                "name the judge with --judge PROVIDER/MODEL, or with --judge-url and --judge-id"
            )
        return Located(self.judge_url, self.judge_id, self.dialect, key or settings.load().judge_api_key)


def judge_options(function: F) -> F:
    """The options of a command that asks a judge."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def prices(text: str | None, option: str) -> tuple[float, float] | None:
    """What a million tokens of questions and of answers cost."""
    if not text:
        return None
    try:
        asked, given = (float(part) for part in text.split(","))
    except ValueError:
        asked = given = -1.0
    if not (0 <= asked < math.inf and 0 <= given < math.inf):
        raise OptionError(f"{option} is two numbers with a comma: 2.5,10")
    return asked, given
