"""Many runs as columns: what every later step works on.

Rows are held in one canonical order (task, arm, repeat), so nothing that is computed from a table depends on the
order of the lines it came from.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.ab.decimals import Flags, Floats, Integers
from evenhand.ab.record import AMOUNTS, RunRecord, is_infra_failure, parse_record
from evenhand.core.errors import InputError
from evenhand.core.terminal import printable

LongNumbers = Mapping[tuple[int, str], Decimal]
"""Row and field → the number as it was written, where a float does not give that text back."""

_SHOWN_DUPLICATES = 20
_row = attrgetter(
    "task_id",
    "arm",
    "repeat",
    "success",
    "infra_failure",
    "agent_exit_code",
    "opencode_exit_code",
    "acceptance_exit_code",
    *AMOUNTS,
)


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """Runs as columns of equal length, in canonical order; a missing amount is NaN."""

    tasks: tuple[str, ...]
    """The task ids, sorted; `task` holds places in it."""
    arms: tuple[str, ...]
    """The names of the arms, sorted; `arm` holds places in it."""
    task: Integers
    arm: Integers
    repeat: Integers
    success: Flags
    infra: Flags
    """Runs that failed for infrastructure reasons."""
    contradiction: Flags
    """Runs whose `success` does not agree with their acceptance exit code."""
    amounts: Mapping[str, Floats]
    """One column per measured field."""
    long: Mapping[str, Mapping[int, Decimal]] = field(default_factory=dict)
    """By field and row, the amounts that were written with more digits than a float holds."""
    invalid: tuple[str, ...] = ()
    """What was wrong with the first lines that were skipped."""
    invalid_count: int = 0
    """How many lines were skipped."""

    def __len__(self) -> int:
        return len(self.task)

    @classmethod
    def from_records(cls, records: Iterable[RunRecord | Mapping[str, Any]]) -> "RunTable":
        """A table of records or plain mappings; `InputError` names the record that is bad."""
        builder = TableBuilder()
        rows = []
        for number, record in enumerate(records, start=1):
            try:
                rows.append(parse_record(record))
            except InputError as error:
                raise InputError(error.reason, path="record", line=number, field=error.field) from None
        builder.add(rows, range(1, len(rows) + 1))
        return builder.build(unit="record")


class _Codes(dict[str, int]):
    """Gives each new name the next number."""

    def __missing__(self, name: str) -> int:
        self[name] = code = len(self)
        return code


class TableBuilder:
    """Collects rows in blocks of columns, so that a million records never exist as objects at one time."""

    def __init__(self) -> None:
        self._task_codes = _Codes()
        self._arm_codes = _Codes()
        self._blocks: list[tuple[NDArray[Any], ...]] = []
        self._long: dict[tuple[int, str], Decimal] = {}
        self._size = 0

    def add(self, rows: Sequence[RunRecord], lines: Sequence[int], long: LongNumbers | None = None) -> None:
        """Append records, the lines they came from, and the amounts among them that floats cannot hold."""
        if not rows:
            return
        self._long |= {(self._size + row, name): number for (row, name), number in (long or {}).items()}
        self._size += len(rows)
        tasks, arms, repeats, success, flags, agents, opencodes, acceptance, *amounts = zip(
            *map(_row, rows), strict=True
        )
        task_codes, arm_codes = self._task_codes, self._arm_codes
        infra = map(is_infra_failure, flags, agents, opencodes, acceptance)
        disagrees = (
            code is not None and done != (code == 0) for done, code in zip(success, acceptance, strict=True)
        )
        size = len(rows)
        self._blocks.append(
            (
                np.fromiter(map(task_codes.__getitem__, tasks), np.int64, size),
                np.fromiter(map(arm_codes.__getitem__, arms), np.int64, size),
                np.array(repeats, np.int64),
                np.array(success, np.bool_),
                np.fromiter(infra, np.bool_, size),
                np.fromiter(disagrees, np.bool_, size),
                np.fromiter(lines, np.int64, size),
                # None becomes NaN here.
                np.array(amounts, np.float64),
            )
        )

    def build(
        self,
        *,
        path: Path | str | None = None,
        unit: str = "line",
        invalid: Sequence[str] = (),
        invalid_count: int = 0,
    ) -> RunTable:
        """The table; `InputError` when the same task, arm and repeat came twice."""
        if self._blocks:
            *columns, amounts = [np.concatenate(parts, axis=-1) for parts in zip(*self._blocks, strict=True)]
        else:
            columns = [np.zeros(0, t) for t in (np.int64,) * 3 + (np.bool_,) * 3 + (np.int64,)]
            amounts = np.zeros((len(AMOUNTS), 0))
        self._blocks.clear()
        tasks, task = _sorted_codes(self._task_codes, columns[0])
        arms, arm = _sorted_codes(self._arm_codes, columns[1])
        repeat = columns[2]
        order = np.lexsort((repeat, arm, task))
        task, arm, repeat, success, infra, contradiction, lines = (
            column[order] for column in (task, arm, repeat, *columns[3:])
        )
        same = (task[1:] == task[:-1]) & (arm[1:] == arm[:-1]) & (repeat[1:] == repeat[:-1])
        if same.any():
            places = np.flatnonzero(same)
            found = [
                (tasks[task[i]], arms[arm[i]], int(repeat[i]), int(lines[i]), int(lines[i + 1]))
                for i in places[:_SHOWN_DUPLICATES]
            ]
            raise _duplicates(found, int(same.sum()), path, unit)
        return RunTable(
            tasks=tasks,
            arms=arms,
            task=task,
            arm=arm,
            repeat=repeat,
            success=success,
            infra=infra,
            contradiction=contradiction,
            amounts={name: amounts[row][order] for row, name in enumerate(AMOUNTS)},
            long=_long_by_field(self._long, order),
            invalid=tuple(invalid),
            invalid_count=invalid_count,
        )


def _long_by_field(long: LongNumbers, order: NDArray[np.intp]) -> dict[str, dict[int, Decimal]]:
    out: dict[str, dict[int, Decimal]] = {}
    if long:
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        for (row, name), number in long.items():
            out.setdefault(name, {})[int(place[row])] = number
    return out


def _sorted_codes(codes: Mapping[str, int], column: Integers) -> tuple[tuple[str, ...], Integers]:
    names = sorted(codes)
    places = np.empty(len(names), np.int64)
    for place, name in enumerate(names):
        places[codes[name]] = place
    return tuple(names), places[column]


def _duplicates(
    found: Sequence[tuple[str, str, int, int, int]], count: int, path: Path | str | None, unit: str
) -> InputError:
    listed = "".join(
        f"\n  task {printable(task)}, arm {printable(arm)}, repeat {repeat}: {unit}s {min(a, b)} and {max(a, b)}"
        for task, arm, repeat, a, b in found
    )
    more = f"\n  and {count - len(found)} more" if count > len(found) else ""
    runs = "one duplicate run" if count == 1 else f"{count} duplicate runs"
    return InputError(f"{runs} (the same task, arm and repeat); remove one of each:{listed}{more}", path=path)
