"""Validation shared by the statistics: every refusal is a ValueError that names the argument."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from evenhand.metrics.types import Alternative, FloatArray, IntArray

LARGEST = 1e50
"""Values beyond this would overflow when their powers are summed."""


def checked_values(values: npt.ArrayLike, *, name: str, at_least: int = 1) -> FloatArray:
    """A finite one-dimensional float array, in the order given."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: must be numbers") from None
    if array.ndim != 1:
        raise ValueError(f"{name}: must be one-dimensional, not of shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name}: must not be empty")
    if array.size < at_least:
        raise ValueError(f"{name}: at least {at_least} values are needed, not {array.size}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: must be finite (no NaN, no infinity)")
    if float(np.abs(array).max()) > LARGEST:
        raise ValueError(f"{name}: must not exceed {LARGEST:g} in size")
    return array


def checked_groups(groups: Sequence[Any] | npt.NDArray[Any], *, n: int, name: str = "groups") -> IntArray:
    """Group labels as integers 0, 1, ... in order of first use."""
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    if len(labels) != n:
        raise ValueError(f"{name}: one label per value is needed: {len(labels)} labels for {n} values")
    codes: dict[Any, int] = {}
    out = np.empty(n, dtype=np.int64)
    for position, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(f"{name}: label {position} is missing")
        try:
            out[position] = codes.setdefault(label, len(codes))
        except TypeError:
            raise ValueError(
                f"{name}: label {position} must be hashable, not {type(label).__name__}"
            ) from None
    if len(codes) < 2:
        raise ValueError(f"{name}: at least 2 different groups are needed, not {len(codes)}")
    return out


def checked_level(level: float, *, name: str = "confidence_level") -> float:
    """A number strictly between 0 and 1."""
    number = _number(level, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name}: must lie strictly between 0 and 1, not {level!r}")
    return number


def checked_count(value: int, *, name: str, at_least: int = 0, at_most: int | None = None) -> int:
    """A whole number in range; a float with no fraction is accepted."""
    as_float = _number(value, name)
    if not as_float.is_integer():
        raise ValueError(f"{name}: must be a whole number, not {value!r}")
    number = int(value)
    if number < at_least:
        raise ValueError(f"{name}: must be at least {at_least}, not {number}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name}: must be at most {at_most}, not {number}")
    return number


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_ | str):
        raise ValueError(f"{name}: must be a number, not {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: must be a number, not {value!r}") from None


def checked_choice(value: str, choices: Sequence[str], *, name: str) -> str:
    """One of the known spellings."""
    if value not in choices:
        raise ValueError(f"{name}: unknown {name} {value!r}; known: {', '.join(choices)}")
    return value


def checked_alternative(value: Alternative) -> Alternative:
    """`two-sided`, `less` or `greater`."""
    checked_choice(value, get_args(Alternative), name="alternative")
    return value


def checked_positive(value: float, *, name: str, zero_allowed: bool = False) -> float:
    """A finite number above 0 (or at least 0)."""
    number = _number(value, name)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero_allowed):
        raise ValueError(
            f"{name}: must be a finite number {'of at least' if zero_allowed else 'above'} 0, not {value!r}"
        )
    return number


def useful_groups(codes: IntArray) -> IntArray | None:
    """The codes, or None when every value is a group of its own and grouping changes nothing."""
    return None if int(codes.max()) + 1 == codes.size else codes


def is_binary(values: FloatArray) -> bool:
    """Whether every value is 0 or 1."""
    return bool(((values == 0.0) | (values == 1.0)).all())


def same_length(first: FloatArray, second: FloatArray, *, names: tuple[str, str]) -> None:
    """Refuse two columns that are not pairs."""
    if first.size != second.size:
        raise ValueError(
            f"{names[1]}: must have as many values as {names[0]} ({first.size}), not {second.size}"
        )
