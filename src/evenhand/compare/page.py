"""A comparison as a self-contained HTML page."""

from evenhand.compare.comparison import Comparison, Flip
from evenhand.compare.markdown import facts, interval, number
from evenhand.plots import (
    Badge,
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
from evenhand.plots.document import Part, Tone

TONES: dict[str, Tone] = {"PASS": "good", "BLOCK": "bad", "WARN": "warn", "INCONCLUSIVE": "warn"}
SHOWN_FLIPS = 200
SHOWN_MISSING = 200
SHOWN_ITEMS = 2_000


def comparison_page(found: Comparison) -> str:
    """Verdict first, then why, then the pictures, then the answers side by side."""
    verdict = found.verdict
    sections = [
        Section(
            "",
            [
                Badge(f"{verdict.name}", TONES[verdict.name]),
                Paragraph(verdict.sentence),
                *(Paragraph(f"• {reason}") for reason in verdict.reasons),
                Paragraph(f"Next: {verdict.next_step}"),
                *(Paragraph(f"Caveat: {words}") for words in found.caveats),
            ],
        ),
        _numbers(found),
    ]
    if found.categories:
        sections.append(_categories(found))
    sections += [_flips(found), _items(found)]
    if found.coverage.missing:
        sections.append(_missing(found))
    return document(f"{found.benchmark}: candidate against base", sections)


def _numbers(found: Comparison) -> Section:
    tallies = [
        f"{side.tally.scored} / {side.tally.unscored} / {side.tally.failed}"
        for side in (found.base, found.candidate)
    ]
    rows = [
        ["run", found.base.name, found.candidate.name],
        ["mean over compared problems", interval(found.base.mean), interval(found.candidate.mean)],
        ["scored / unscored / failed", *tallies],
    ]
    picture = forest(
        [
            IntervalRow(
                "paired",
                found.delta.value,
                found.delta.ci_lower,
                found.delta.ci_upper,
                f"p = {found.test.p_value:.3g}",
            ),
            IntervalRow(
                "pairing ignored",
                found.unpaired_delta.value,
                found.unpaired_delta.ci_lower,
                found.unpaired_delta.ci_upper,
            ),
        ],
        title="Candidate minus base",
        x_label="difference of means",
    )
    return Section(
        "Numbers", [Table(["", "base", "candidate"], rows), Figure(picture), Paragraph(facts(found))]
    )


def _categories(found: Comparison) -> Section:
    rows = [
        IntervalRow(
            one.category,
            one.delta.value if one.delta else one.candidate_mean - one.base_mean,
            one.delta.ci_lower if one.delta else None,
            one.delta.ci_upper if one.delta else None,
            f"n = {one.problems}, p = {one.p_adjusted:.3g}",
        )
        for one in found.categories
    ]
    return Section(
        "Categories",
        [
            Figure(forest(rows, title="Candidate minus base, per category", x_label="difference of means")),
            Paragraph("The p-values are corrected over the categories (Holm)."),
        ],
    )


def _flips(found: Comparison) -> Section:
    if not found.flips:
        return Section("Flipped problems", [Paragraph("No problem changed its score.")])
    shown: list[Part] = [_flip(flip) for flip in found.flips[:SHOWN_FLIPS]]
    words = f"{found.regressed} regressed and {found.improved} improved; the worst first."
    if len(found.flips) > SHOWN_FLIPS:
        words += f" The first {SHOWN_FLIPS} of {len(found.flips)} are shown."
    return Section("Flipped problems", [Paragraph(words), *shown])


def _flip(flip: Flip) -> Part:
    kind = "regressed" if flip.candidate < flip.base else "improved"
    category = f", {flip.category}" if flip.category else ""
    return Details(
        f"Problem {flip.problem_idx}{category}: {kind}, {number(flip.base)} to {number(flip.candidate)}",
        [
            Preformatted("" if flip.expected is None else str(flip.expected), "Expected"),
            Columns(
                [
                    Preformatted(flip.base_response, "Base"),
                    Preformatted(flip.candidate_response, "Candidate"),
                ]
            ),
        ],
    )


def _items(found: Comparison) -> Section:
    columns = ["problem", "category", "repeats", "base", "candidate", "delta"]
    rows = [
        [
            str(one.problem_idx),
            one.category or "–",
            str(one.repeats),
            number(one.base),
            number(one.candidate),
            f"{one.delta:+.4f}",
        ]
        for one in found.items[:SHOWN_ITEMS]
    ]
    words = f"{len(found.items):,} problems"
    if len(found.items) > SHOWN_ITEMS:
        words = f"The first {SHOWN_ITEMS:,} of {words}; --format json has them all"
    table = Table(columns, rows, numeric=[name for name in columns if name != "category"])
    return Section("Every problem", [Details(words, [table])])


def _missing(found: Comparison) -> Section:
    coverage = found.coverage
    rows = [
        [str(one.problem_idx), str(one.repeat), one.base, one.candidate]
        for one in coverage.missing[:SHOWN_MISSING]
    ]
    words = (
        f"{coverage.pairs:,} of {coverage.possible:,} possible pairs are compared. If every missing score went one way, "
        f"the delta would be {coverage.worst_delta:+.4f} or {coverage.best_delta:+.4f}."
    )
    return Section(
        "Not compared", [Paragraph(words), Table(["problem", "repeat", "base", "candidate"], rows)]
    )
