"""Columns of exact decimals, so that ties are ties.

Amounts arrive as decimal text. As binary floats, 0.1 and 0.2 have another mean than 0.15 and 0.15; as decimals they do
not. A column holds whole numbers of 10^−places: 64-bit integers where they fit, Python's integers where they do not.
The decimal of a float is the shortest text that gives it back, which is the text it came from whenever that had at most
15 digits; longer texts are kept beside the floats (`RunTable.long`) and win.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LARGEST = 2**62
"""Sums of two units below this stay within 64 bits."""
_EXACT_DIGITS = 1e15
"""A decimal of fewer units than this is the only one of its length that a float stands for."""
_EXACT_FLOAT = 2**53
_MOST_PLACES = 15
LONGEST = 400
"""Decimals with more digits or places than this are taken as floats: text must not build a number of a gigabyte."""


@dataclass(frozen=True)
class Decimals:
    """A column of numbers, exactly; `units` is 0 where the number is not known."""

    units: NDArray[Any]
    """Whole multiples of 10^−places; 64-bit integers, or objects where those would overflow."""
    places: int
    known: Flags

    @classmethod
    def from_floats(cls, values: Floats, long: Mapping[int, Decimal] | None = None) -> "Decimals":
        """The decimals of floats (NaN is not known); `long` holds those, by row, that a float cannot stand for."""
        known = ~np.isnan(values)
        digits, places = _shortest(np.where(known, values, 0.0))
        for row, number in (long or {}).items():
            _, figures, exponent = number.as_tuple()
            assert isinstance(exponent, int)
            if max(len(figures), abs(exponent)) <= LONGEST:
                digits = digits.astype(object)
                digits[row], places[row] = _spelled(number)
        most = int(places.max(initial=0))
        return cls(_shifted(digits, most - places), most, known)

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, rows: Any) -> "Decimals":
        return Decimals(self.units[rows], self.places, self.known[rows])

    def __add__(self, other: "Decimals") -> "Decimals":
        mine, theirs, places = self._aligned(other)
        return Decimals(mine + theirs, places, self.known & other.known)._cleared()

    def __sub__(self, other: "Decimals") -> "Decimals":
        mine, theirs, places = self._aligned(other)
        return Decimals(mine - theirs, places, self.known & other.known)._cleared()

    def _aligned(self, other: "Decimals") -> tuple[NDArray[Any], NDArray[Any], int]:
        places = max(self.places, other.places)
        mine = _shifted(self.units, places - self.places)
        theirs = _shifted(other.units, places - other.places)
        return mine, theirs, places

    def _cleared(self) -> "Decimals":
        units = self.units.copy()
        units[~self.known] = 0
        return Decimals(_shifted(units, 0), self.places, self.known)

    def known_only(self) -> "Decimals":
        """The column without the rows that are not known."""
        return self[self.known]

    def floats(self) -> Floats:
        """The nearest floats; NaN where not known."""
        scale = 10**self.places
        if self.units.dtype != object and self.places <= 22 and _largest(self.units) < _EXACT_FLOAT:
            out = self.units / float(scale)
        else:
            # Python divides integers of any size with one rounding.
            out = np.array([unit / scale for unit in self.units.tolist()], np.float64)
        out = np.asarray(out, np.float64) + 0.0
        out[~self.known] = np.nan
        return out

    def sum(self) -> Fraction:
        """The exact sum of the known numbers."""
        return Fraction(_total(self.units), 10**self.places)

    def mean(self) -> Fraction | None:
        """Their exact mean; None when there are none."""
        count = int(self.known.sum())
        return self.sum() / count if count else None

    def median(self) -> Fraction | None:
        """The middle one, or the exact mean of the two middle ones; None when there are none."""
        units = self.units[self.known]
        if not units.size:
            return None
        low, high = (units.size - 1) // 2, units.size // 2
        ranked = np.sort(units) if units.dtype == object else np.partition(units, (low, high))
        return Fraction(int(ranked[low]) + int(ranked[high]), 2 * 10**self.places)

    def sums(self, codes: Integers, groups: int) -> Floats:
        """The sum of the known numbers of each group, added exactly and rounded once."""
        units: NDArray[Any] = self.units
        if units.dtype != object and _largest(units) * max(1, len(units)) >= _LARGEST:
            units = units.astype(object)
        totals: NDArray[Any] = np.zeros(groups, units.dtype)
        np.add.at(totals, codes, units)
        return Decimals(totals, self.places, np.ones(groups, np.bool_)).floats()


def _shortest(values: Floats) -> tuple[NDArray[Any], Integers]:
    """The shortest decimal of each float: its digits as a whole number, and its places."""
    digits = np.zeros(len(values), np.int64)
    places = np.zeros(len(values), np.int64)
    left = np.arange(len(values))
    for count in range(_MOST_PLACES + 1):
        # units / 10^count is rounded once, so where it gives the float back, and has at most 15 digits, it is the
        # decimal in question.
        units = np.rint(values[left] * 10.0**count)
        fits = (np.abs(units) < _EXACT_DIGITS) & (units / 10.0**count == values[left])
        digits[left[fits]] = units[fits].astype(np.int64)
        places[left[fits]] = count
        left = left[~fits]
        if not left.size:
            return digits, places
    spelled: NDArray[Any] = digits.astype(object)
    for row in left.tolist():
        spelled[row], places[row] = _spelled(Decimal(repr(float(values[row]))))
    return spelled, places


def _spelled(number: Decimal) -> tuple[int, int]:
    """The digits of a number of at least 0 as a whole number, and its places."""
    _, figures, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return int("".join(map(str, figures))) * 10 ** max(exponent, 0), max(-exponent, 0)


def _shifted(digits: NDArray[Any], places: Integers | int) -> NDArray[Any]:
    """digits · 10^places, as 64-bit integers where all of them fit."""
    shift = np.broadcast_to(np.asarray(places, np.int64), digits.shape)
    if not digits.size:
        return digits
    most = int(shift.max())
    if digits.dtype != object and _largest(digits) * 10**most < _LARGEST:
        return digits * 10**shift if most else digits
    wide = np.array(
        [digit * 10**by for digit, by in zip(digits.tolist(), shift.tolist(), strict=True)], dtype=object
    )
    return wide.astype(np.int64) if _largest(wide) < _LARGEST else wide


def _largest(units: NDArray[Any]) -> int:
    return max(int(units.max(initial=0)), -int(units.min(initial=0)))


def _total(units: NDArray[Any]) -> int:
    if units.dtype != object and _largest(units) * max(1, len(units)) < _LARGEST:
        return int(units.sum())
    return sum(units.tolist())
