"""Three gates and the rule that turns them into a decision."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from evenhand.ab.summary import ArmSummary

Verdict = Literal["treatment", "control", "mixed", "insufficient"]
GateName = Literal["success_rate", "duration", "tokens"]
Standing = Literal["better", "equal", "worse", "unknown"]

MIXED = "mixed results - inspect paired deltas"
INSUFFICIENT = "insufficient data"

GATE_METRICS: Mapping[GateName, str] = {
    "success_rate": "success",
    "duration": "duration_seconds",
    "tokens": "non_cache_tokens",
}
"""The metric whose paired delta belongs to each gate."""
GATE_LABELS: Mapping[GateName, str] = {
    "success_rate": "success rate",
    "duration": "median duration",
    "tokens": "median non-cache tokens",
}


class Gate(Struct, frozen=True, kw_only=True):
    """One condition of the decision, as the treatment stands to it."""

    name: GateName
    """`success_rate`, `duration` or `tokens`."""
    rule: str
    """The condition in words."""
    treatment: float | None
    """The treatment's figure."""
    control: float | None
    """The control's figure."""
    standing: Standing
    """The treatment is `better`, `equal`, `worse`, or one of the figures is `unknown`."""
    holds: bool | None
    """Whether the gate holds for the treatment; None when a figure is unknown."""
    holds_for_control: bool | None
    """Whether it holds with the arms swapped."""


def gates_of(treatment: ArmSummary, control: ArmSummary) -> tuple[Gate, Gate, Gate]:
    """The three gates. Success rates are compared as fractions, without rounding."""
    return (
        _gate(
            "success_rate",
            "success rate at least the control's",
            treatment.success_rate,
            control.success_rate,
            lead=treatment.successes * control.runs - control.successes * treatment.runs,
        ),
        _lower_gate("duration", treatment.median_duration_seconds, control.median_duration_seconds),
        _lower_gate("tokens", treatment.median_non_cache_tokens, control.median_non_cache_tokens),
    )


def _lower_gate(name: GateName, treatment: float | None, control: float | None) -> Gate:
    lead = 0.0 if treatment is None or control is None else control - treatment
    return _gate(name, f"{GATE_LABELS[name]} at most the control's", treatment, control, lead=lead)


def _gate(name: GateName, rule: str, treatment: float | None, control: float | None, *, lead: float) -> Gate:
    if treatment is None or control is None:
        return Gate(
            name=name,
            rule=rule,
            treatment=treatment,
            control=control,
            standing="unknown",
            holds=None,
            holds_for_control=None,
        )
    return Gate(
        name=name,
        rule=rule,
        treatment=treatment,
        control=control,
        standing="better" if lead > 0 else "worse" if lead < 0 else "equal",
        holds=lead >= 0,
        holds_for_control=lead <= 0,
    )


def decide(gates: Sequence[Gate]) -> Verdict:
    """All gates hold: treatment. All hold with the arms swapped: control. A full tie is the treatment's."""
    if all(gate.holds for gate in gates):
        return "treatment"
    if all(gate.holds_for_control for gate in gates):
        return "control"
    return "mixed"


def decision_text(verdict: Verdict, treatment: str | None, control: str | None) -> str:
    """The one line that analysis.json carries."""
    match verdict:
        case "treatment":
            return f"prefer {treatment}"
        case "control":
            return f"prefer {control}"
        case "mixed":
            return MIXED
        case "insufficient":
            return INSUFFICIENT
