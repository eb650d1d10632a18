"""Three gates and the rule that turns them into a decision."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evenhand.ab.arms import METRIC_BY_NAME, ArmRuns
from evenhand.ab.significance import DeltaTest
from evenhand.ab.summary import as_float

Preference = Literal["treatment", "control", "mixed", "insufficient"]
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


class DecisionGate(Struct, frozen=True, kw_only=True):
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
    proven: bool = False
    """Whether the paired deltas by task show the difference that the gate states: its Holm-corrected p-value is at
    most 0.05, and the mean delta points the same way."""


def gates_of(treatment: ArmRuns, control: ArmRuns) -> tuple[DecisionGate, DecisionGate, DecisionGate]:
    """The three gates. All figures are compared as exact fractions of decimals, without rounding."""
    rates = [Fraction(int(arm.success.sum()), len(arm)) if len(arm) else None for arm in (treatment, control)]
    return (
        _gate("success_rate", "success rate at least the control's", *rates, higher_is_better=True),
        _median_gate("duration", treatment, control),
        _median_gate("tokens", treatment, control),
    )


def _median_gate(name: GateName, treatment: ArmRuns, control: ArmRuns) -> DecisionGate:
    metric = GATE_METRICS[name]
    rule = f"{GATE_LABELS[name]} at most the control's"
    return _gate(
        name, rule, treatment.exact[metric].median(), control.exact[metric].median(), higher_is_better=False
    )


def _gate(
    name: GateName,
    rule: str,
    treatment: Fraction | None,
    control: Fraction | None,
    *,
    higher_is_better: bool,
) -> DecisionGate:
    known = treatment is not None and control is not None
    lead = Fraction(0) if treatment is None or control is None else treatment - control
    if not higher_is_better:
        lead = -lead
    standing: Standing = "better" if lead > 0 else "worse" if lead < 0 else "equal"
    return DecisionGate(
        name=name,
        rule=rule,
        treatment=as_float(treatment),
        control=as_float(control),
        standing=standing if known else "unknown",
        holds=lead >= 0 if known else None,
        holds_for_control=lead <= 0 if known else None,
    )


def with_proof(gate: DecisionGate, tests: Mapping[str, DeltaTest]) -> DecisionGate:
    """The gate, with whether its difference is proven by the test of the paired delta that belongs to it."""
    metric = METRIC_BY_NAME[GATE_METRICS[gate.name]]
    test = tests.get(metric.delta)
    if test is None or not test.proven:
        return gate
    better = test.mean > 0 if metric.higher_is_better else test.mean < 0
    return replace(gate, proven=gate.standing == ("better" if better else "worse"))


def require_proof(verdict: Preference, gates: Sequence[DecisionGate]) -> Preference:
    """The verdict when an unproven gate counts as open: mixed unless every gate is proven in its favour.

    A proven gate points the way its figures do, and the verdict's gates never point the other way.
    """
    if verdict in ("treatment", "control") and not all(gate.proven for gate in gates):
        return "mixed"
    return verdict


def decide(gates: Sequence[DecisionGate]) -> Preference:
    """All gates hold: treatment. All hold with the arms swapped: control. A full tie is the treatment's."""
    if all(gate.holds for gate in gates):
        return "treatment"
    if all(gate.holds_for_control for gate in gates):
        return "control"
    return "mixed"


def decision_text(verdict: Preference, treatment: str | None, control: str | None) -> str:
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
