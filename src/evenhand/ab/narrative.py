"""The report in sentences: the verdict, why, and what to do next. Terminal, Markdown and page share them."""

from collections.abc import Sequence

from evenhand.ab.arms import METRIC_BY_NAME
from evenhand.ab.decision import GATE_LABELS, GATE_METRICS, Gate, GateName
from evenhand.ab.findings import Findings
from evenhand.ab.numbers import counted, p_text, percent, shown
from evenhand.ab.readiness import Outlook

FEW_TASKS = 10
"""With fewer tasks a percentile interval that resamples tasks is too narrow."""
_NAMED_TASKS = 5
_GATE_WORDS: dict[GateName, str] = {
    "success_rate": "success gate",
    "duration": "runtime gate",
    "tokens": "token gate",
}


def verdict_line(report: Findings) -> str:
    """The decision, and whether it can be promoted."""
    if report.verdict == "insufficient":
        return f"{report.decision}: {_missing(report)}"
    if report.readiness.ready:
        return report.decision
    return f"{report.decision} (not ready for promotion: fewer than {report.readiness.min_repeats} repeats)"


def _missing(report: Findings) -> str:
    if not report.data_quality.records:
        return "there are no records"
    empty = [summary.arm for summary in report.arm_summaries if not summary.runs]
    failed = [arm for arm in empty if report.data_quality.infra_failures.get(arm)]
    if failed:
        return f"every run of {' and '.join(failed)} was an infrastructure failure"
    if empty:
        known = sorted({*report.data_quality.other_arms, *(s.arm for s in report.arm_summaries if s.runs)})
        return f"no runs of {' and '.join(empty)}; the records have {', '.join(known) or 'no arms'}"
    one = report.treatment if report.treatment is not None else report.control
    return f"the records have one arm only, {one}"


def gate_figure(gate: Gate, value: float | None) -> str:
    """A gate's figure as people read it."""
    if gate.name == "success_rate":
        return percent(value)
    return shown(value, METRIC_BY_NAME[GATE_METRICS[gate.name]].unit)


def reasons(report: Findings) -> list[str]:
    """Why: one line per gate, followed by what may explain a regression."""
    if report.verdict == "insufficient":
        return []
    lines = []
    for gate in report.gates:
        lines.append(_gate_line(report, gate))
        if gate.standing == "worse":
            lines += [f"  {found.text}" for found in report.diagnostics if found.gate == gate.name]
    if report.require_significance and report.verdict == "mixed" and all(g.holds for g in report.gates):
        lines.append("Every gate holds, but not every one is proven, and significance is required.")
    return lines


def _gate_line(report: Findings, gate: Gate) -> str:
    label = GATE_LABELS[gate.name]
    if gate.standing == "unknown":
        return f"{label}: unknown, an arm has no value"
    figures = f"{gate_figure(gate, gate.treatment)} against {gate_figure(gate, gate.control)}"
    line = f"{label}: {figures}, {gate.standing}"
    test = report.tests.get(METRIC_BY_NAME[GATE_METRICS[gate.name]].delta)
    if test is None:
        return f"{line} (no pairs to test)"
    proof = "proven" if test.proven else "not proven"
    return f"{line} ({proof}: p = {p_text(test.p_holm)} after Holm)".replace("p = <", "p <")


def next_steps(report: Findings) -> list[str]:
    """What to do next, most useful first."""
    steps = [*_repeats(report), *_settling(report)]
    readiness, quality = report.readiness, report.data_quality
    if report.verdict == "insufficient":
        return [*_data(report), "Run both arms on the same tasks, then analyze again."]
    if readiness.ready and readiness.high_variance and readiness.below_recommended:
        below = counted(readiness.below_recommended, "task-arm pair")
        steps.append(
            f"The runs vary a lot ({_spread(report)}): use {readiness.recommended_repeats} repeats; "
            f"{below} {'has' if readiness.below_recommended == 1 else 'have'} fewer."
        )
    if 2 <= report.task_count < FEW_TASKS:
        steps.append(
            f"The intervals rest on {counted(report.task_count, 'task')}: with fewer than {FEW_TASKS} they are "
            "too narrow to carry over to other tasks. Add tasks."
        )
    elif report.task_count == 1:
        steps.append("One task says nothing about others, and gives no interval. Add tasks.")
    steps += _data(report)
    if report.verdict == "treatment" and readiness.ready and not quality.success_contradicts_acceptance:
        unproven = sum(not outlook.settled for outlook in readiness.outlook)
        steps.append(
            f"All gates hold with enough repeats: {report.treatment} can be promoted{_DOUBTS[unproven]}."
        )
    return steps


