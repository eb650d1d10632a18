"""analysis.html: the report with pictures, in one file."""

from evenhand.ab.arms import METRICS, Metric
from evenhand.ab.decision import Verdict
from evenhand.ab.findings import Findings
from evenhand.ab.markdown import data_lines, method_text
from evenhand.ab.narrative import next_steps, reasons, verdict_line
from evenhand.ab.numbers import p_text
from evenhand.ab.tables import TextTable, delta_table, gate_table, summary_table
from evenhand.plots import (
    Badge,
    Figure,
    IntervalRow,
    Paragraph,
    Point,
    Section,
    Series,
    Table,
    document,
    forest,
    heat_map,
    histogram,
    scatter,
)
from evenhand.plots.document import Part, Tone

_TASK_DOTS = 20
_TONES: dict[Verdict, Tone] = {
    "treatment": "good",
    "control": "bad",
    "mixed": "warn",
    "insufficient": "warn",
}


def page(report: Findings) -> str:
    """The whole page."""
    title = f"A/B analysis: {report.treatment or '(no arm)'} against {report.control or '(no arm)'}"
    tone = _TONES[report.verdict] if report.readiness.ready else "warn"
    verdict: list[Part] = [Badge(verdict_line(report), tone)]
    verdict += [Paragraph(line.strip()) for line in reasons(report)]
    sections = [Section("", verdict)]
    if steps := next_steps(report):
        sections.append(Section("What to do next", [Paragraph(step) for step in steps]))
    sections += [
        Section("Gates", [_table(gate_table(report))]),
        Section("Arms", [_table(summary_table(report))]),
        Section("Paired deltas, treatment − control", [_table(delta_table(report)), *_dots(report)]),
        Section("Success per task", _success(report)),
        Section("Cost and success", _cost(report)),
        Section("Duration and tokens per run", _spreads(report)),
        Section("Data", [Paragraph(line) for line in data_lines(report)]),
        Section("How it was computed", [Paragraph(method_text(report))]),
    ]
    return document(title, sections, footer=f"Made by Evenhand at {report.generated_at_utc}")


def _table(table: TextTable) -> Table:
    columns = _distinct(table.columns)
    return Table(columns, table.rows, numeric=columns[1:])


def _distinct(columns: tuple[str, ...]) -> tuple[str, ...]:
    # Two arms may be called like a column; the table marks numeric columns by name.
    out: list[str] = []
    for column in columns:
        out.append(column if column not in out else f"{column} ")
    return tuple(out)


def _dots(report: Findings) -> list[Part]:
    return [Figure(_forest(report, metric)) for metric in METRICS if report.deltas[metric.delta].pairs]


def _forest(report: Findings, metric: Metric) -> str:
    found = report.intervals[metric.delta]
    delta = report.deltas[metric.delta]
    test = report.tests.get(metric.delta)
    rows = [
        IntervalRow(
            "mean of all pairs",
            delta.mean,
            found.mean.ci_lower if found.mean else None,
            found.mean.ci_upper if found.mean else None,
            f"p = {p_text(test.p_value)}".replace("= <", "<") if test else "",
        ),
        IntervalRow(
            "median of all pairs",
            delta.median,
            found.median.ci_lower if found.median else None,
            found.median.ci_upper if found.median else None,
        ),
    ]
    tasks = [task for task in report.profile.tasks if task.deltas[metric.delta] is not None]
    rows += [
        IntervalRow(f"task {task.task_id}", task.deltas[metric.delta])
        for task in sorted(tasks[:_TASK_DOTS], key=lambda task: task.task_id)
    ]
    better = "higher" if metric.higher_is_better else "lower"
    unit = f", {metric.unit}" if metric.unit else ""
    return forest(
        rows,
        title=f"Paired delta of {metric.label}",
        x_label=f"treatment − control{unit} ({better} is better for the treatment)",
    )


def _success(report: Findings) -> list[Part]:
    tasks = sorted(report.profile.tasks, key=lambda task: task.task_id)
    if not tasks:
        return [Paragraph("No runs.")]
    left_out = report.profile.task_count - len(tasks)
    picture = heat_map(
        [task.task_id for task in tasks],
        [report.treatment or "(no arm)", report.control or "(no arm)"],
        [[_rounded(task.treatment_rate), _rounded(task.control_rate)] for task in tasks],
        title="Success rate per task and arm",
    )
    caption = "Share of runs that solved the task."
    if left_out:
        caption += f" The {len(tasks)} tasks on which the arms differ most; {left_out:,} more are not shown."
    return [Figure(picture, caption)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


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
    return [Figure(picture, "One mark per task and arm; cheaper is further left, better is higher.")]


def _spreads(report: Findings) -> list[Part]:
    parts: list[Part] = []
    for groups, title, label in (
        (report.profile.durations, "Duration of runs", "seconds"),
        (report.profile.tokens, "Non-cache tokens of runs", "tokens"),
    ):
        named = {f"{side}: {getattr(report, side) or '(no arm)'}": values for side, values in groups.items()}
        if any(named.values()):
            parts.append(Figure(histogram(named, title=title, x_label=label)))
    return parts or [Paragraph("No runs.")]
