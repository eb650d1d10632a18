"""Runs of both arms side by side: equal task and equal repeat form a pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import METRICS, ArmRuns
from evenhand.ab.decimals import Decimals, Flags, Floats, Integers
from evenhand.ab.summary import as_float


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Treatment − control of every pair, as columns in canonical order (task, repeat)."""

    task: Integers
    """The task of each pair, as a place in the table's list of tasks."""
    repeat: Integers
    exact: Mapping[str, Decimals]
    """One column per delta, as decimals; not known where either side is missing."""
    unpaired_treatment: Flags
    """Which of the treatment's runs have no partner."""
    unpaired_control: Flags
    """Which of the control's runs have no partner."""

    def __len__(self) -> int:
        return len(self.task)

    @cached_property
    def deltas(self) -> dict[str, Floats]:
        """The same as the nearest floats; NaN where either side is missing."""
        return {name: column.floats() for name, column in self.exact.items()}

    @cached_property
    def _totals(self) -> dict[str, "TaskTotals"]:
        return {}

    def by_task(self, delta: str) -> "TaskTotals":
        """The known values of a delta, added up by task."""
        if delta not in self._totals:
            self._totals[delta] = self._add_up(delta)
        return self._totals[delta]

    def _add_up(self, delta: str) -> "TaskTotals":
        column = self.exact[delta]
        task, codes = np.unique(self.task[column.known], return_inverse=True)
        known = column.known_only()
        return TaskTotals(
            task=task,
            codes=codes,
            values=self.deltas[delta][column.known],
            sums=known.sums(codes, len(task)),
            sizes=np.bincount(codes, minlength=len(task)).astype(np.float64),
        )


@dataclass(frozen=True, kw_only=True)
class TaskTotals:
    """One delta over the pairs that have it: the values, and what each task adds up to."""

    task: Integers
    """The tasks that have a value, as places in the table's list of tasks."""
    codes: Integers
    """The task of each value, counted without gaps."""
    values: Floats
    sums: Floats
    """Exact sums per task, rounded once: a task whose deltas cancel out is 0."""
    sizes: Floats

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def means(self) -> Floats:
        """The mean delta of each task."""
        return self.sums / self.sizes

    @cached_property
    def ranked(self) -> tuple[Floats, Integers]:
        """The values in ascending order, with their codes."""
        # Equal values may stand in any order: only how many of each task lie at or below a value is ever asked.
        order = np.argsort(self.values, kind="stable")
        return self.values[order], self.codes[order]


class DeltaSummary(Struct, frozen=True, kw_only=True):
    """One paired delta, treatment − control."""

    mean: float | None
    median: float | None
    pairs: int
    """Pairs with a known value on both sides."""


def pair(treatment: ArmRuns, control: ArmRuns) -> Pairs:
    """Match the runs of both arms by task and repeat."""
    left, right = _keys(treatment, control)
    _, in_treatment, in_control = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    alone_treatment = np.ones(len(treatment), np.bool_)
    alone_treatment[in_treatment] = False
    alone_control = np.ones(len(control), np.bool_)
    alone_control[in_control] = False
    return Pairs(
        task=treatment.task[in_treatment],
        repeat=treatment.repeat[in_treatment],
        exact={
            metric.delta: treatment.exact[metric.name][in_treatment] - control.exact[metric.name][in_control]
            for metric in METRICS
        },
        unpaired_treatment=alone_treatment,
        unpaired_control=alone_control,
    )


def _keys(treatment: ArmRuns, control: ArmRuns) -> tuple[Integers, Integers]:
    # Repeats stay below 2³¹ and so do tasks: task and repeat fit into one integer.
    return (
        (treatment.task << 31) | treatment.repeat,
        (control.task << 31) | control.repeat,
    )


def summarize_deltas(pairs: Pairs) -> dict[str, DeltaSummary]:
    """Mean and median of every delta, over the pairs that have it; exact, rounded once."""
    return {
        name: DeltaSummary(
            mean=as_float(column.mean()), median=as_float(column.median()), pairs=int(column.known.sum())
        )
        for name, column in pairs.exact.items()
    }
