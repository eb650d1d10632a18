"""What every command that asks a judge takes: where it is, what it is asked, what it may cost."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from msgspec import Struct
from msgspec.structs import asdict

from evenhand.cli.endpoint_options import ONLY_JUDGE
from evenhand.core.secret import Secret

if TYPE_CHECKING:
    from evenhand.models.config import EndpointConfig

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    ONLY_JUDGE,
    click.option(
        "--judge-api-key-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file that holds the key.",
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

        given = asdict(self)
        key = None
        if self.judge_api_key_file is not None:
            key = Secret(self.judge_api_key_file.read_text(encoding="utf-8").strip())
        located = ONLY_JUDGE.require(given, key)
        price = ONLY_JUDGE.prices(given)
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


def judge_options(function: F) -> F:
    """The options of a command that asks a judge."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
