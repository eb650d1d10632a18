"""What the data lack: nulls, runs without a partner, failures of the infrastructure, contradictions."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import ArmNames, ArmRuns
from evenhand.ab.decimals import Flags
from evenhand.ab.pairing import Pairs
from evenhand.ab.record import AMOUNTS
from evenhand.ab.table import RunTable

SHOWN = 50
"""How many runs a list names; counts are always complete."""


class UnpairedRun(Struct, frozen=True, kw_only=True):
    """A run without a partner in the other arm."""

    task_id: str
    repeat: int
    arm: str
    reason: str
    """`no such run in the other arm` or `the other run was an infrastructure failure`."""


class DataQuality(Struct, frozen=True, kw_only=True):
    """Everything that was left out or looks wrong, counted."""

    records: int
    """Valid records, of all arms."""
    invalid_lines: int
    """Lines that were skipped."""
    invalid_examples: tuple[str, ...]
    """What was wrong with the first of them."""
    other_arms: dict[str, int]
    """Records of arms that were not compared."""
    infra_failures: dict[str, int]
    """Infrastructure failures by arm."""
    null_as_zero: bool
    """Whether a null was read as 0."""
    null_values: dict[str, int]
    """Nulls by field, among the runs that count."""
    pairs_without_value: dict[str, int]
    """Pairs that lack a value on either side, by delta."""
    unpaired_runs: dict[str, int]
    """Runs without a partner, by arm."""
    unpaired: tuple[UnpairedRun, ...]
    """The first of them."""
    tasks_in_one_arm: int
    """Tasks that only one arm ran."""
    success_contradicts_acceptance: int
    """Runs whose `success` does not agree with their `acceptance_exit_code`."""


def quality_of(
    table: RunTable, names: ArmNames, runs: Mapping[str, ArmRuns], pairs: Pairs, *, null_as_zero: bool
) -> DataQuality:
    """What the data lack. `runs` holds the runs that count under `treatment` and `control`."""
    counts = np.bincount(table.arm, minlength=len(table.arms))
    compared = [name for name in (names.treatment, names.control) if name is not None]
    rows = _rows(table, compared)
    counted = rows & ~table.infra
    unpaired = {"treatment": pairs.unpaired_treatment, "control": pairs.unpaired_control}
    sides = [(side, name) for side in ("treatment", "control") if (name := getattr(names, side)) is not None]
    seen = [set(np.unique(side.task).tolist()) for side in runs.values()]
    return DataQuality(
        records=len(table),
        invalid_lines=table.invalid_count,
        invalid_examples=table.invalid,
        other_arms={
            name: int(counts[place]) for place, name in enumerate(table.arms) if name not in compared
        },
        infra_failures={name: int((_rows(table, [name]) & table.infra).sum()) for name in compared},
        null_as_zero=null_as_zero,
        null_values={field: int(np.isnan(table.amounts[field][counted]).sum()) for field in AMOUNTS[1:]},
        pairs_without_value={name: int(np.isnan(column).sum()) for name, column in pairs.deltas.items()},
        unpaired_runs={name: int(unpaired[side].sum()) for side, name in sides},
        unpaired=_unpaired(table, names, runs, unpaired),
        tasks_in_one_arm=len(seen[0] ^ seen[1]),
        success_contradicts_acceptance=int((table.contradiction & counted).sum()),
    )


def _rows(table: RunTable, names: list[str]) -> Flags:
    places = [table.arms.index(name) for name in names if name in table.arms]
    return np.isin(table.arm, places)


def _unpaired(
    table: RunTable, names: ArmNames, runs: Mapping[str, ArmRuns], unpaired: Mapping[str, Flags]
) -> tuple[UnpairedRun, ...]:
    found = []
    for side, other in (("treatment", "control"), ("control", "treatment")):
        name, partner = getattr(names, side), getattr(names, other)
        places = np.flatnonzero(unpaired[side])[:SHOWN]
        if name is None or not places.size:
            continue
        failed = _failed(table, partner)
        for place in places:
            task, repeat = int(runs[side].task[place]), int(runs[side].repeat[place])
            reason = (
                "the other run was an infrastructure failure"
                if (task, repeat) in failed
                else "no such run in the other arm"
            )
            found.append(UnpairedRun(task_id=table.tasks[task], repeat=repeat, arm=name, reason=reason))
    # By name, not by side: swapping the arms changes nothing here.
    found.sort(key=lambda run: (run.task_id, run.repeat, run.arm))
    return tuple(found[:SHOWN])


def _failed(table: RunTable, name: str | None) -> set[tuple[int, int]]:
    rows = _rows(table, [name] if name is not None else []) & table.infra
    return set(zip(table.task[rows].tolist(), table.repeat[rows].tolist(), strict=True))
