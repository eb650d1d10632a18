"""Runs of both arms side by side: equal task and equal repeat form a pair."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import METRICS, ArmRuns
from evenhand.ab.summary import exact_sum, median, plain
from evenhand.ab.table import Flags, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Treatment − control of every pair, as columns in canonical order (task, repeat)."""

    task: Integers
    """The task of each pair, as a place in the table's list of tasks."""
    repeat: Integers
    deltas: Mapping[str, Floats]
    """One column per delta; NaN where either side is missing."""
    unpaired_treatment: Flags
    """Which of the treatment's runs have no partner."""
    unpaired_control: Flags
    """Which of the control's runs have no partner."""

    def __len__(self) -> int:
        return len(self.task)


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
        deltas={
            metric.delta: treatment.values[metric.name][in_treatment]
            - control.values[metric.name][in_control]
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
    """Mean and median of every delta, over the pairs that have it."""
    out = {}
    for name, column in pairs.deltas.items():
        known = column[~np.isnan(column)]
        out[name] = DeltaSummary(
            mean=plain(exact_sum(known) / known.size) if known.size else None,
            median=median(known),
            pairs=int(known.size),
        )
    return out
