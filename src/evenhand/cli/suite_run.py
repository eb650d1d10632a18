"""`evenhand eval run evenhand.yaml`: the variants one after the other, then the grid."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from evenhand.cli.formats import print_json, save_text
from evenhand.cli.output import console, table
from evenhand.core.jsontext import encode_text
from evenhand.core.terminal import printable
from evenhand.evaluation.config import PlannedRun
from evenhand.evaluation.runner import Resume
from evenhand.evaluation.suites.grid import Cell, Grid, Line, make_grid
from evenhand.evaluation.suites.variants import VariantSuite

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"GO": "bold green", "NO-GO": "bold red", "INCONCLUSIVE": "bold yellow"}
GRID = "grid.json"
REPORT = "report.html"


class _Failed(Struct, frozen=True):
    variant: str
    status: int


def run_suite(
    suite: VariantSuite,
    folder: Path,
    run: Callable[[PlannedRun, Path, Resume, str], int],
    *,
    resume: Resume,
    interrupted: Collection[int],
    as_json: bool,
) -> int:
    """Run every variant that is not done, then say what it comes to; the exit status is that of `gate`.

    `run` makes one run of a name and gives its exit status; one of `interrupted` ends the suite.
    """
    if isinstance(suite.baseline, Path):
        from evenhand.evaluation.result import baseline_run

        baseline_run(suite.baseline)  # a mistake in it is found before the first call
    stopped: list[_Failed] = []
    for one in suite.variants:
        path = folder / one.folder
        fresh = not (path / ".run" / "plan.json").exists()
        allowed = Resume(allowed=resume.allowed and not fresh, allow_drift=resume.allow_drift)
        status = run(one.planned, path, allowed, one.name)
        if status not in (0, 1):
            stopped.append(_Failed(one.name, status))
            if status in interrupted:
                break
    if stopped:
        names = ", ".join(one.variant for one in stopped)
        click.echo(f"No grid: {printable(names)} could not be finished.", err=True)
        return stopped[-1].status
    found = make_grid(suite, folder)
    save_text(folder / GRID, encode_text(found) + "\n")
    from evenhand.reports.suite import suite_page

    save_text(folder / REPORT, suite_page(found))
    if as_json:
        print_json(found)
    else:
        print_grid(console(), found, folder)
    return found.exit_status


def print_grid(out: "Console", found: Grid, folder: Path) -> None:
    """The grid, the verdicts, and where everything is."""
    columns = ["variant", *found.scorers, "cost", "latency"]
    tests = any(line.tests for line in found.lines)
    columns += ["tests"] if tests else []
    columns += ["verdict"] if found.baseline is not None else []
    rows = []
    for line in found.lines:
        cells = [_cell(line.cells.get(name)) for name in found.scorers]
        row = [line.variant, *cells, _cost(line), _seconds(line.latency_seconds)]
        if tests:
            row.append(f"{line.tests['passed']:,}/{line.samples:,}")
        if found.baseline is not None:
            row.append("baseline" if line.is_baseline else line.verdict or "")
        rows.append(row)
    out.print(table(found.suite, columns, rows))
    out.print()
    for line in found.lines:
        for one in line.differences:
            shown = "" if one.delta is None else f" {one.delta:+.4f} {_interval(one.ci_lower, one.ci_upper)}"
            words = f"{line.variant}, {one.scorer}:{shown} {one.sentence}"
            out.print(printable(words), markup=False)
    if any(line.differences for line in found.lines):
        out.print()
    if found.verdict is not None:
        out.print(f"[{STYLES[found.verdict]}]{found.verdict}[/]", end=" ")
    out.print(printable(found.sentence), markup=False)
    for note in found.notes:
        out.print(f"Note: {printable(note)}", markup=False)
    out.print(f"results in {printable(str(folder))}: one folder per variant, {GRID}, {REPORT}", markup=False)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    if cell.labels:
        return ", ".join(f"{label} {count:,}" for label, count in cell.labels.items())
    lost = cell.tally.unscored + cell.tally.failed
    missing = f" ({lost:,} missing)" if lost else ""
    if cell.mean.value is None:
        return f"–{missing}"
    return f"{cell.mean.value:.3f} {_interval(cell.mean.ci_lower, cell.mean.ci_upper, 3)}".strip() + missing


def _interval(lower: float | None, upper: float | None, digits: int = 4) -> str:
    return "" if lower is None or upper is None else f"[{lower:.{digits}f}, {upper:.{digits}f}]"


def _cost(line: Line) -> str:
    known = [one for one in (line.cost_usd, line.judge_cost_usd) if one is not None]
    return f"${sum(known):.4f}" if known else "–"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.1f} ms"
