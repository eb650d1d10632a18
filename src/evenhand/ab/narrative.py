"""The report in sentences: the verdict, why, and what to do next. Terminal, Markdown and page share them."""

from collections.abc import Sequence

from evenhand.ab.arms import METRIC_BY_NAME, METRICS
from evenhand.ab.decision import GATE_LABELS, GATE_METRICS, DecisionGate, GateName
from evenhand.ab.findings import Findings
from evenhand.ab.numbers import counted, p_text, percent, shown
from evenhand.ab.readiness import FEWEST_TASKS, Outlook

_NAMED_TASKS = 5
_GATE_WORDS: dict[GateName, str] = {
    "success_rate": "success gate",
    "duration": "runtime gate",
    "tokens": "token gate",
}


def verdict_line(report: Findings) -> str:
    """The decision, and what it lacks: proof, and repeats."""
    if report.verdict == "insufficient":
        return f"{report.decision}: {_missing(report)}"
    lacks = [words] if (words := lack_of_proof(report)) else []
    if not report.readiness.ready:
        lacks.append(f"not ready for promotion: fewer than {report.readiness.min_repeats} repeats")
    return f"{report.decision} ({'; '.join(lacks)})" if lacks else report.decision


def lack_of_proof(report: Findings) -> str:
    """Which gates of a preference are not proven; empty when all are, and where nothing is preferred."""
    unproven = _unproven(report)
    if report.verdict not in ("treatment", "control") or not unproven:
        return ""
    return "not proven" if len(unproven) == len(report.gates) else f"not proven: {', '.join(unproven)}"


def _unproven(report: Findings) -> list[str]:
    return [GATE_LABELS[gate.name] for gate in report.gates if not gate.proven]


def _missing(report: Findings) -> str:
    if not report.data_quality.records:
        return "there are no records"
    names = (report.treatment, report.control)
    empty = [summary.arm for summary in report.arm_summaries if not summary.runs and summary.arm in names]
    failed = [arm for arm in empty if report.data_quality.infra_failures.get(arm)]
    if failed:
        return f"every run of {' and '.join(failed)} was an infrastructure failure"
    if empty:
        known = sorted({*report.data_quality.other_arms, *(s.arm for s in report.arm_summaries if s.runs)})
        return f"no runs of {' and '.join(empty)}; the records have {', '.join(known) or 'no arms'}"
    one = report.treatment if report.treatment is not None else report.control
    return f"the records have one arm only, {one}"


def gate_figure(gate: DecisionGate, value: float | None) -> str:
    """A gate's figure as people read it."""
    if gate.name == "success_rate":
        return percent(value)
    return shown(value, METRIC_BY_NAME[GATE_METRICS[gate.name]].unit)


def reasons(report: Findings) -> list[str]:
    """Why: one line per gate, followed by what may explain a regression."""
    if report.verdict == "insufficient":
        return []
    lines: list[str] = []
    explained = False
    for gate in report.gates:
        proof = _proof(report, gate, explain=not explained)
        explained = explained or "p " in proof
        lines.append(_gate_line(gate) + proof)
        if gate.standing == "worse":
            moved = [one for one in report.diagnostics if one.gate == gate.name and (one.mean or one.median)]
            lines += [f"  {one.text}" for one in moved]
    if report.require_significance and report.verdict == "mixed" and all(g.holds for g in report.gates):
        lines.append("Every gate holds, but not every one is proven, and significance is required.")
    return lines


def _gate_line(gate: DecisionGate) -> str:
    label = GATE_LABELS[gate.name]
    if gate.standing == "unknown":
        return f"{label}: unknown, an arm has no value"
    figures = f"{gate_figure(gate, gate.treatment)} against {gate_figure(gate, gate.control)}"
    return f"{label}: {figures}, {gate.standing}"


def _proof(report: Findings, gate: DecisionGate, *, explain: bool) -> str:
    """Whether the difference that a gate shows is proven; nothing about one that shows none."""
    test = report.tests.get(METRIC_BY_NAME[GATE_METRICS[gate.name]].delta)
    if gate.standing in ("equal", "unknown"):
        return ""
    if test is None or test.p_holm is None:
        return " (not proven: no pairs to test)"
    p_value = f"p = {p_text(test.p_holm)}".replace("= <", "<")
    how = " by task, corrected for three gates after Holm" if explain else ""
    if test.proven and not gate.proven:
        return f" (not proven: the paired deltas point the other way, {p_value}{how})"
    return f" ({'proven' if gate.proven else 'not proven'}: {p_value}{how})"


def interval_notes(report: Findings) -> list[str]:
    """Why some deltas have no interval, one line per reason."""
    without: dict[tuple[str, str], list[str]] = {}
    shown_metrics = [metric for metric in METRICS if report.deltas[metric.delta].pairs]
    for metric in shown_metrics:
        found = report.intervals[metric.delta]
        for kind, reason in (("mean", found.mean_reason), ("median", found.median_reason)):
            if reason is not None:
                without.setdefault((kind, reason), []).append(metric.label)
    return [
        f"No interval for {f'any {kind}' if len(labels) == len(shown_metrics) else f'the {kind} of ' + ', '.join(labels)}: "
        f"{reason}."
        for (kind, reason), labels in without.items()
    ]


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
    if 2 <= report.task_count < FEWEST_TASKS:
        steps.append(
            f"With {counted(report.task_count, 'task')} no gate can be proven, however many repeats there are: "
            f"at least {FEWEST_TASKS} tasks are needed. Add tasks."
        )
    elif report.task_count == 1:
        steps.append("One task says nothing about others, and gives no interval. Add tasks.")
    steps += _data(report)
    if report.verdict == "treatment" and readiness.ready and not quality.success_contradicts_acceptance:
        steps.append(_promotion(report))
    return steps


def _promotion(report: Findings) -> str:
    unproven = _unproven(report)
    if not unproven:
        return f"All gates hold, each is proven, and there are enough repeats: {report.treatment} can be promoted."
    which = f"not proven: {', '.join(unproven)}" if len(unproven) < len(report.gates) else "none is proven"
    return f"All gates hold with enough repeats, but {which}. Promote {report.treatment} only if that is enough for you."


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
    if outlook.settled:
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
    if outlook.more_tasks:
        more = counted(outlook.more_tasks, "more task")
        return (
            f"About {more} like these would settle the {gate}, if the difference and the spread stay as they are; "
            "more repeats of the present ones would not."
        )
    if not outlook.minimum_detectable_effect:
        return ""
    unit = METRIC_BY_NAME[GATE_METRICS[outlook.gate]].unit
    if report.deltas[outlook.delta].mean == 0.0:
        seen = "no difference on average"
    else:
        seen = "the difference is too small for any number of tasks that could be run"
    return f"{gate.capitalize()}: {seen}; these tasks would show {_effect(outlook, unit)} or more."


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
