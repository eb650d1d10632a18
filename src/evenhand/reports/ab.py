"""analysis.html: an A/B report with pictures, in one file."""

from evenhand.ab.arms import METRICS, Metric
from evenhand.ab.decision import Preference
from evenhand.ab.findings import Findings
from evenhand.ab.markdown import data_lines, method_text
from evenhand.ab.narrative import interval_notes, next_steps, reasons, verdict_line
from evenhand.ab.numbers import p_text, shown, signed
from evenhand.ab.significance import ALPHA
from evenhand.ab.tables import TextTable, gate_table, summary_table
from evenhand.metrics.types import Interval
from evenhand.plots import IntervalRow, Point, Series, histogram, interval_picture, interval_scale, scatter
from evenhand.plots.intervals import Tone as PlotTone
from evenhand.reports.components import (
    Cell,
    Column,
    Details,
    Figure,
    Paragraph,
    Part,
    Reason,
    Section,
    Table,
    Tone,
    VerdictBanner,
    interval_table,
    numbers,
    shaded,
)
from evenhand.reports.numbers import counted
from evenhand.reports.rendering import document

_TASK_DOTS = 20
_TONES: dict[Preference, Tone] = {
    "treatment": "good",
    "control": "bad",
    "mixed": "warn",
    "insufficient": "warn",
}


def ab_page(report: Findings) -> str:
    """The whole page: the decision, the gates, the deltas, the tasks."""
    return document(
        ab_title(report),
        ab_sections(report),
        crumb="A/B analysis",
        facts=ab_facts(report),
        footer=f"Made by Evenhand at {report.generated_at_utc}",
    )


def ab_title(report: Findings) -> str:
    """Which arms are compared."""
    return f"{report.treatment or '(no arm)'} against {report.control or '(no arm)'}"


def ab_facts(report: Findings) -> list[str]:
    """How much there is of it."""
    return [
        counted(report.run_count, "run"),
        counted(report.task_count, "task"),
        counted(report.paired_runs, "pair"),
    ]


def ab_sections(report: Findings) -> list[Section]:
    """The report in its order. A report read from `analysis.json` has no profile, and no pictures of tasks and runs."""
    settled = report.readiness.ready and all(gate.proven for gate in report.gates)
    verdict = VerdictBanner(
        name=report.decision,
        sentence=_sentence(report),
        tone=_TONES[report.verdict] if settled else "warn",
        shown=settled and report.verdict in ("treatment", "control"),
        reasons=[Reason(line.strip()) for line in reasons(report)],
        next_steps=next_steps(report),
    )
    drawn = report.profile.task_count > 0
    arms = Section("Arms", [_table(summary_table(report))], half=drawn)
    return [
        Section("", [verdict]),
        Section("Gates", [_gates(report)]),
        Section(
            "Paired deltas",
            _deltas(report),
            note="Line: 95 % interval, each row on its own scale against zero. Filled dot: shown; hollow: not shown.",
        ),
        arms,
        *(_of_tasks_and_runs(report) if drawn else []),
        Section("Data", [Paragraph(line) for line in data_lines(report)], half=True),
        Section("How it was computed", [Paragraph(method_text(report))], half=True),
    ]


def _of_tasks_and_runs(report: Findings) -> list[Section]:
    return [
        Section("Cost and success", _cost(report), half=True),
        Section("Success per task", _success(report), note=_success_note(report)),
        Section("Duration and tokens per run", _spreads(report)),
    ]


def _sentence(report: Findings) -> str:
    """What the verdict line says beyond the decision itself."""
    rest = verdict_line(report).removeprefix(report.decision).strip(" :()")
    if rest:
        return f"{rest[:1].upper()}{rest[1:]}."
    if report.verdict == "mixed":
        return "Neither arm is at least as good on every gate."
    return "Every gate is proven, with enough repeats."


def _gates(report: Findings) -> Table:
    table = gate_table(report)
    rows: list[list[Cell | str]] = []
    for row, gate in zip(table.rows, report.gates, strict=True):
        mark = {True: "✓ yes", False: "✕ no", None: "unknown"}[gate.holds]
        tone: Tone | None = {True: "good", False: "bad", None: None}[gate.holds]
        *figures, _, proven = row
        rows.append([*figures, Cell(mark, tone=tone, unknown=gate.holds is None), proven])
    return Table([table.columns[0], *numbers(*table.columns[1:])], rows)


def _table(table: TextTable) -> Table:
    return Table([table.columns[0], *numbers(*table.columns[1:])], table.rows)