_DOUBTS = (
    "",
    ", though one of the three gates is not proven",
    ", though two of the three gates are not proven",
    ", though none of the three gates is proven",
)
"""By how many of the gates are not proven."""


def _repeats(report: Findings) -> list[str]:
    readiness = report.readiness
    if not readiness.lacking_count or report.verdict == "insufficient":
        return []
    missing = [f"{lack.missing} of task {lack.task_id} in {lack.arm}" for lack in readiness.lacking]
    listed = _listed(missing, readiness.lacking_count)
    return [
        f"Before promoting, run at least {readiness.min_repeats} repeats of every task in both arms; missing: {listed}."
    ]


def _settling(report: Findings) -> list[str]:
    if report.verdict == "insufficient":
        return []
    return [line for outlook in report.readiness.outlook if (line := _outlook_line(report, outlook))]


def _outlook_line(report: Findings, outlook: Outlook) -> str:
    gate = _GATE_WORDS[outlook.gate]
    if outlook.settled or outlook.minimum_detectable_effect is None:
        return ""
    if outlook.more_repeats:
        tasks = outlook.more_by_task
        if len(tasks) == 1:
            (task,) = tasks
            where = f"{counted(outlook.more_repeats, 'more repeat')} of task {task}"
        elif len(set(tasks.values())) == 1 and len(tasks) == report.task_count:
            each = next(iter(tasks.values()))
            where = f"{counted(each, 'more repeat')} of every task"
        else:
            spread = [
                f"{count} of {task}" for task, count in sorted(tasks.items(), key=lambda e: (-e[1], e[0]))
            ]
            where = f"{counted(outlook.more_repeats, 'more repeat')} ({_listed(spread, len(spread))})"
        return f"{where} would settle the {gate}, if the difference and the spread stay as they are."
    unit = METRIC_BY_NAME[GATE_METRICS[outlook.gate]].unit
    if report.deltas[outlook.delta].mean == 0.0:
        seen = "No difference on average"
    else:
        seen = "More repeats alone will not settle it"
    if outlook.minimum_detectable_effect == 0.0:
        return ""
    return f"{gate.capitalize()}: {_lower(seen)}; these pairs would show {_effect(outlook, unit)} or more."


def _effect(outlook: Outlook, unit: str) -> str:
    size = outlook.minimum_detectable_effect
    if outlook.gate == "success_rate" and size is not None:
        return f"{100 * size:.3g} percentage points"
    return shown(size, unit) if unit else f"{shown(size)} tokens"


def _spread(report: Findings) -> str:
    spread = report.readiness.spread
    parts = [
        f"{label} ±{percent(value)}"
        for label, value in (
            ("duration", spread["duration_seconds"]),
            ("tokens", spread["non_cache_tokens"]),
        )
        if value is not None
    ]
    if report.readiness.disagreement is not None:
        parts.append(f"repeats disagree in {percent(report.readiness.disagreement)} of the task-arm pairs")
    return ", ".join(parts)


def _data(report: Findings) -> list[str]:
    quality = report.data_quality
    steps = []
    if quality.invalid_lines:
        steps.append(f"Mend the {counted(quality.invalid_lines, 'line')} that could not be read.")
    failures = quality.infra_failures
    if any(failures.values()):
        each = ", ".join(f"{count} in {arm}" for arm, count in failures.items())
        steps.append(f"Run the infrastructure failures again: {each}.")
        low, high = min(failures.values()), max(failures.values())
        if high >= 3 and high >= 2 * low + 1 and len(failures) == 2:
            steps.append(
                "Check that they are the infrastructure's fault: one arm has far more of them than the other."
            )
    unpaired = {arm: count for arm, count in quality.unpaired_runs.items() if count}
    if unpaired and report.verdict != "insufficient":
        each = ", ".join(f"{count} in {arm}" for arm, count in unpaired.items())
        steps.append(f"Runs without a partner count in the summaries but not in the deltas: {each}.")
    nulls = {name: count for name, count in quality.null_values.items() if count and name in _EXPECTED}
    if nulls and not quality.null_as_zero:
        each = ", ".join(f"{name} {count}" for name, count in nulls.items())
        steps.append(f"Missing values were left out, not read as zero: {each}.")
    if quality.success_contradicts_acceptance:
        steps.append(
            f"In {counted(quality.success_contradicts_acceptance, 'run')} `success` does not agree with the "
            "acceptance exit code: check how the log was written."
        )
    return steps


_EXPECTED = frozenset(
    ("total_cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
)


def _listed(items: Sequence[str], count: int) -> str:
    named = ", ".join(items[:_NAMED_TASKS])
    return f"{named} and {count - _NAMED_TASKS:,} more" if count > _NAMED_TASKS else named


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
