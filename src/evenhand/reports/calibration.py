"""A calibration as a page: the conclusion, the mean four ways, the agreement, the confusion table."""

from evenhand.judging.calibration import Calibration
from evenhand.metrics.types import Interval
from evenhand.plots import IntervalRow
from evenhand.reports.components import (
    Cell,
    Column,
    Reason,
    Section,
    Table,
    Tone,
    VerdictBanner,
    interval_table,
    numbers,
)
from evenhand.reports.numbers import counted, method_name
from evenhand.reports.rendering import document

WORDS: dict[str, tuple[str, Tone]] = {
    "trusted": ("May be trusted for this task", "good"),
    "corrected_only": ("Use the corrected mean only", "warn"),
    "not_trusted": ("Not to be trusted for this task", "bad"),
    "too_few": ("Too few human labels", "warn"),
}
NAMES = {
    "judge_only": "judge only",
    "human_only": "humans only",
    "corrected": "corrected (PPI++)",
    "rogan_gladen": "corrected (Rogan–Gladen)",
}


def means_of(found: Calibration) -> list[tuple[str, Interval]]:
    """The mean, four ways, where there is one."""
    named = [(NAMES[name], getattr(found, name)) for name in NAMES]
    return [(name, interval) for name, interval in named if interval is not None]


def agreement_of(found: Calibration) -> list[tuple[str, Interval]]:
    """The measures of agreement, where they are defined."""
    named = [
        ("agreement", found.agreement),
        ("Cohen's κ", found.kappa),
        ("Krippendorff's α", found.alpha),
        ("sensitivity", found.sensitivity),
        ("specificity", found.specificity),
        ("bias (judge − human)", found.bias),
    ]
    return [(name, interval) for name, interval in named if interval is not None]


def calibration_page(found: Calibration, *, source: str) -> str:
    """The whole page."""
    name, tone = WORDS[found.trust]
    level = f"{found.confidence_level:.0%}"
    verdict = VerdictBanner(
        name=name,
        sentence=found.sentence,
        tone=tone,
        shown=found.trust != "too_few",
        reasons=[Reason("The correction holds if the labelled items were drawn at random.")],
    )
    sections = [
        Section("", [verdict]),
        Section("The mean, by source", [_table(means_of(found), "source", level)]),
        Section("Agreement on the labelled items", [_table(agreement_of(found), "measure", level)]),
    ]
    if found.labels:
        rows: list[list[Cell | str]] = [
            [name, *(_count(count, sum(row)) for count in row)]
            for name, row in zip(found.labels, found.confusion, strict=True)
        ]
        table = Table(["human \\ judge", *(Column(name, "number") for name in found.labels)], rows)
        sections.append(
            Section(
                "Confusion", [table], note="Labelled items: what people said against what the judge said."
            )
        )
    return document(
        f"Calibration of a judge: {source}",
        sections,
        crumb="calibration",
        facts=[
            counted(found.items, "item"),
            f"{found.labelled:,} with a human label",
            f"{found.no_judge_score:,} without a score of the judge",
        ],
    )


def _count(count: int, total: int) -> Cell:
    if not total:
        return Cell("no data", unknown=True)
    return Cell(f"{count:,}", f"{count / total:.0%}", shade=round(10 * count / total))


def _table(rows: list[tuple[str, Interval]], label: str, level: str) -> Table:
    return interval_table(
        [
            (
                IntervalRow(label=name, value=one.value, low=one.ci_lower, high=one.ci_upper),
                [f"{one.n:,}", method_name(one.method)],
            )
            for name, one in rows
        ],
        label=label,
        value=f"value, {level}",
        others=[*numbers("n"), "interval"],
    )
