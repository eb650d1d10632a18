"""Which arm is the treatment and which the control, and the runs of each that count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from evenhand.ab.decimals import Decimals, Flags, Floats, Integers
from evenhand.ab.table import RunTable
from evenhand.core.errors import OptionError
from evenhand.core.terminal import printable


class Metric(Struct, frozen=True, kw_only=True):
    """A quantity that both arms are compared on."""

    name: str
    """The column of a run."""
    delta: str
    """The name of treatment − control within a pair."""
    label: str
    """For people."""
    unit: str = ""
    """`s`, `USD` or nothing."""
    higher_is_better: bool = False


METRICS = (
    Metric(name="success", delta="pass_delta", label="success", higher_is_better=True),
    Metric(name="cost_usd", delta="cost_delta_usd", label="cost", unit="USD"),
    Metric(name="duration_seconds", delta="duration_delta_seconds", label="duration", unit="s"),
    Metric(name="total_tokens", delta="token_delta", label="total tokens"),
    Metric(name="non_cache_tokens", delta="non_cache_token_delta", label="non-cache tokens"),
    Metric(name="cache_read_tokens", delta="cache_read_token_delta", label="cache-read tokens"),
    Metric(name="cache_write_tokens", delta="cache_write_token_delta", label="cache-write tokens"),
    Metric(name="step_count", delta="step_count_delta", label="steps"),
    Metric(name="tool_call_count", delta="tool_call_count_delta", label="tool calls"),
    Metric(name="acceptance_cmd_count", delta="acceptance_cmd_count_delta", label="acceptance commands"),
)
METRIC_BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
DEPRECATED_DELTAS: Mapping[str, str] = {
    "step_delta": "step_count_delta",
    "tool_call_delta": "tool_call_count_delta",
    "acceptance_cmd_delta": "acceptance_cmd_count_delta",
}
"""Names of release 0.1 that reports still carry beside the present ones; the next release drops them."""


class ArmNames(Struct, frozen=True, kw_only=True):
    """The two arms of a comparison; None where the data name no second arm."""

    treatment: str | None
    control: str | None


def choose_arms(arms: Sequence[str], treatment: str | None, control: str | None) -> ArmNames:
    """Which arms to compare.

    Names given by the caller win. Two arms of which one starts with `with_` and the other with `without_` are found
    by themselves; so is the second arm when one of two is named. Anything else must be said.
    """
    if treatment is not None and treatment == control:
        raise OptionError(f"the treatment and the control are both '{treatment}'; name two different arms")
    if treatment is not None and control is not None:
        return ArmNames(treatment=treatment, control=control)
    if treatment is not None or control is not None:
        given = treatment if treatment is not None else control
        others = [name for name in arms if name != given]
        if len(others) > 1 and given is not None and given not in arms:
            raise OptionError(f"no run has the arm '{printable(given)}'; {_ask(arms)}")
        if len(others) > 1:
            raise OptionError(_ask(arms))
        other = others[0] if others else None
        if treatment is not None:
            return ArmNames(treatment=treatment, control=other)
        return ArmNames(treatment=other, control=control)
    if len(arms) == 2:
        for first, second in (arms, arms[::-1]):
            if first.startswith("with_") and second.startswith("without_"):
                return ArmNames(treatment=first, control=second)
        raise OptionError(_ask(arms))
    if len(arms) > 2:
        raise OptionError(_ask(arms))
    if not arms:
        return ArmNames(treatment=None, control=None)
    if arms[0].startswith("without_"):
        return ArmNames(treatment=None, control=arms[0])
    return ArmNames(treatment=arms[0], control=None)


def unknown_arms(arms: Sequence[str], treatment: str | None, control: str | None) -> list[str]:
    """The names given by a caller that no record has, where there are records."""
    return [name for name in (treatment, control) if arms and name is not None and name not in arms]


def _ask(arms: Sequence[str]) -> str:
    listed = ", ".join(printable(name) for name in arms[:20]) + (", …" if len(arms) > 20 else "")
    count = "1 arm" if len(arms) == 1 else f"{len(arms)} arms"
    return f"the runs have {count} ({listed}); say which to compare: --treatment NAME --control NAME"


@dataclass(frozen=True, kw_only=True)
class ArmRuns:
    """The runs of one arm that count, as columns in canonical order (task, repeat)."""

    task: Integers
    repeat: Integers
    success: Flags
    exact: Mapping[str, Decimals]
    """One column per metric, as decimals."""
    values: Mapping[str, Floats]
    """The same as the nearest floats; NaN where missing."""

    def __len__(self) -> int:
        return len(self.task)


def runs_of(table: RunTable, name: str | None, *, null_as_zero: bool = False) -> ArmRuns:
    """The runs of one arm without infrastructure failures, with derived amounts."""
    if name in table.arms:
        chosen = (table.arm == table.arms.index(name)) & ~table.infra
    else:
        chosen = np.zeros(len(table), np.bool_)
    rows = np.flatnonzero(chosen)
    amounts = {field: _amount(table, field, rows, null_as_zero=null_as_zero) for field in table.amounts}
    non_cache = amounts["input_tokens"] + amounts["output_tokens"]
    success = table.success[chosen]
    exact = {
        "success": Decimals.from_floats(success.astype(np.float64)),
        "cost_usd": amounts["total_cost_usd"],
        "duration_seconds": amounts["duration_seconds"],
        "total_tokens": non_cache + amounts["cache_read_tokens"] + amounts["cache_write_tokens"],
        "non_cache_tokens": non_cache,
        **{name: amounts[name] for name in list(METRIC_BY_NAME)[5:]},
    }
    return ArmRuns(
        task=table.task[chosen],
        repeat=table.repeat[chosen],
        success=success,
        exact=exact,
        values={metric: column.floats() for metric, column in exact.items()},
    )


def _amount(table: RunTable, field: str, rows: Integers, *, null_as_zero: bool) -> Decimals:
    values = table.amounts[field][rows]
    if null_as_zero:
        values = np.nan_to_num(values, nan=0.0)
    long = table.long.get(field)
    if not long:
        return Decimals.from_floats(values)
    places = {int(row): place for place, row in enumerate(rows)}
    return Decimals.from_floats(
        values, {places[row]: number for row, number in long.items() if row in places}
    )
