"""The tables of a report as text cells, for the terminal, Markdown and the page alike."""

from collections.abc import Sequence
from typing import NamedTuple

from evenhand.ab.arms import METRICS
from evenhand.ab.decision import GATE_LABELS
from evenhand.ab.findings import Findings
from evenhand.ab.narrative import gate_figure
from evenhand.ab.numbers import DASH, p_text, percent, shown, signed
from evenhand.metrics.types import Interval


class TextTable(NamedTuple):
    """A head and rows of cells; every column but the first holds numbers."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


_SUMMARY_ROWS = (
    ("runs", "runs", ""),
    ("successes", "successes", ""),
    ("success rate", "success_rate", "%"),
    ("median duration", "median_duration_seconds", "s"),
    ("median non-cache tokens", "median_non_cache_tokens", ""),
    ("median total tokens", "median_total_tokens", ""),
    ("total cost", "total_cost_usd", "USD"),
    ("average cost", "avg_cost_usd", "USD"),
    ("median cost", "median_cost_usd", "USD"),
    ("solved per dollar", "solved_per_dollar", ""),
    ("median cache reads", "median_cache_read_tokens", ""),
    ("median cache writes", "median_cache_write_tokens", ""),
    ("median steps", "median_step_count", ""),
    ("median tool calls", "median_tool_call_count", ""),
    ("median acceptance commands", "median_acceptance_cmd_count", ""),
)


def gate_table(report: Findings) -> TextTable:
    """The three gates."""
    return TextTable(
        ("gate", report.treatment or DASH, report.control or DASH, "treatment is", "holds", "proven"),
        [
            (
                GATE_LABELS[gate.name],
                gate_figure(gate, gate.treatment),
                gate_figure(gate, gate.control),
                gate.standing,
                {True: "yes", False: "no", None: "unknown"}[gate.holds],
                "yes" if gate.proven else "no",
            )
            for gate in report.gates
        ],
    )


def summary_table(report: Findings) -> TextTable:
    """Each arm by itself; figures that no arm has are left out."""
    rows = []
    for label, field, unit in _SUMMARY_ROWS:
        values = [getattr(summary, field) for summary in report.arm_summaries]
        if any(value is not None for value in values):
            cells = [percent(value) if unit == "%" else shown(value, unit) for value in values]
            rows.append((label, *cells))
    return TextTable(("per arm", *(summary.arm for summary in report.arm_summaries)), rows)


def delta_table(report: Findings) -> TextTable:
    """Treatment − control; deltas that no pair has are left out."""
    rows = []
    for metric in METRICS:
        delta = report.deltas[metric.delta]
        if not delta.pairs:
            continue
        found, test = report.intervals[metric.delta], report.tests.get(metric.delta)
        rows.append(
            (
                f"{metric.label}{f' ({metric.unit})' if metric.unit else ''}",
                signed(delta.mean),
                interval_text(found.mean),
                signed(delta.median),
                interval_text(found.median),
                p_text(test.by_task_p_value if test else None),
                f"{delta.pairs:,}",
            )
        )
    return TextTable(
        (
            "paired delta",
            "mean",
            "95% interval",
            "median",
            "95% interval of the median",
            "p by task",
            "pairs",
        ),
        rows,
    )


def interval_text(interval: Interval | None) -> str:
    """The ends; a dash when there is no interval."""
    if interval is None:
        return DASH
    return f"[{signed(interval.ci_lower)}, {signed(interval.ci_upper)}]"
