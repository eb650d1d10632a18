"""A comparison as a page: the verdict, the evidence, the items."""

from evenhand.compare.comparison import CategoryComparison, Comparison, Flip, Side
from evenhand.core.terminal import preview
from evenhand.plots import IntervalRow
from evenhand.plots.intervals import Tone as PlotTone
from evenhand.reports.comparison_markdown import facts
from evenhand.reports.components import (
    Column,
    Columns,
    Details,
    Fold,
    Folds,
    Ledger,
    Paragraph,
    Part,
    Preformatted,
    Reason,
    Section,
    Table,
    Tone,
    VerdictBanner,
    interval_table,
    numbers,
)
from evenhand.reports.numbers import counted, interval, number, p_text, signed
from evenhand.reports.rendering import document

TONES: dict[str, Tone] = {"PASS": "good", "BLOCK": "bad", "WARN": "warn"}
SHOWN_FLIPS = 200
SHOWN_MISSING = 200
SHOWN_ITEMS = 2_000


def comparison_page(found: Comparison) -> str:
    """Verdict first, then why, then the evidence, then the answers side by side."""
    sections = [Section("", [_verdict(found)]), _evidence(found)]
    if found.categories:
        sections.append(_categories(found))
    sections += [_flips(found), _items(found)]
    if found.coverage.missing:
        sections.append(_missing(found))
    return document(
        f"{found.benchmark}: candidate against base",
        sections,
        crumb="comparison",
        facts=[
            f"base {found.base.name}",
            f"candidate {found.candidate.name}",
            *(f"treatment: {change}" for change in found.treatment),
            f"{counted(found.problems, 'problem')}, {counted(found.pairs, 'pair')}",
        ],
    )


def _verdict(found: Comparison) -> VerdictBanner:
    verdict = found.verdict
    return VerdictBanner(
        name=verdict.name,
        sentence=verdict.sentence,
        tone=TONES.get(verdict.name, "warn"),
        shown=verdict.name in TONES,
        reasons=[
            *(Reason(words) for words in verdict.reasons),
            *(Reason(words, "warn") for words in found.caveats),
        ],
        next_steps=[verdict.next_step],
    )


def _evidence(found: Comparison) -> Section:
    tone, shown = _direction(found)
    rows = [
        (
            IntervalRow(
                label="each problem against itself",
                value=found.delta.value,
                low=found.delta.ci_lower,
                high=found.delta.ci_upper,
                tone=tone,
                shown=shown,
            ),
            [number(found.base.mean.value), number(found.candidate.mean.value), p_text(found.test.p_value)],
        ),
        (
            IntervalRow(
                label="pairing ignored",
                value=found.unpaired_delta.value,
                low=found.unpaired_delta.ci_lower,
                high=found.unpaired_delta.ci_upper,
                tone="plain",
                shown=shown,
            ),
            ["", "", ""],
        ),
    ]
    level = f"{found.delta.confidence_level:.0%}"
    table = interval_table(
        rows,
        label="candidate minus base",
        value=f"difference, {level}",
        others=numbers("base", "candidate", "p"),
        reference=0.0,
        limit=-found.max_drop,
        write=signed,
    )
    means = Table(
        ["side", *numbers("mean", "all samples, worst to best case", "scored", "unscored", "failed")],
        [_side_row("base", found.base), _side_row("candidate", found.candidate)],
    )
    coverage = found.coverage
    missing = (
        {} if coverage.pairs == coverage.possible else {"not compared": coverage.possible - coverage.pairs}
    )
    note = (
        f"→ {signed(found.delta.value)}, between {signed(coverage.worst_delta)} and {signed(coverage.best_delta)} "
        "whatever those were"
        if missing
        else f"all {counted(coverage.possible, 'sample')} scored on both sides"
    )
    return Section(
        "Evidence",
        [
            table,
            means,
            Ledger(scored=coverage.pairs, unscored=missing, note=note),
            Details("How this was calculated", [Paragraph(facts(found))]),
        ],
        note=f"Line: {level} interval. Filled dot: shown; hollow: not shown. Dashed: the tolerated drop, {signed(-found.max_drop, 2)}.",
    )


def _direction(found: Comparison) -> tuple[PlotTone, bool]:
    shown = found.test.p_value < 1 - found.delta.confidence_level
    if found.delta.value == 0:
        return "plain", shown
    return ("good" if found.delta.value > 0 else "bad"), shown


