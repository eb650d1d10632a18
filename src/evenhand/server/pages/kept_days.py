"""Days on pictures over time: their names, and the intervals of their means from kept sums."""

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction

from msgspec import Struct

from evenhand.core.objects.scores import ScoreHour
from evenhand.metrics.types import Interval


class KeptMean(Struct, frozen=True, kw_only=True):
    """A mean of kept sums."""

    value: float
    low: float | None
    """None where the data give no interval."""
    high: float | None
    count: int


def label_of(day: datetime) -> str:
    """Such as `3 Nov`."""
    return f"{day.day} {day:%b}"


def interval_of(count: int, total: float, squares: float) -> Interval | None:
    """The interval of a mean; None where the data give none."""
    from evenhand.metrics.kept import KeptGroups, kept_interval  # numpy: not needed to start

    groups = KeptGroups(size=1, passes=0, count=count, total=Fraction(total), squares=Fraction(squares))
    return kept_interval([groups], binary=False)


def mean_of_hours(hours: Iterable[ScoreHour]) -> KeptMean | None:
    """The mean of all numbers of the hours; None without any."""
    numbers = [hour for hour in hours if hour.score_count]
    count = sum(hour.score_count for hour in numbers)
    if not count:
        return None
    total = sum(hour.score_count * (hour.mean or 0.0) for hour in numbers)
    squares = sum(
        (hour.std or 0.0) ** 2 * (hour.score_count - 1) + hour.score_count * (hour.mean or 0.0) ** 2
        for hour in numbers
    )
    found = interval_of(count, total, squares)
    return KeptMean(
        value=total / count,
        low=None if found is None else max(0.0, found.ci_lower),
        high=None if found is None else min(1.0, found.ci_upper),
        count=count,
    )
