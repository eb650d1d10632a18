"""The options that name one endpoint, a model or a judge: declared once, read once, under each command's own names."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret

if TYPE_CHECKING:
    from evenhand.evaluation.model_names import Located

F = TypeVar("F", bound=Callable[..., Any])


class EndpointFlags(Struct, frozen=True, kw_only=True):
    """What a command calls the options of one endpoint. Their values go by the flags' names, `--judge` as `judge_name`."""

    name: str
    """PROVIDER/MODEL; the address and the id are this with `-url` and `-id`."""
    key: str
    """Its key."""
    key_help: str
    """Where the key comes from otherwise."""
    dialect: str
    """Its protocol."""
    price: str
    """What a million tokens cost."""
    judges: bool
    """Whether it is a judge, whose key has a variable of its own."""

    @property
    def role(self) -> str:
        """What it is, for people."""
        return "judge" if self.judges else "model"

    def __call__(self, function: F) -> F:
        """Declare the options."""
        for option in reversed(self._options()):
            function = option(function)
        return function

    def _options(self) -> list[Callable[[F], F]]:
        role = self.role
        return [
            click.option(
                self.name,
                f"{role}_name",
                metavar="PROVIDER/MODEL",
                help=f"The {role} by name: openai/gpt-4o, ...",
            ),
            click.option(
                f"{self.name}-url", help=f"The chat endpoint of the {role}, up to and including /v1."
            ),
            click.option(f"{self.name}-id", help=f"The {role}'s id, as requests name it."),
            click.option(self.key, help=self.key_help),
            click.option(
                self.dialect,
                type=click.Choice(["openai", "anthropic"]),
                default="openai",
                show_default=True,
                help="Protocol.",
            ),
            click.option(
                self.price,
                help=f"IN,OUT: US dollars for a million tokens of the {role}, in place of the table's.",
            ),
        ]

    def locate(self, given: Mapping[str, Any], key: Secret | None = None) -> "Located | None":
        """The endpoint that the values of the options name; None when they name none. `key` goes before theirs."""
        from evenhand import settings
        from evenhand.evaluation.model_names import Located, locate

        name, url, id_ = (given[f"{self.role}_{part}"] for part in ("name", "url", "id"))
        text = given[_parameter(self.key)]
        key = key or (Secret(text) if text else None)
        if name is not None:
            if url or id_:
                raise OptionError(f"give {self.name}, or {self.name}-url and {self.name}-id, not both")
            general = "EVENHAND_JUDGE_API_KEY" if self.judges else "EVENHAND_API_KEY"
            return locate(name, api_key=key, general_key=general)
        if not url and not id_:
            return None
        if not url or not id_:
            raise OptionError(
                f"a {self.role} needs both {self.name}-url and {self.name}-id; or name one with {self.name}"
            )
        known = settings.load()
        key = key or (known.judge_api_key if self.judges else known.api_key)
        return Located(url, id_, given[_parameter(self.dialect)], key)

    def require(self, given: Mapping[str, Any], key: Secret | None = None) -> "Located":
        """The endpoint, which the command cannot do without."""
        found = self.locate(given, key)
        if found is None:
            raise OptionError(
                f"name the {self.role} with {self.name} PROVIDER/MODEL, or with {self.name}-url and {self.name}-id"
            )
        return found

    def prices(self, given: Mapping[str, Any]) -> tuple[float, float] | None:
        """What a million tokens of questions and of answers cost, where the options say so."""
        text = given[_parameter(self.price)]
        if not text:
            return None
        try:
            asked, answered = (float(part) for part in text.split(","))
        except ValueError:
            asked = answered = -1.0
        if not (0 <= asked < math.inf and 0 <= answered < math.inf):
            raise OptionError(f"{self.price} is two numbers with a comma: 2.5,10")
        return asked, answered


MODEL = EndpointFlags(
    name="--model",
    key="--api-key",
    key_help="Its key; default EVENHAND_API_KEY, then OPENAI_API_KEY, then none.",
    dialect="--dialect",
    price="--price",
    judges=False,
)
"""The model under test."""
JUDGE = EndpointFlags(
    name="--judge",
    key="--judge-api-key",
    key_help="Its key; default EVENHAND_JUDGE_API_KEY, then the model's.",
    dialect="--judge-dialect",
    price="--judge-price",
    judges=True,
)
"""The judge beside a model."""
ONLY_JUDGE = EndpointFlags(
    name="--judge",
    key="--judge-api-key",
    key_help="The key; better in the environment or in a file.",
    dialect="--dialect",
    price="--price",
    judges=True,
)
"""The judge of a command that asks nobody else."""


def _parameter(flag: str) -> str:
    """What click calls the value of a flag."""
    return flag.removeprefix("--").replace("-", "_")
