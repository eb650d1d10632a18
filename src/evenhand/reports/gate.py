"""`evenhand gate --report gate.html`: the verdict, then every metric with its limit, on one page."""

from collections.abc import Sequence

from evenhand.compare.gate import GateReport, MetricCheck
from evenhand.plots import IntervalRow, interval_axis, interval_picture, interval_scale
from evenhand.reports.components import (
    Cell,
    Column,
    Reason,
    Section,
    Table,
    Tone,
    VerdictBanner,
    numbers,
)
from evenhand.reports.numbers import counted, number, signed
from evenhand.reports.rendering import document

TONES: dict[str, Tone] = {"GO": "good", "NO-GO": "bad", "PASS": "good", "BREACH": "bad"}
MARKS = {"PASS": "✓", "BREACH": "✕"}


def gate_page(found: GateReport) -> str:
    """Verdict first, then the metrics that decided it."""
    sections = [Section("", [_verdict(found)])]
    metrics: dict[str, list[MetricCheck]] = {}
    for gate in found.gates:
        metrics.setdefault(gate.metric, []).append(gate)
    if found.gates:
        sections += [
            Section(
                "Damage and limits",
                [_damages(gates) for gates in metrics.values()],
                note="Damage is how much worse the candidate is, with one-sided bounds; dashed: the limit",
            ),
            Section("Metrics", [_metrics(found)]),
        ]
    return document(
        f"Gate: {found.verdict}",
        sections,
        crumb="gate",
        facts=[
            counted(len(found.gates), "metric"),
            f"error rate of the whole {found.alpha:g}",
            *(f"treatment: {change}" for change in found.treatment),
        ],
    )


def _verdict(found: GateReport) -> VerdictBanner:
    reasons = [
        Reason(f"{gate.benchmark} {gate.metric}: {words}", _tone(gate))
        for gate in found.gates
        for words in gate.reasons
    ]
    return VerdictBanner(
        name=found.verdict,
        sentence=found.sentence,
        tone=TONES.get(found.verdict, "warn"),
        shown=found.verdict in TONES,
        reasons=[*reasons, *(Reason(words, "warn") for words in found.notes)],
    )


def _tone(gate: MetricCheck) -> Tone:
    return TONES.get(gate.status, "warn")


def _damages(gates: Sequence[MetricCheck]) -> Table:
    """One metric over all benchmarks, on one axis; each row has its own limit."""
    rows = [
        IntervalRow(
            label=gate.benchmark,
            value=gate.damage,
            low=gate.damage_lower,
            high=gate.damage_upper,
            tone=_tone(gate),
            shown=gate.status in TONES,
        )
        for gate in gates
    ]
    scale = interval_scale(rows, [0.0, *(gate.limit for gate in gates if gate.limit is not None)])
    cells: list[list[Cell | str]] = [
        [
            gate.benchmark,
            Cell("no data", unknown=True)
            if gate.damage is None
            else Cell(signed(gate.damage, 4), _bounds(gate)),
            Cell(svg=interval_picture(row, scale, reference=0.0, limit=gate.limit)),
            number(gate.limit, 4),
        ]
        for gate, row in zip(gates, rows, strict=True)
    ]
    axis = Column("damage as a plot", "plot", interval_axis(scale))
    return Table([Column("benchmark"), *numbers("damage"), axis, *numbers("limit")], cells, gates[0].metric)


def _bounds(gate: MetricCheck) -> str:
    if gate.damage_lower is None or gate.damage_upper is None:
        return ""
    return f"[{signed(gate.damage_lower, 4)}, {signed(gate.damage_upper, 4)}]"


def _metrics(found: GateReport) -> Table:
    rows: list[list[Cell | str]] = [
        [
            gate.benchmark,
            gate.metric,
            gate.tier,
            Cell(f"{MARKS.get(gate.status, '!')} {gate.status}", tone=_tone(gate)),
            number(gate.base, 4),
            number(gate.candidate, 4),
        ]
        for gate in found.gates
    ]
    return Table(["benchmark", "metric", "tier", "status", *numbers("base", "candidate")], rows)
