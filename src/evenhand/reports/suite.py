"""`report.html` of a suite: the verdict, then the grid, on one page."""

from evenhand.evaluation.suites.grid import Cell as GridCell
from evenhand.evaluation.suites.grid import Difference, Grid, Line
from evenhand.reports.components import Cell, Column, Reason, Section, Table, Tone, VerdictBanner
from evenhand.reports.numbers import counted, dollars_text, duration, number, signed
from evenhand.reports.rendering import document

TONES: dict[str, Tone] = {"GO": "good", "NO-GO": "bad", "PASS": "good", "BLOCK": "bad", "BREACH": "bad"}


def suite_page(found: Grid) -> str:
    """Verdict first, then the grid and the differences that the verdicts rest on."""
    sections = []
    if found.verdict is not None:
        reasons = [
            Reason(f"{line.variant}: {line.verdict}. {line.sentence}", TONES.get(line.verdict, "warn"))
            for line in found.lines
            if line.verdict is not None
        ]
        sections.append(
            Section(
                "",
                [
                    VerdictBanner(
                        name=found.verdict,
                        sentence=found.sentence,
                        tone=TONES.get(found.verdict, "warn"),
                        shown=found.verdict in TONES,
                        reasons=[*reasons, *(Reason(words, "warn") for words in found.notes)],
                    )
                ],
            )
        )
    sections.append(Section("Variants", [_grid(found)]))
    compared = [(line, one) for line in found.lines for one in line.differences]
    if compared:
        sections.append(
            Section(
                "Differences to the baseline",
                [
                    Table(
                        ["variant", "scorer", Column("difference", "number"), "verdict", "why"],
                        list(map(_difference, compared)),
                    )
                ],
                note="Intervals and verdicts hold for all variants and scorers at once",
            )
        )
    facts = [counted(len(found.lines), "variant"), counted(len(found.scorers), "scorer")]
    if found.baseline is not None:
        facts.append(f"baseline: {found.baseline}")
    if found.margin is not None:
        facts.append(f"tolerated drop {found.margin:g}")
    return document(f"Suite: {found.suite}", sections, crumb="suite", facts=facts)


def _grid(found: Grid) -> Table:
    columns = [Column("variant"), *(Column(name, "number") for name in found.scorers)]
    columns += [Column("cost", "number"), Column("latency", "number"), Column("verdict")]
    rows: list[list[Cell | str]] = [
        [
            line.variant,
            *(_cell(line.cells.get(name)) for name in found.scorers),
            _cost(line),
            _latency(line),
            _verdict(line),
        ]
        for line in found.lines
    ]
    return Table(columns, rows)


def _cell(cell: GridCell | None) -> Cell:
    if cell is None:
        return Cell("–", unknown=True)
    lost = cell.tally.unscored + cell.tally.failed
    below = f"{lost:,} missing" if lost else ""
    if cell.labels:
        return Cell(", ".join(f"{label} {count:,}" for label, count in cell.labels.items()), below=below)
    if cell.mean.value is None:
        return Cell("–", below=below, unknown=True)
    return Cell(number(cell.mean.value), _interval(cell.mean.ci_lower, cell.mean.ci_upper), below)


def _interval(lower: float | None, upper: float | None) -> str:
    return "" if lower is None or upper is None else f"[{number(lower)}, {number(upper)}]"


def _cost(line: Line) -> str:
    known = [one for one in (line.cost_usd, line.judge_cost_usd) if one is not None]
    return dollars_text(sum(known)) if known else "–"


def _latency(line: Line) -> str:
    return "–" if line.latency_seconds is None else duration(line.latency_seconds * 1000)


def _verdict(line: Line) -> Cell:
    if line.verdict is None:
        tests = f"{line.tests['passed']:,} of {line.samples:,} passed" if line.tests else ""
        return Cell("baseline" if line.is_baseline else tests)
    return Cell(line.verdict, tone=TONES.get(line.verdict, "warn"))


def _difference(given: tuple[Line, Difference]) -> list[Cell | str]:
    line, one = given
    shown: Cell = Cell("no data", unknown=True)
    if one.delta is not None:
        ends = (one.ci_lower, one.ci_upper)
        note = "" if None in ends else f"[{signed(one.ci_lower)}, {signed(one.ci_upper)}]"
        shown = Cell(signed(one.delta), note)
    return [
        line.variant,
        one.scorer,
        shown,
        Cell(one.verdict, tone=TONES.get(one.verdict, "warn")),
        one.sentence,
    ]
