"""What a call costs, from the shipped price table or the caller's own price."""

import re
from functools import cache
from importlib import resources

from msgspec import Struct

from evenhand.core.jsontext import decode
from evenhand.models.config import Price

# What providers append to a model's name: a date, a build number, "latest".
_SUFFIX = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|latest|preview)$")


class _Table(Struct):
    note: str
    as_of: str
    models: dict[str, tuple[float, float]]


@cache
def _table() -> _Table:
    return decode(
        resources.files("evenhand.models").joinpath("prices.json").read_bytes(),
        type=_Table,
    )


def find_price(model: str) -> Price | None:
    """The list price of a model, dated variants and `provider/name` spellings included; None when unknown."""
    name = model.rpartition("/")[2].lower()
    models = _table().models
    found = models.get(name) or models.get(_SUFFIX.sub("", name))
    return None if found is None else Price(input_usd=found[0], output_usd=found[1])


def cost_of(price: Price | None, input_tokens: int | None, output_tokens: int | None) -> float | None:
    """US dollars for one call; None when the price or a count is not known."""
    if price is None or input_tokens is None or output_tokens is None:
        return None
    return (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1_000_000
