"""Secondary figures that explain a gate and never block it: cache shifts, steps, tool calls, acceptance commands."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from evenhand.ab.arms import METRICS
from evenhand.ab.decision import DecisionGate, GateName
from evenhand.ab.numbers import signed
from evenhand.ab.pairing import DeltaSummary

EXPLAINS: Mapping[GateName, tuple[str, ...]] = {
    "success_rate": ("acceptance_cmd_count_delta", "step_count_delta", "tool_call_count_delta"),
    "duration": (
        "step_count_delta",
        "tool_call_count_delta",
        "acceptance_cmd_count_delta",
        "cache_read_token_delta",
    ),
    "tokens": (
        "cache_read_token_delta",
        "cache_write_token_delta",
        "step_count_delta",
        "tool_call_count_delta",
    ),
}
_LABELS = {metric.delta: metric.label for metric in METRICS}


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One secondary delta next to the gate that it may explain."""

    gate: GateName
    delta: str
    mean: float
    median: float
    regression: bool
    """Whether the treatment is worse on that gate, so that an explanation is wanted."""
    text: str
    """The shift in words."""


def diagnostics_of(
    gates: Sequence[DecisionGate], deltas: Mapping[str, DeltaSummary]
) -> tuple[Diagnostic, ...]:
    """The known shifts, gate by gate."""
    found = []
    for gate in gates:
        for name in EXPLAINS[gate.name]:
            delta = deltas[name]
            if delta.mean is None or delta.median is None:
                continue
            found.append(
                Diagnostic(
                    gate=gate.name,
                    delta=name,
                    mean=delta.mean,
                    median=delta.median,
                    regression=gate.standing == "worse",
                    text=f"{_LABELS[name]}: {signed(delta.mean)} per pair (median {signed(delta.median)})",
                )
            )
    return tuple(found)
