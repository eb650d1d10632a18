"""What every command that asks a judge takes: where it is, what it is asked, what it may cost."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from evenhand.core.errors import InputError, OptionError
from evenhand.core.secret import Secret

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--judge-url", required=True, help="Base URL of the judge's endpoint, up to /v1."),
    click.option("--judge-id", required=True, help="The judge model's id."),
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


def judge_options(function: F) -> F:
    """The options of a command that asks a judge."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def endpoint(options: dict[str, Any]) -> Any:
    """The judge's endpoint, from options and settings."""
    from evenhand import settings
    from evenhand.models.address import base_url
    from evenhand.models.config import EndpointConfig, Price

    found = settings.load()
    key = found.judge_api_key
    if options["judge_api_key_file"] is not None:
        key = Secret(options["judge_api_key_file"].read_text(encoding="utf-8").strip())
    elif options["judge_api_key"]:
        key = Secret(options["judge_api_key"])
    price = prices(options["price"], "--price")
    return EndpointConfig(
        base_url=base_url(options["judge_url"]),
        model=options["judge_id"],
        api_key=key,
        dialect=options["dialect"],
        concurrency=options["concurrency"],
        spend_cap_usd=options["spend_cap"],
        price=None if price is None else Price(input_usd=price[0], output_usd=price[1]),
        cache_path=None if options["no_cache"] else found.cache_folder / "replies.db",
    )


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


def make_judge(rubric: str, model: Any) -> Any:
    """The judge for a rubric's name or file."""
    from evenhand.scoring.judging.engine import Judge
    from evenhand.scoring.judging.points import RubricJudge
    from evenhand.scoring.judging.rubrics import HEALTHBENCH_CRITERION

    config = read_rubric(rubric)
    return RubricJudge(model, config) if config is HEALTHBENCH_CRITERION else Judge(model, config)


def read_rubric(rubric: str) -> Any:
    """The configuration that a rubric's name or file stands for."""
    from evenhand.scoring.judging.config import JudgeScoringConfig
    from evenhand.scoring.judging.rubrics import get_rubric

    path = Path(rubric)
    if path.suffix in (".yaml", ".yml", ".json"):
        import yaml

        from evenhand.core import yamltext

        try:
            fields = yamltext.load(path.read_text(encoding="utf-8"))
            return msgspec.convert(fields, JudgeScoringConfig)
        except OSError as error:
            raise InputError(f"cannot read the rubric: {error.strerror}", path=path) from None
        except (UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
            raise InputError(f"not a rubric: {error}", path=path) from None
    return get_rubric(rubric)
