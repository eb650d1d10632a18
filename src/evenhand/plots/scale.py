"""From numbers to positions: linear scales with round ticks."""

import math
from collections.abc import Iterable

from msgspec import Struct


class Scale(Struct, frozen=True):
    """Maps `low..high` linearly to `start..end` (pixels; start may be the larger one)."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The position of `value`."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """About `wanted` round values between low and high."""
        step = round_step((self.high - self.low) / max(wanted, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def fitted(
    values: Iterable[float | None], start: float, end: float, *, include: Iterable[float] = ()
) -> Scale:
    """A scale that holds all finite `values` and `include`, with a little room on both sides."""
    finite = [v for v in [*values, *include] if v is not None and math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        room = abs(low) * 0.1 or 0.5
    else:
        room = (high - low) * 0.05
    return Scale(low - room, high + room, start, end)


def round_step(raw: float) -> float:
    """The 1, 2 or 5 times a power of ten that is nearest above `raw`."""
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if raw <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


def tick_text(value: float) -> str:
    """A short label with a true minus: `0.25`, `−1,500`, `2.5e+07`."""
    size = abs(value)
    if size < 1e-12:
        return "0"
    if size >= 1e7 or size < 1e-4:
        text = f"{size:.3g}"
    else:
        text = f"{size:,.4f}".rstrip("0").rstrip(".") if size < 1000 else f"{size:,.0f}"
    return f"−{text}" if value < 0 else text
