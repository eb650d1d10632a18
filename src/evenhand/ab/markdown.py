"""analysis.md."""

import re

from evenhand.ab.findings import Findings
from evenhand.ab.narrative import interval_notes, next_steps, reasons, verdict_line
from evenhand.ab.numbers import counted
from evenhand.ab.tables import TextTable, delta_table, gate_table, summary_table
from evenhand.core.terminal import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|&])")


def markdown(report: Findings) -> str:
    """The report as Markdown; names from the log are escaped."""
    parts = [
        f"# A/B analysis: {_text(report.treatment or '(no arm)')} against {_text(report.control or '(no arm)')}",
        f"**Decision: {_text(verdict_line(report))}**",
    ]
    if lines := reasons(report):
        parts.append("## Why\n\n" + "\n".join(_item(line) for line in lines))
    if steps := next_steps(report):
        parts.append("## What to do next\n\n" + "\n".join(_item(step) for step in steps))
    parts += [
        "## Gates\n\n" + _table(gate_table(report)),
        "## Arms\n\n" + _table(summary_table(report)),
        f"## Paired deltas, treatment − control ({counted(report.paired_runs, 'pair')})\n\n"
        + "\n\n".join([_table(delta_table(report)), *(_text(note) for note in interval_notes(report))]),
        "## Data\n\n" + "\n".join(f"- {_text(line)}" for line in data_lines(report)),
        "## How it was computed\n\n" + method_text(report),
    ]
    return "\n\n".join(parts) + "\n"


def data_lines(report: Findings) -> list[str]:
    """The denominators: what was read, what counted and what was left out."""
    quality = report.data_quality
    left_out = counted(report.excluded_infra_failures, "infrastructure failure")
    runs = f"{counted(report.run_count, 'run')} of {counted(report.task_count, 'task')}"
    alone = ", ".join(f"{count:,} in {arm}" for arm, count in quality.unpaired_runs.items())
    lines = [
        f"{runs}: {report.effective_run_count:,} counted, {left_out} left out",
        f"{counted(report.paired_runs, 'pair')}; without a partner: {alone or 'none'}",
    ]
    nulls = ", ".join(f"{name} {count:,}" for name, count in quality.null_values.items() if count)
    reading = "read as zero" if quality.null_as_zero else "left out"
    lines.append(f"missing values ({reading}): {nulls or 'none'}")
    if quality.invalid_lines:
        lines.append(f"{counted(quality.invalid_lines, 'line')} could not be read and were skipped")
        lines += [f"skipped: {example}" for example in quality.invalid_examples]
    if quality.other_arms:
        others = ", ".join(f"{arm} ({count:,})" for arm, count in quality.other_arms.items())
        lines.append(f"other arms, not compared: {others}")
    if quality.tasks_in_one_arm:
        lines.append(f"{counted(quality.tasks_in_one_arm, 'task')} ran in one arm only")
    if quality.success_contradicts_acceptance:
        lines.append(
            f"{counted(quality.success_contradicts_acceptance, 'run')} where success and acceptance exit code "
            "do not agree"
        )
    return lines


def method_text(report: Findings) -> str:
    """How the intervals and tests came about."""
    methods = {
        kind: sorted({found.method for one in report.intervals.values() if (found := getattr(one, kind))})
        for kind in ("mean", "median")
    }
    means, medians = ("; or ".join(methods[kind]) or "none" for kind in ("mean", "median"))
    return (
        "Repeats of one task are not independent, so intervals and p-values rest on tasks. "
        f"Intervals of means: {means}. Intervals of medians: {medians}. Percentile bootstrap intervals by task "
        f"({report.n_resamples:,} resamples, seed {report.seed}) are in analysis.json; with few tasks they are too "
        "narrow. The p-value by task flips the sign of whole tasks at random: it is the share of sign patterns whose "
        "sum is at least as far from 0. For the gates it is corrected after Holm (the smallest of the three times 3, "
        "the next times 2), so that the chance of any false proof stays at 5%. The p-values of single pairs (exact "
        "McNemar, which counts the pairs that only one arm passed, and sign flips of pairs) are in analysis.json and "
        "answer for these very tasks only. A null is missing, not zero. The gates compare the arms; the deltas "
        "compare pairs and are the better guide."
    )


def _item(line: str) -> str:
    indent = "  " if line.startswith("  ") else ""
    return f"{indent}- {_text(line.strip())}"


def _text(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(printable(value).split()))


def _table(table: TextTable) -> str:
    head = "| " + " | ".join(_text(column) for column in table.columns) + " |"
    rule = "|---|" + "---:|" * (len(table.columns) - 1)
    rows = ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join([head, rule, *rows])