def _deltas(report: Findings) -> list[Part]:
    """Every metric on its own scale, and below each the tasks that it comes from."""
    metrics = [metric for metric in METRICS if report.deltas[metric.delta].pairs]
    if not metrics:
        return [Paragraph("No pairs.")]
    columns: list[Column | str] = [
        "treatment minus control",
        Column("mean, 95 %", "number"),
        Column("mean as a plot", "plot"),
        *numbers("median, 95 %", "p by task", "pairs"),
        "better is",
    ]
    table = Table(columns, [_delta_row(report, metric) for metric in metrics])
    notes = [Paragraph(note) for note in interval_notes(report)]
    by_task = [_by_task(report, metric) for metric in metrics] if report.profile.task_count else []
    return [table, *notes, *by_task]


def _delta_row(report: Findings, metric: Metric) -> list[Cell | str]:
    found, delta = report.intervals[metric.delta], report.deltas[metric.delta]
    test = report.tests.get(metric.delta)
    row = IntervalRow(
        label=f"Paired delta of {metric.label}",
        value=delta.mean,
        low=found.mean.ci_lower if found.mean else None,
        high=found.mean.ci_upper if found.mean else None,
        tone=_tone(delta.mean, metric),
        shown=test is not None and test.by_task_p_value <= ALPHA,
    )
    picture = interval_picture(row, interval_scale([row], [0.0]), reference=0.0, ticks=False)
    return [
        Cell(metric.label, below=metric.unit),
        Cell(signed(delta.mean), _ends(found.mean)),
        Cell(svg=picture),
        Cell(signed(delta.median), _ends(found.median)),
        p_text(test.by_task_p_value if test else None),
        f"{delta.pairs:,}",
        "higher" if metric.higher_is_better else "lower",
    ]


def _ends(found: Interval | None) -> str:
    return "" if found is None else f"[{shown(found.ci_lower)}, {shown(found.ci_upper)}]"


def _by_task(report: Findings, metric: Metric) -> Details:
    tasks = [task for task in report.profile.tasks if task.deltas[metric.delta] is not None][:_TASK_DOTS]
    rows: list[tuple[IntervalRow, list[Cell | str]]] = [
        (IntervalRow(label=task.task_id, value=task.deltas[metric.delta], tone="plain"), [])
        for task in sorted(tasks, key=lambda task: task.task_id)
    ]
    unit = f", {metric.unit}" if metric.unit else ""
    table = interval_table(rows, label="task", value=f"delta{unit}", reference=0.0, write=signed)
    return Details(f"{metric.label}, by task ({len(rows)})", [table])


def _tone(value: float | None, metric: Metric) -> PlotTone:
    if not value:
        return "plain"
    return "good" if (value > 0) is metric.higher_is_better else "bad"


def _success(report: Findings) -> list[Part]:
    tasks = sorted(report.profile.tasks, key=lambda task: task.task_id)
    if not tasks:
        return [Paragraph("No runs.")]
    columns: list[Column | str] = [
        "task",
        *numbers(report.treatment or "(no arm)", report.control or "(no arm)"),
    ]
    rows: list[list[Cell | str]] = [
        [task.task_id, shaded(task.treatment_rate), shaded(task.control_rate)] for task in tasks
    ]
    return [Table(columns, rows)]


def _success_note(report: Findings) -> str:
    shown = len(report.profile.tasks)
    left_out = report.profile.task_count - shown
    words = "Share of runs that solved the task."
    if left_out:
        words += f" The {shown} tasks on which the arms differ most; {left_out:,} more are not shown."
    return words


def _cost(report: Findings) -> list[Part]:
    series = [
        Series(
            getattr(report, side) or "(no arm)",
            [
                Point(cost, rate, task.task_id)
                for task in report.profile.tasks
                if (cost := getattr(task, f"{side}_cost")) is not None
                and (rate := getattr(task, f"{side}_rate")) is not None
            ],
        )
        for side in ("treatment", "control")
    ]
    if not any(one.points for one in series):
        return [Paragraph("No costs are known.")]
    picture = scatter(
        series, title="Cost and success per task", x_label="mean cost of a run, USD", y_label="success rate"
    )
    return [Figure(picture, "", "One mark per task and arm; cheaper is further left, better is higher.")]


def _spreads(report: Findings) -> list[Part]:
    parts: list[Part] = []
    for groups, title, label in (
        (report.profile.durations, "Duration of runs", "seconds"),
        (report.profile.tokens, "Non-cache tokens of runs", "tokens"),
    ):
        named = {f"{side}: {getattr(report, side) or '(no arm)'}": values for side, values in groups.items()}
        if any(named.values()):
            parts.append(Figure(histogram(named, title=title, x_label=label), title))
    return parts or [Paragraph("No runs.")]
