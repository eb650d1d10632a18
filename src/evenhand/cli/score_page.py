"""`evenhand score --report`: the scores of a file on one page that needs nothing else to be opened."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.terminal import preview
from evenhand.plots import (
    Columns,
    Details,
    Figure,
    IntervalRow,
    Paragraph,
    Preformatted,
    Section,
    Table,
    document,
    forest,
)
from evenhand.plots.document import Part
from evenhand.scoring.normal import text_of
from evenhand.scoring.summary import ScorerSummary, Summary
from evenhand.scoring.types import ScorerInput

MOST_EXAMPLES = 10
"""How many samples of each kind the page shows."""
MOST_TEXT = 4_000
"""How many characters of a response it shows."""
MOST_CATEGORIES = 60
"""How many categories the picture shows; the table has all."""
NUMBERS = ("mean", "lower", "upper", "scored", "unscored", "failed")


class Example(Struct, frozen=True, kw_only=True):
    """A sample and what became of it, cut to what a page can show."""

    line: int
    category: str | None
    outcome: str
    """In words."""
    response: str
    target: str
    extracted: str | None


class Examples:
    """The samples of one scorer that are worth a look: the lowest scores, and the first without one."""

    def __init__(self) -> None:
        self._lowest: list[tuple[float, int, Example]] = []
        self._highest = float("-inf")
        self.unscored: list[Example] = []
        self.failed: list[Example] = []

    def add(self, outcome: Outcome, sample: ScorerInput, *, category: str | None, line: int) -> None:
        """One more; the text is only looked at when it is kept."""
        match outcome:
            case Scored(value=value):
                if isinstance(value, str):
                    return
                self._highest = max(self._highest, value)
                # The heap's first is the highest score kept, and among equals the last line.
                place = (-value, -line)
                if len(self._lowest) < MOST_EXAMPLES:
                    example = _example(f"score {value:.4g}", outcome.extracted, sample, category, line)
                    heapq.heappush(self._lowest, (*place, example))
                elif place > self._lowest[0][:2]:
                    example = _example(f"score {value:.4g}", outcome.extracted, sample, category, line)
                    heapq.heapreplace(self._lowest, (*place, example))
            case Unscored(reason=reason, message=message):
                if len(self.unscored) < MOST_EXAMPLES:
                    self.unscored.append(_example(_because(reason, message), None, sample, category, line))
            case Failed(error=error, message=message):
                if len(self.failed) < MOST_EXAMPLES:
                    self.failed.append(_example(_because(error, message), None, sample, category, line))

    @property
    def lowest(self) -> list[Example]:
        """The lowest scores, worst first, without those that no other is above; the first when all are alike."""
        kept = sorted(self._lowest, reverse=True)
        below = [example for value, _, example in kept if -value < self._highest]
        return below or [example for *_, example in kept]

    @property
    def alike(self) -> bool:
        """Whether every score is the same."""
        return bool(self._lowest) and -max(self._lowest)[0] == self._highest


def _because(kind: str, message: str) -> str:
    return f"{kind}: {message}" if message else kind


def _example(outcome: str, extracted: Any, sample: ScorerInput, category: str | None, line: int) -> Example:
    return Example(
        line=line,
        category=category,
        outcome=outcome,
        response=_shown(sample.response),
        target=_shown(sample.target),
        extracted=None if extracted is None else preview(_shown(extracted), 200),
    )


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    try:
        text = value if isinstance(value, str) else text_of(value)
    except (ValueError, TypeError):  # Parquet holds more types than JSON
        text = str(value)
    if len(text) > MOST_TEXT:
        return f"{text[:MOST_TEXT]}\n… ({len(text):,} characters in all)"
    return text or "(empty)"


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
    """The whole page."""
    sections = [Section("", _headline(given))]
    for label, summary in given.summaries.items():
        sections.append(Section(label, _scorer(label, given.scorers[label], summary, given.examples[label])))
    if given.skipped:
        shown = Preformatted("\n".join(given.first_skips))
        sections.append(Section(f"Lines that could not be read: {given.skipped:,}", [shown]))
    return document(f"Scores of {given.name}", sections)


def _headline(given: ScoredFile) -> list[Part]:
    rows = [[label, *_cells(summary.all)] for label, summary in given.summaries.items()]
    found: list[Part] = [
        Paragraph(
            f"{given.rows:,} samples. Means and their 95 % intervals rest on the scored ones only: "
            "what is unscored or failed is no zero."
        ),
        _table("scorer", rows),
    ]
    if given.repeats_alone:
        found.append(
            Paragraph(
                "The rows are repeats of problems: --group-field gives intervals that respect it; these are too narrow."
            )
        )
    means = [_interval_row(label, summary.all) for label, summary in given.summaries.items()]
    if len(means) > 1 and any(row.value is not None for row in means):
        found.append(Figure(forest(means, title="Mean by scorer", x_label="mean", reference=None)))
    return found


def _table(first: str, rows: Sequence[Sequence[str]]) -> Table:
    return Table([first, *NUMBERS, "interval"], rows, numeric=NUMBERS)


def _cells(summary: Summary) -> list[str]:
    tally, interval, mean = summary.tally, summary.mean.interval(), summary.mean.value
    counts = [f"{number:,}" for number in (tally.scored, tally.unscored, tally.failed)]
    if interval is not None:
        ends = (interval.value, interval.ci_lower, interval.ci_upper)
        return [*(f"{value:.4f}" for value in ends), *counts, interval.method]
    if mean is not None:
        return [f"{mean:.4f}", "–", "–", *counts, "no spread to estimate from"]
    return ["–", "–", "–", *counts, "labels, see below" if summary.labels else "no score"]


def _interval_row(label: str, summary: Summary) -> IntervalRow:
    interval, note = summary.mean.interval(), f"{summary.tally.scored:,} scored"
    if interval is None:
        return IntervalRow(label, summary.mean.value, None, None, note)
    return IntervalRow(label, interval.value, interval.ci_lower, interval.ci_upper, note)


def _scorer(label: str, identity: dict[str, Any], summary: ScorerSummary, examples: Examples) -> list[Part]:
    options = ", ".join(f"{name} = {_shown(value)}" for name, value in identity["options"].items())
    found: list[Part] = [
        Paragraph(f"{identity['name']}, version {identity['version']}{f': {options}' if options else ''}")
    ]
    whole = summary.all
    if whole.labels:
        counted = [[name, f"{count:,}"] for name, count in whole.labels.most_common()]
        found.append(Table(["label", "samples"], counted, numeric=["samples"]))
    found += _categories(label, summary.categories)
    found += _absences(whole)
    lowest = examples.lowest
    if lowest:
        found.append(
            Paragraph("All scores are alike; the first:" if examples.alike else "The lowest scores:")
        )
        found += [_details(example) for example in lowest]
    for kind, kept, count in (
        ("unscored", examples.unscored, whole.tally.unscored),
        ("failed", examples.failed, whole.tally.failed),
    ):
        if kept:
            found.append(Paragraph(f"The first {len(kept):,} of {count:,} {kind}:"))
            found += [_details(example) for example in kept]
    return found


def _categories(label: str, categories: Mapping[str, Summary]) -> list[Part]:
    if not categories:
        return []
    names = sorted(categories)
    rows = [_interval_row(name, categories[name]) for name in names[:MOST_CATEGORIES]]
    table = _table("category", [[name, *_cells(categories[name])] for name in names])
    found: list[Part] = []
    if any(row.value is not None for row in rows):
        title = f"{label} by category"
        if len(names) > MOST_CATEGORIES:
            title += f" (the first {MOST_CATEGORIES} of {len(names):,})"
        found.append(Figure(forest(rows, title=title, x_label="mean", reference=None)))
    return [
        *found,
        Details(f"The same as a table ({len(names):,} categories)" if found else "Categories", [table]),
    ]


def _absences(summary: Summary) -> list[Part]:
    rows = [
        [kind, name, f"{count:,}"]
        for kind, counts in (("unscored", summary.reasons), ("failed", summary.errors))
        for name, count in counts.most_common()
    ]
    if not rows:
        return []
    return [Table(["without a score", "reason", "samples"], rows, numeric=["samples"])]


def _details(example: Example) -> Details:
    category = f", {example.category}" if example.category is not None else ""
    parts: list[Part] = [
        Columns([Preformatted(example.response, "Response"), Preformatted(example.target, "Target")])
    ]
    if example.extracted is not None:
        parts.append(Paragraph(f"Found in the response: {example.extracted}"))
    return Details(f"Line {example.line:,}{category}: {preview(example.outcome, 300)}", parts)
