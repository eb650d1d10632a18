"""What a call costs, from the shipped price table or the caller's own price.

Costs of stored spans are whole numbers of picodollars (a millionth of a millionth of a dollar): prices for a million
tokens with up to six decimals then give exact costs, and sums of them are exact too.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from importlib import resources

from msgspec import Struct

from evenhand.core.jsontext import decode
from evenhand.core.spans import PICO
from evenhand.models.config import Price

# What providers append to a model's name: a date, a build number, "latest".
_SUFFIX = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|latest|preview)$")
_EXACT = Context(prec=100)


class PriceRow(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens, as exact decimals."""

    input: Decimal
    """What the model reads."""
    output: Decimal
    """What the model writes."""
    cache_read: Decimal | None = None
    """What it reads again from a cache; None when that is not known."""
    cache_write: Decimal | None = None
    """What it reads and keeps in a cache; None when that is not known."""
    up_to: int | None = None
    """The longest prompt, in tokens, that these prices hold for."""
    source: str
    """The page that the row was taken from."""
    as_of: str
    """The day on which it was."""


class _Table(Struct):
    note: str
    models: dict[str, PriceRow]


@cache
def shipped_prices() -> Mapping[str, PriceRow]:
    """The table of this release, by model."""
    text = resources.files("evenhand.models").joinpath("prices.json").read_bytes()
    return decode(text, type=_Table).models


def find_row(model: str, table: Mapping[str, PriceRow]) -> PriceRow | None:
    """The row of a model, dated variants and `provider/name` spellings included."""
    for name in (model.lower(), model.rpartition("/")[2].lower()):
        found = table.get(name) or table.get(_SUFFIX.sub("", name))
        if found is not None:
            return found
    return None


def find_price(model: str) -> Price | None:
    """The list price of a model, dated variants and `provider/name` spellings included; None when unknown."""
    row = find_row(model, shipped_prices())
    return None if row is None else Price(input_usd=float(row.input), output_usd=float(row.output))


def cost_of(price: Price | None, input_tokens: int | None, output_tokens: int | None) -> float | None:
    """US dollars for one call; None when the price or a count is not known."""
    if price is None or input_tokens is None or output_tokens is None:
        return None
    return (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1_000_000


def picodollars(
    row: PriceRow, input_tokens: int, output_tokens: int, cache_read: int = 0, cache_write: int = 0
) -> int | None:
    """What a call cost; None where the row does not say. `input_tokens` include those of the cache."""
    fresh = input_tokens - cache_read - cache_write
    if fresh < 0 or (row.up_to is not None and input_tokens > row.up_to):
        return None
    total = Decimal(0)
    for tokens, price in (
        (fresh, row.input),
        (output_tokens, row.output),
        (cache_read, row.cache_read),
        (cache_write, row.cache_write),
    ):
        if tokens:
            if price is None:
                return None
            total = _EXACT.add(total, _EXACT.multiply(price, Decimal(tokens)))
    return whole_picodollars(_EXACT.multiply(total, Decimal("1e-6")))


def whole_picodollars(dollars: Decimal) -> int:
    """An amount in US dollars, rounded to a picodollar (half to even)."""
    return int(_EXACT.multiply(dollars, Decimal(PICO)).to_integral_value(ROUND_HALF_EVEN))