def _side_row(name: str, side: Side) -> list[str]:
    return [
        name,
        interval(side.mean),
        f"{number(side.lowest_mean)} to {number(side.highest_mean)}",
        *(f"{count:,}" for count in (side.tally.scored, side.tally.unscored, side.tally.failed)),
    ]


def _categories(found: Comparison) -> Section:
    rows = [
        (
            _category_row(one, found.delta.confidence_level),
            [
                number(one.base_mean),
                number(one.candidate_mean),
                f"{one.problems:,}",
                p_text(one.p_adjusted),
            ],
        )
        for one in found.categories
    ]
    table = interval_table(
        rows,
        label="category",
        value="difference",
        others=numbers("base", "candidate", "problems", "p"),
        reference=0.0,
        limit=-found.max_drop,
        write=signed,
    )
    return Section("Categories", [table], note="p-values are corrected over the categories (Holm).")


def _category_row(one: CategoryComparison, level: float) -> IntervalRow:
    value = one.delta.value if one.delta else one.candidate_mean - one.base_mean
    return IntervalRow(
        label=one.category,
        value=value,
        low=one.delta.ci_lower if one.delta else None,
        high=one.delta.ci_upper if one.delta else None,
        tone="plain" if value == 0 else "good" if value > 0 else "bad",
        shown=one.p_adjusted < 1 - level,
    )


def _flips(found: Comparison) -> Section:
    counts = (
        f"{found.regressed:,} fell, {found.improved:,} rose, {found.unchanged:,} the same; the worst first."
    )
    if not found.flips:
        return Section("Changed problems", [Paragraph("No problem changed its score.")])
    if len(found.flips) > SHOWN_FLIPS:
        counts += f" The first {SHOWN_FLIPS} of {len(found.flips):,} are shown."
    rows = [_flip(flip) for flip in found.flips[:SHOWN_FLIPS]]
    return Section(
        "Changed problems",
        [Folds(rows=rows, label="problem", text="expected", value="base → candidate", change="change")],
        note=counts,
    )


def _flip(flip: Flip) -> Fold:
    which = f", {flip.of_repeat}" if flip.of_repeat else ""
    fell = flip.candidate < flip.base
    expected = "" if flip.expected is None else str(flip.expected)
    return Fold(
        label=str(flip.problem_idx),
        text=preview(expected, 120) or "(no target)",
        badge=flip.category or "",
        value=f"{number(flip.base, 2)} → {number(flip.candidate, 2)}",
        change=f"{'▼' if fell else '▲'} {signed(flip.candidate - flip.base, 2)}",
        tone="bad" if fell else "good",
        parts=[
            Preformatted(expected, f"Expected{which}"),
            Columns(
                [
                    Preformatted(flip.base_response, "Base"),
                    Preformatted(flip.candidate_response, "Candidate"),
                ]
            ),
        ],
    )


def _items(found: Comparison) -> Section:
    columns: list[Column | str] = [
        "problem",
        "category",
        *numbers("repeats", "base", "candidate", "difference"),
    ]
    rows = [
        [
            str(one.problem_idx),
            one.category or "–",
            str(one.repeats),
            number(one.base),
            number(one.candidate),
            signed(one.delta),
        ]
        for one in found.items[:SHOWN_ITEMS]
    ]
    words = counted(len(found.items), "problem")
    if len(found.items) > SHOWN_ITEMS:
        words = f"The first {SHOWN_ITEMS:,} of {words}; --format json has them all"
    return Section("Every problem", [Details(words, [Table(columns, rows)])])


def _missing(found: Comparison) -> Section:
    coverage = found.coverage
    rows = [
        [str(one.problem_idx), str(one.repeat), one.base, one.candidate]
        for one in coverage.missing[:SHOWN_MISSING]
    ]
    parts: list[Part] = [Table(["problem", *numbers("repeat"), "base", "candidate"], rows)]
    if len(coverage.missing) > SHOWN_MISSING:
        parts.append(Paragraph(f"The first {SHOWN_MISSING} of {len(coverage.missing):,}."))
    return Section(
        "Not compared",
        parts,
        note=f"{coverage.pairs:,} of {coverage.possible:,} possible pairs are compared.",
    )
