"""What the pictures of a report are drawn from, at a bounded size whatever the number of runs."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import METRICS, ArmRuns
from evenhand.ab.decimals import Floats, Integers
from evenhand.ab.pairing import Pairs

MAX_TASKS = 60
MAX_VALUES = 2_000


class TaskProfile(Struct, frozen=True, kw_only=True):
    """One task in both arms; None where there is no value."""

    task_id: str
    treatment_rate: float | None
    control_rate: float | None
    treatment_cost: float | None
    """The mean cost of a run."""
    control_cost: float | None
    deltas: dict[str, float | None]
    """The mean of every paired delta."""


class Profile(Struct, frozen=True, kw_only=True):
    """Tasks and distributions."""

    tasks: tuple[TaskProfile, ...]
    """The tasks whose success differs most between the arms first, at most 60."""
    task_count: int
    """How many tasks there are."""
    durations: dict[str, list[float]]
    """Seconds per run, by side; evenly spaced quantiles when there are many."""
    tokens: dict[str, list[float]]
    """Non-cache tokens per run, by side."""


def profile_of(
    tasks: tuple[str, ...], compared: Integers, runs: Mapping[str, ArmRuns], pairs: Pairs
) -> Profile:
    """The profile of a comparison."""
    size = len(tasks)
    rate = {side: _means(runs[side].task, runs[side].values["success"], size) for side in runs}
    cost = {side: _means(runs[side].task, runs[side].values["cost_usd"], size) for side in runs}
    deltas = {metric.delta: _means(pairs.task, pairs.deltas[metric.delta], size) for metric in METRICS}
    gap = np.nan_to_num(np.abs(rate["treatment"] - rate["control"]), nan=2.0)[compared]
    chosen = compared[np.argsort(-gap, kind="stable")][:MAX_TASKS]
    return Profile(
        tasks=tuple(
            TaskProfile(
                task_id=tasks[place],
                treatment_rate=_known(rate["treatment"][place]),
                control_rate=_known(rate["control"][place]),
                treatment_cost=_known(cost["treatment"][place]),
                control_cost=_known(cost["control"][place]),
                deltas={name: _known(column[place]) for name, column in deltas.items()},
            )
            for place in chosen
        ),
        task_count=len(compared),
        durations={side: _sampled(runs[side].values["duration_seconds"]) for side in runs},
        tokens={side: _sampled(runs[side].values["non_cache_tokens"]) for side in runs},
    )


def _means(task: Integers, values: Floats, size: int) -> Floats:
    known = ~np.isnan(values)
    counts = np.bincount(task[known], minlength=size)
    sums = np.bincount(task[known], weights=values[known], minlength=size)
    means = np.full(size, np.nan)
    means[counts > 0] = sums[counts > 0] / counts[counts > 0]
    return means


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _sampled(values: Floats) -> list[float]:
    known = np.sort(values[~np.isnan(values)])
    if len(known) > MAX_VALUES:
        known = known[np.linspace(0, len(known) - 1, MAX_VALUES).round().astype(np.int64)]
    return [float(value) for value in known]
