"""A calibration as a page: the conclusion, the mean four ways, the agreement, the confusion table."""

from evenhand.metrics.types import Interval
from evenhand.plots import (
    Badge,
    Figure,
    IntervalRow,
    Paragraph,
    Section,
    Table,
    document,
    forest,
    heat_map,
)
from evenhand.scoring.judging.calibration import Calibration

WORDS = {
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
    badge, tone = WORDS[found.trust]
    level = f"{found.confidence_level:.0%}"
    means = means_of(found)
    mean_rows = [
        IntervalRow(name, interval.value, interval.ci_lower, interval.ci_upper, f"n = {interval.n}")
        for name, interval in means
    ]
    sections = [
        Section(
            "Conclusion",
            [
                Badge(badge, tone),  # type: ignore[arg-type]  # the tones above are the known ones
                Paragraph(found.sentence),
                Paragraph(
                    f"{found.items} items, {found.labelled} of them with a human label, {found.no_judge_score} "
                    "without a score of the judge. The correction holds if the labelled items were drawn at random."
                ),
            ],
        ),
        Section(
            "The mean, by source",
            [
                Figure(
                    forest(mean_rows, title=f"Mean with {level} interval", x_label="mean", reference=None)
                ),
                _table(means, level),
            ],
        ),
        Section(
            "Agreement on the labelled items",
            [_table(agreement_of(found), level)],
        ),
    ]
    if found.labels:
        cells: list[list[float | None]] = [
            [count / sum(row) if sum(row) else None for count in row] for row in found.confusion
        ]
        picture = heat_map(
            [f"human: {name}" for name in found.labels],
            [f"judge: {name}" for name in found.labels],
            cells,
            title="Share of each human label that the judge gives each label",
        )
        counts = [[name, *map(str, row)] for name, row in zip(found.labels, found.confusion, strict=True)]
        sections.append(
            Section(
                "Confusion",
                [
                    Figure(picture),
                    Table(
                        ["human \\ judge", *found.labels],
                        counts,
                        numeric=found.labels,
                        caption="Counts of labelled items",
                    ),
                ],
            )
        )
    return document(f"Calibration of a judge: {source}", sections)


def _table(rows: list[tuple[str, Interval]], level: str) -> Table:
    return Table(
        ["measure", "value", f"{level} interval", "n", "method"],
        [
            [name, f"{i.value:.4f}", f"[{i.ci_lower:.4f}, {i.ci_upper:.4f}]", str(i.n), i.method]
            for name, i in rows
        ],
        numeric=["value", f"{level} interval", "n"],
    )
