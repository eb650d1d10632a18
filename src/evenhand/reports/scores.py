"""`evenhand score --report`: the scores of a file on one page that needs nothing else to be opened."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from evenhand.core.terminal import preview
from evenhand.evaluation.examples import Example, Examples, text_to_show
from evenhand.plots import IntervalRow
from evenhand.reports.components import (
    Cell,
    Columns,
    Details,
    Fold,
    Folds,
    Ledger,
    Paragraph,
    Part,
    Preformatted,
    Section,
    Table,
    interval_table,
    numbers,
)
from evenhand.reports.numbers import method_name
from evenhand.reports.rendering import document
from evenhand.scoring.summary import ScorerSummary, Summary

MOST_CATEGORIES = 60
"""How many categories are open; the rest fold."""


class ScoredFile(Struct, frozen=True, kw_only=True):
    """Everything that the page shows."""

    name: str
    """The file that was scored."""
    rows: int
    """How many of its rows."""
    skipped: int
    """How many of its lines could not be read."""
    first_skips: Sequence[str]
    """The first of them, with their reasons."""
    repeats_alone: bool
    """Whether rows that are repeats of problems were taken for independent ones."""
    scorers: Mapping[str, dict[str, Any]]
    """Label → name, version and options."""
    summaries: Mapping[str, ScorerSummary]
    """Label → what came of it."""
    examples: Mapping[str, Examples]
    """Label → samples to look at."""


def score_page(given: ScoredFile) -> str:
    """The whole page: every scorer's mean, then one card per scorer."""
    sections = [Section("Scores", _headline(given), note="Means and their 95 % intervals")]
    for label, summary in given.summaries.items():
        identity = given.scorers[label]
        sections.append(Section(label, _scorer(summary, given.examples[label]), note=_identity(identity)))
    if given.skipped:
        shown = Preformatted("\n".join(given.first_skips))
        sections.append(Section(f"Lines that could not be read: {given.skipped:,}", [shown]))
    return document(f"Scores of {given.name}", sections, crumb="scores", facts=[f"{given.rows:,} samples"])


def _headline(given: ScoredFile) -> list[Part]:
    parts: list[Part] = [
        _table("scorer", [(label, summary.all) for label, summary in given.summaries.items()]),
        Paragraph("Means rest on the scored samples only: what is unscored or failed is no zero."),
    ]
    if given.repeats_alone:
        words = "The rows are repeats of problems: --group-field gives intervals that respect it; these are too narrow."
        parts.append(Paragraph(words))
    return parts


def _table(label: str, rows: Sequence[tuple[str, Summary]]) -> Table:
    return interval_table(
        [(_row(name, summary), _cells(summary)) for name, summary in rows],
        label=label,
        value="mean",
        others=[*numbers("scored", "unscored", "failed"), "interval"],
    )


def _row(label: str, summary: Summary) -> IntervalRow:
    interval = summary.mean.interval()
    if interval is None:
        return IntervalRow(label=label, value=summary.mean.value)
    return IntervalRow(label=label, value=interval.value, low=interval.ci_lower, high=interval.ci_upper)


def _cells(summary: Summary) -> list[Cell | str]:
    tally, interval = summary.tally, summary.mean.interval()
    counts: list[Cell | str] = [f"{number:,}" for number in (tally.scored, tally.unscored, tally.failed)]
    if interval is not None:
        return [*counts, method_name(interval.method)]
    if summary.mean.value is not None:
        return [*counts, "no spread to estimate from"]
    return [*counts, "labels, see below" if summary.labels else "no score"]


def _identity(identity: dict[str, Any]) -> str:
    options = ", ".join(f"{name} = {text_to_show(value)}" for name, value in identity["options"].items())
    return f"{identity['name']}, version {identity['version']}{f': {options}' if options else ''}"


def _scorer(summary: ScorerSummary, examples: Examples) -> list[Part]:
    whole = summary.all
    parts: list[Part] = [
        Ledger(scored=whole.tally.scored, unscored=dict(whole.reasons), failed=dict(whole.errors))
    ]
    if whole.labels:
        counted = [[name, f"{count:,}"] for name, count in whole.labels.most_common()]
        parts.append(Table(["label", *numbers("samples")], counted))
    parts += _categories(summary.categories)
    lowest = "All scores are alike; the first" if examples.alike else "The lowest scores"
    for kept, words in (
        (examples.lowest, lowest),
        (examples.unscored, f"The first {len(examples.unscored):,} of {whole.tally.unscored:,} unscored"),
        (examples.failed, f"The first {len(examples.failed):,} of {whole.tally.failed:,} failed"),
    ):
        if kept:
            parts.append(Folds(rows=[_fold(example) for example in kept], label="line", text=words))
    return parts


def _categories(categories: Mapping[str, Summary]) -> list[Part]:
    names = sorted(categories)
    if not names:
        return []
    parts: list[Part] = [_table("category", [(name, categories[name]) for name in names[:MOST_CATEGORIES]])]
    if rest := names[MOST_CATEGORIES:]:
        table = _table("category", [(name, categories[name]) for name in rest])
        parts.append(Details(f"{len(rest):,} more categories", [table]))
    return parts


def _fold(example: Example) -> Fold:
    parts: list[Part] = [
        Columns([Preformatted(example.response, "Response"), Preformatted(example.target, "Target")])
    ]
    if example.extracted is not None:
        parts.append(Paragraph(f"Found in the response: {example.extracted}"))
    if example.file:
        parts.append(Paragraph(f"Line {example.line:,} of {example.file}"))
    return Fold(
        label=f"{example.line:,}",
        text=preview(example.response, 200),
        badge=example.category or "",
        value=preview(example.outcome, 120),
        parts=parts,
    )
