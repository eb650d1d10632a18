"""What `evenhand score` prints."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from evenhand.cli.output import interval_text, table
from evenhand.core.terminal import preview
from evenhand.scoring.definition import Scorer
from evenhand.scoring.summary import ScorerSummary, Summary

MAX_CATEGORIES = 50
"""How many categories the text table shows."""


def as_json(label: str, scorer: Scorer, summary: ScorerSummary) -> dict[str, Any]:
    """One scorer's part of the JSON report."""
    return {
        "scorer": label,
        **scorer.identity,
        **_numbers(summary.all),
        "categories": {name: _numbers(part) for name, part in sorted(summary.categories.items())},
    }


def _numbers(summary: Summary) -> dict[str, Any]:
    interval = summary.mean.interval()
    tally = summary.tally
    return {
        "n": tally.total,
        "scored": tally.scored,
        "unscored": tally.unscored,
        "failed": tally.failed,
        "mean": summary.mean.value,
        "ci_lower": interval.ci_lower if interval else None,
        "ci_upper": interval.ci_upper if interval else None,
        "confidence_level": interval.confidence_level if interval else None,
        "method": interval.method if interval else None,
        "labels": dict(summary.labels.most_common()),
        "unscored_reasons": dict(summary.reasons.most_common()),
        "errors": dict(summary.errors.most_common()),
    }


def print_report(console: Console, summaries: Mapping[str, ScorerSummary]) -> None:
    """The tables."""
    columns = ["scorer", "n", "scored", "unscored", "failed", "mean [95 % interval]", "method"]
    rows = [[label, *_cells(summary.all)] for label, summary in summaries.items()]
    console.print(table("", columns, rows))
    for label, summary in summaries.items():
        _print_categories(console, label, summary)
    if any(summary.all.reasons or summary.all.errors for summary in summaries.values()):
        console.print()
    for label, summary in summaries.items():
        _print_absences(console, label, summary.all)


def _cells(summary: Summary) -> list[str]:
    tally = summary.tally
    counts = [f"{number:,}" for number in (tally.total, tally.scored, tally.unscored, tally.failed)]
    interval = summary.mean.interval()
    if interval is not None:
        return [*counts, interval_text(interval), interval.method]
    if summary.labels:
        shown = ", ".join(f"{label} {count:,}" for label, count in summary.labels.most_common(5))
        return [*counts, shown, "labels"]
    mean = summary.mean.value
    return [*counts, "no score" if mean is None else f"{mean:.4f} [no spread to estimate from]", ""]


def _print_categories(console: Console, label: str, summary: ScorerSummary) -> None:
    if not summary.categories:
        return
    names = sorted(summary.categories)
    rows = [[name, *_cells(summary.categories[name])] for name in names[:MAX_CATEGORIES]]
    console.print()
    columns = ["category", "n", "scored", "unscored", "failed", "mean [95 % interval]", "method"]
    console.print(table(f"{label}, by category", columns, rows))
    if len(names) > MAX_CATEGORIES:
        console.print(f"and {len(names) - MAX_CATEGORIES:,} more categories; --format json has all")


def _print_absences(console: Console, label: str, summary: Summary) -> None:
    for kind, counts in (("unscored", summary.reasons), ("failed", summary.errors)):
        if counts:
            shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(5))
            console.print(f"{label}: {kind}: {shown}", markup=False)
    if summary.first_failure:
        line, failure = summary.first_failure
        console.print(f"{label}: first failure on line {line}: {preview(failure.message, 300)}", markup=False)
