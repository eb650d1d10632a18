"""Exact arithmetic where a decision hangs on it.

A score arrives as JSON or as decimal text. Its value here is the decimal that a person reads: the shortest
text that gives back the same float. So five scores of 0.8 have a mean of exactly 0.8 and reach a threshold
of 0.8, which a sum of binary floats misses (0.1 + 0.2 is not 0.3 there).
"""

import operator
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

Number = int | float | str | Decimal | Fraction
"""What counts as a number here: decimal text too. numpy scalars are accepted as well."""

_COMPARISONS = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_NAMES = {
    "gte": ">=",
    "gt": ">",
    "lte": "<=",
    "lt": "<",
    "eq": "==",
    "ne": "!=",
    "≥": ">=",
    "≤": "<=",
    "=": "==",
}

COMPARISONS = (*_COMPARISONS, *_NAMES)
"""Every spelling of a comparison that `compare_exactly` knows."""

_LARGEST_EXPONENT = (
    400  # a float's range; a decimal text of 1e999999999 must not build a number of a gigabyte
)


def as_fraction(value: Number, *, name: str = "value") -> Fraction:
    """The exact value of a number as people write it; ValueError for NaN, infinity and text that is no number.

    >>> as_fraction(0.1) + as_fraction(0.2) == as_fraction(0.3)
    True
    """
    if isinstance(value, Fraction):
        return value
    decimal = _as_decimal(value, name)
    if not decimal.is_finite():
        raise ValueError(f"{name}: must be finite, not {value!r}")
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError(f"{name}: out of range: {value!r}")
    return Fraction(decimal)


def _as_decimal(value: Any, name: str) -> Decimal:
    if isinstance(value, bool):
        return Decimal(int(value))
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):  # numpy's float64 is one of these, and its repr must be a plain float's
        return Decimal(repr(float(value)))
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, str):
        try:
            return Decimal(value.strip())
        except InvalidOperation:
            raise ValueError(f"{name}: not a number: {value[:40]!r}") from None
    if hasattr(value, "item"):
        return _as_decimal(value.item(), name)
    raise ValueError(f"{name}: not a number: {type(value).__name__}")


def exact_sum(values: Iterable[Number], *, name: str = "values") -> Fraction:
    """The exact sum; 0 for nothing."""
    numerator, denominator = 0, 1
    known: dict[float, Fraction] = {}  # most scores of a run have the same few values
    for value in values:
        if type(value) is float:
            found = known.get(value)
            term = found if found is not None else known.setdefault(value, as_fraction(value, name=name))
        else:
            term = as_fraction(value, name=name)
        # Scores share a few denominators (1, 10, 100): adding without reducing each time is much faster.
        if term.denominator == denominator:
            numerator += term.numerator
        elif denominator % term.denominator == 0:
            numerator += term.numerator * (denominator // term.denominator)
        elif term.denominator % denominator == 0:
            numerator = numerator * (term.denominator // denominator) + term.numerator
            denominator = term.denominator
        else:
            total = Fraction(numerator, denominator) + term
            numerator, denominator = total.numerator, total.denominator
    return Fraction(numerator, denominator)


def exact_mean(values: Iterable[Number], *, name: str = "values") -> Fraction:
    """The exact mean; ValueError for nothing.

    >>> exact_mean([0.8] * 5) == as_fraction(0.8)
    True
    """
    listed = list(values)
    if not listed:
        raise ValueError(f"{name}: must not be empty")
    return exact_sum(listed, name=name) / len(listed)


def compare_exactly(value: Number, comparison: str, threshold: Number) -> bool:
    """Whether `value comparison threshold` holds for the exact values, say `compare_exactly(mean, ">=", 0.8)`."""
    spelling = _NAMES.get(comparison, comparison)
    if spelling not in _COMPARISONS:
        raise ValueError(f"comparison: unknown comparison {comparison!r}; known: {', '.join(COMPARISONS)}")
    holds = _COMPARISONS[spelling](as_fraction(value, name="value"), as_fraction(threshold, name="threshold"))
    return bool(holds)
