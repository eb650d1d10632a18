"""What a span cost: as its provider reports it, else by the prices that this server knows, else unknown."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from evenhand.core.spans import MAX_COST_PICO
from evenhand.models.prices import PriceRow, find_row, picodollars, shipped_prices, whole_picodollars

REPORTED, CONFIGURED, SHIPPED = "reported", "configured", "shipped"
MAX_MODELS = 10_000
"""How many models' prices are remembered; their names come from clients."""

Cost = tuple[int | None, str | None]
"""Picodollars, and where the price came from; two nulls when the cost is not known."""
UNKNOWN: Cost = (None, None)


class PriceBook:
    """The prices of one server: those of its configuration first, then the shipped ones."""

    def __init__(self, own: Mapping[str, PriceRow] | None = None) -> None:
        self._own = {name.lower(): row for name, row in (own or {}).items()}
        self._found: dict[str, tuple[PriceRow, str] | None] = {}

    def cost(
        self,
        model: str | None,
        tokens_input: int | None,
        tokens_output: int | None,
        cache_read: int = 0,
        cache_write: int = 0,
    ) -> Cost:
        """The cost of a call by its tokens."""
        if model is None or tokens_input is None:
            return UNKNOWN
        known = self._find(model)
        if known is None:
            return UNKNOWN
        row, source = known
        # A call without a count of written tokens may have written some, unless what it writes is free (embeddings).
        if tokens_output is None and row.output:
            return UNKNOWN
        pico = picodollars(row, tokens_input, tokens_output or 0, cache_read, cache_write)
        return UNKNOWN if pico is None or pico > MAX_COST_PICO else (pico, source)

    def _find(self, model: str) -> tuple[PriceRow, str] | None:
        if model in self._found:
            return self._found[model]
        row, source = find_row(model, self._own), CONFIGURED
        if row is None:
            row, source = find_row(model, shipped_prices()), SHIPPED
        found = None if row is None else (row, source)
        if len(self._found) < MAX_MODELS:
            self._found[model] = found
        return found


def reported(dollars: object) -> int | None:
    """A reported cost in picodollars; None for what is no amount of money."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float | str):
        return None
    try:
        amount = Decimal(repr(dollars) if isinstance(dollars, float) else str(dollars)[:100])
        pico = whole_picodollars(amount) if amount.is_finite() and 0 <= amount <= 10**9 else -1
    except (InvalidOperation, ValueError):
        return None
    return pico if 0 <= pico <= MAX_COST_PICO else None
