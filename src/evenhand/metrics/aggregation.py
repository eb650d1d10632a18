"""Means per category, each with its interval and its closed denominator."""

from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.metrics.checks import checked_values, is_binary
from evenhand.metrics.intervals import NoSpread, mean_interval
from evenhand.metrics.types import CategoryScore, Interval

UNCATEGORISED = "uncategorised"
"""The category of samples that name none."""


def category_breakdown(
    results: Iterable[Any], key: str, *, confidence_level: float = 0.95
) -> list[CategoryScore]:
    """The mean reward per value of `metadata[key]`, in order of the category's name.

    A result is a mapping or an object with `reward` and `metadata`, as in `results.jsonl`; the key may also
    stand beside the reward. A reward of None is counted as failed when `status` says so, as unscored
    otherwise; it is never a zero. Repeats of a problem (the same `problem_idx`) are one group of the
    interval.
    """
    rows: dict[str, _Rows] = {}
    for position, result in enumerate(results):
        metadata = _field(result, "metadata") or {}
        category = metadata.get(key) if isinstance(metadata, Mapping) else None
        if category is None:
            category = _field(result, key)
        name = UNCATEGORISED if category is None else str(category)
        rows.setdefault(name, _Rows()).add(result, position)
    return [rows[name].summary(name, confidence_level) for name in sorted(rows)]


class _Rows:
    def __init__(self) -> None:
        self.rewards: list[float] = []
        self.problems: list[Any] = []
        self.unscored = 0
        self.failed = 0

    def add(self, result: Any, position: int) -> None:
        reward = _field(result, "reward")
        status = _field(result, "status")
        if status == "failed":
            self.failed += 1
        elif reward is None or status == "unscored":
            self.unscored += 1
        else:
            self.rewards.append(float(reward))
            problem = _field(result, "problem_idx")
            self.problems.append(("row", position) if problem is None else ("problem", problem))

    def summary(self, name: str, level: float) -> CategoryScore:
        interval = self._interval(level)
        mean = None
        if self.rewards:
            values = checked_values(self.rewards, name="reward")
            values.sort()
            mean = interval.value if interval else float(values.mean())
        return CategoryScore(
            category=name,
            mean_reward=mean,
            n_samples=len(self.rewards),
            ci=interval,
            unscored=self.unscored,
            failed=self.failed,
        )

    def _interval(self, level: float) -> Interval | None:
        if not self.rewards:
            return None
        values = checked_values(self.rewards, name="reward")
        if len(self.rewards) == 1 and not is_binary(values):
            return None
        problems = len(set(self.problems))
        if problems == 1 and len(self.rewards) > 1:
            return None
        groups = None if problems == len(self.rewards) else self.problems
        try:
            return mean_interval(values, groups=groups, confidence_level=level)
        except NoSpread:
            return None


def _field(result: Any, name: str) -> Any:
    if isinstance(result, Mapping):
        return result.get(name)
    return getattr(result, name, None)
