"""Running summaries of outcomes: counts, mean and interval in memory that does not grow with the samples.

Values are counted while they are few, and else folded into exact sums, so that the mean and its interval are those
of all values, whatever their order and number.
"""

from collections import Counter
from fractions import Fraction
from typing import Any

from evenhand.core.outcome import Failed, Outcome, Scored, Tally, Unscored
from evenhand.metrics.kept import KeptGroups, kept_interval
from evenhand.metrics.types import Interval

MAX_VALUES = 4_096
"""How many different values are counted one by one."""
MAX_LABELS = 1_000
"""How many different labels, reasons and errors are told apart; further ones count as `OTHER`."""
OTHER = "(other)"


class Mean:
    """The mean of numbers, with its interval."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._n = 0
        self._total = Fraction(0)
        self._squares = Fraction(0)
        self._binary = True
        self._groups: dict[Any, list[float]] = {}

    def add(self, value: float, group: Any = None) -> None:
        """One more value; those of one group (the answers to one problem) are not independent."""
        if group is not None:
            size_and_sum = self._groups.setdefault(group, [0, 0.0])
            size_and_sum[0] += 1
            size_and_sum[1] += value
        self._counts[value] += 1
        if len(self._counts) > MAX_VALUES:
            self._fold()

    def interval(self, confidence_level: float = 0.95) -> Interval | None:
        """The mean and its interval; None when there are too few values for one."""
        self._fold()
        if self._groups:
            return kept_interval(self._kept(), binary=self._binary, confidence_level=confidence_level)
        passes = int(self._total) if self._binary else 0
        alone = KeptGroups(size=1, passes=passes, count=self._n, total=self._total, squares=self._squares)
        return kept_interval([alone], binary=self._binary, confidence_level=confidence_level)

    @property
    def value(self) -> float | None:
        """The mean alone."""
        self._fold()
        return float(self._total / self._n) if self._n else None

    def _fold(self) -> None:
        for value, count in self._counts.items():
            exact = Fraction(value)
            self._n += count
            self._total += exact * count
            self._squares += exact * exact * count
            self._binary = self._binary and value in (0.0, 1.0)
        self._counts.clear()

    def _kept(self) -> list[KeptGroups]:
        alike: dict[tuple[int, int], list[Fraction]] = {}
        for size, total in self._groups.values():
            exact = Fraction(total)
            key = (int(size), int(total) if self._binary else 0)
            sums = alike.setdefault(key, [Fraction(0), Fraction(0), Fraction(0)])
            sums[0] += 1
            sums[1] += exact
            sums[2] += exact * exact
        return [
            KeptGroups(size=size, passes=passes, count=int(count), total=total, squares=squares)
            for (size, passes), (count, total, squares) in alike.items()
        ]


class Summary:
    """What became of the samples that one scorer was given."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.mean = Mean()
        self.labels: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.first_failure: tuple[int, Failed] | None = None

    def add(self, outcome: Outcome, *, line: int = 0, group: Any = None) -> None:
        """One more outcome, of the sample on this line."""
        self.tally.add(outcome)
        match outcome:
            case Scored(value=value):
                if isinstance(value, str):
                    _count(self.labels, value)
                else:
                    self.mean.add(value, group)
            case Unscored(reason=reason):
                _count(self.reasons, reason)
            case Failed(error=error):
                _count(self.errors, error)
                if self.first_failure is None:
                    self.first_failure = (line, outcome)


def _count(counter: Counter[str], key: str) -> None:
    counter[key if key in counter or len(counter) < MAX_LABELS else OTHER] += 1


class ScorerSummary:
    """A scorer's summary over all samples and per category."""

    def __init__(self) -> None:
        self.all = Summary()
        self.categories: dict[str, Summary] = {}

    def add(self, outcome: Outcome, *, category: str | None, line: int, group: Any = None) -> None:
        """One more outcome."""
        self.all.add(outcome, line=line, group=group)
        if category is not None:
            if category not in self.categories and len(self.categories) >= MAX_LABELS:
                category = OTHER
            self.categories.setdefault(category, Summary()).add(outcome, line=line, group=group)
