"""A report that holds every component, for the tests of this folder."""

from evenhand import plots
from evenhand.reports.components import (
    Cell,
    Column,
    Columns,
    Details,
    Figure,
    Fold,
    Folds,
    Ledger,
    Paragraph,
    Preformatted,
    Reason,
    Section,
    Table,
    Tile,
    Tiles,
    VerdictBanner,
    bar_table,
    interval_table,
    numbers,
    shaded,
)


def sections(text: str) -> list[Section]:
    """Every component, with `text` wherever text goes."""
    row = plots.IntervalRow(label=text, value=0.1, low=-0.2, high=0.4, tone="good", shown=False)
    missing = plots.IntervalRow(label=text, value=None)
    series = [
        plots.Series(text, [plots.Point(n, n % 3, text) for n in range(5)]),
        plots.Series(f"{text} 2", [plots.Point(n, n % 2, text) for n in range(5)]),
    ]
    line = plots.lines(
        series, title=text, x_label=text, y_label=text, bands=[plots.Band([(0, 0, 1), (4, 1, 2)])]
    )
    return [
        Section(
            "",
            [
                VerdictBanner(
                    name=text,
                    sentence=text,
                    tone="good",
                    reasons=[Reason(text), Reason(text, "good"), Reason(text, "bad"), Reason(text, "warn")],
                    next_steps=[text],
                )
            ],
        ),
        Section(
            "", [VerdictBanner(name=text, sentence=text, tone="warn", shown=False, next_steps=[text] * 3)]
        ),
        Section("", [Tiles([Tile(text, text, text), Tile(text, "1")])]),
        Section(
            text,
            [
                Ledger(scored=3, unscored={text: 1}, failed={text: 2}, note=text),
                interval_table(
                    [(row, [text]), (missing, [""])],
                    label=text,
                    value=text,
                    others=numbers(text),
                    reference=0.0,
                    limit=-0.1,
                ),
                bar_table([(text, 3.0, [text]), (text, None, [""])], label=text, value=text, others=[text]),
                Table(
                    [text, Column(text, "number")],
                    [
                        [text, Cell(text, text, text, "bad")],
                        [text, shaded(0.5)],
                        [text, shaded(None)],
                        [text, Cell("1", "100%", shade=10)],
                    ],
                    text,
                ),
            ],
            note=text,
        ),
        Section(
            text,
            [
                Figure(line, text, text),
                Figure(plots.scatter(series, title=text, x_label=text, y_label=text)),
                Figure(plots.histogram({text: [1.0, 2.0, 5.0]}, title=text, x_label=text), text),
            ],
            half=True,
        ),
        Section(
            text,
            [
                Paragraph(text),
                Preformatted(text, text),
                Columns([Preformatted(text), Paragraph(text)]),
                Details(text, [Paragraph(text)]),
                Folds(
                    rows=[
                        Fold(
                            label=text,
                            text=text,
                            badge=text,
                            value=text,
                            change="▼ −0.33",
                            tone="bad",
                            parts=[Paragraph(text)],
                        )
                    ],
                    text=text,
                ),
            ],
            half=True,
        ),
    ]
