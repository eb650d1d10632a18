"""The A/B report in a terminal: the verdict first, then why, then what to do next, then the tables."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from evenhand.ab.decision import Preference
from evenhand.ab.markdown import data_lines
from evenhand.ab.narrative import interval_notes, next_steps, reasons, verdict_line
from evenhand.ab.numbers import counted
from evenhand.ab.report import AbReport
from evenhand.ab.tables import TextTable, delta_table, summary_table
from evenhand.cli.output import console, table
from evenhand.core.terminal import printable

_STYLES: dict[Preference, str] = {
    "treatment": "bold green",
    "control": "bold red",
    "mixed": "bold yellow",
    "insufficient": "bold yellow",
}


def print_report(report: AbReport, written: Sequence[Path]) -> None:
    """Print the report and where its files are."""
    out = console()
    settled = report.readiness.ready and all(gate.proven for gate in report.gates)
    style = _STYLES[report.verdict] if settled else "bold yellow"
    out.print(Text(f"Decision: {printable(verdict_line(report))}", style=style))
    _lines(out, "Why", reasons(report))
    _lines(out, "What to do next", next_steps(report))
    if report.verdict != "insufficient":
        _table(out, "", summary_table(report))
        title = f"Paired deltas, treatment − control ({counted(report.paired_runs, 'pair')})"
        for part in fitted(delta_table(report), out.width):
            _table(out, title, part)
            title = ""
        _lines(out, "Without an interval", interval_notes(report))
    _lines(out, "Data", data_lines(report))
    out.print()
    if not written:
        out.print(Text("Nothing written: no run has an arm of that name.", style="dim"))
    else:
        out.print(Text("Written: " + ", ".join(printable(str(path)) for path in written), style="dim"))


def fitted(content: TextTable, width: int) -> list[TextTable]:
    """The table of deltas; means and medians apart where the terminal is too narrow for both."""
    widths = [max(map(len, cells)) for cells in zip(content.columns, *content.rows, strict=True)]
    if sum(widths) + 2 * len(widths) <= width:
        return [content]
    return [
        TextTable(
            tuple(content.columns[place] for place in places),
            [tuple(row[place] for place in places) for row in content.rows],
        )
        for places in ((0, 1, 2, 5, 6), (0, 3, 4))
    ]


def _lines(out: Console, heading: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    out.print()
    out.print(Text(heading, style="bold"))
    for line in lines:
        depth = 4 if line.startswith("  ") else 2
        text = Text(printable(line.strip()))
        # Long sentences fold under their own start on a terminal; in a file a line stays one line.
        for folded in text.wrap(out, max(out.width - depth, 20)):
            folded.pad_left(depth)
            out.print(folded)


def _table(out: Console, title: str, content: TextTable) -> None:
    out.print()
    if title:
        out.print(Text(title, style="bold"))
    out.print(table("", [printable(name) for name in content.columns], content.rows))
