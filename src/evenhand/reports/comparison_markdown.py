"""Comparisons and gates as Markdown, for pull requests and step summaries."""

from collections.abc import Iterable, Sequence

from evenhand.compare.comparison import Comparison
from evenhand.compare.coverage import share_text
from evenhand.compare.gate import GateReport, MetricCheck
from evenhand.compare.many import ManyRuns
from evenhand.compare.words import method_words
from evenhand.core.terminal import preview
from evenhand.metrics.types import Interval

MARKS = {"PASS": "✅", "GO": "✅", "BLOCK": "❌", "BREACH": "❌", "NO-GO": "❌"}


def cell(text: object) -> str:
    """Text from outside, on one line and without Markdown or HTML of its own."""
    line = preview(str(text), 120)
    for character in "\\`*_[]<>|#":
        line = line.replace(character, "\\" + character)
    return line


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows])


def number(value: float | None) -> str:
    """Four decimals, or a dash for what is not there."""
    return "–" if value is None else f"{value:.4f}"


def interval(found: Interval | None, *, sign: bool = False) -> str:
    """An estimate with its interval."""
    if found is None:
        return "–"
    pattern = "{:+.4f} [{:+.4f}, {:+.4f}]" if sign else "{:.4f} [{:.4f}, {:.4f}]"
    return pattern.format(found.value, found.ci_lower, found.ci_upper)


def comparison_markdown(found: Comparison, *, flips: int = 20) -> str:
    """The comparison: verdict, why, numbers, categories, flips, coverage."""
    verdict = found.verdict
    parts = [
        f"## {MARKS.get(verdict.name, '⚠️')} {verdict.name}: {cell(found.benchmark)}",
        *(f"Treatment: {cell(change)}" for change in found.treatment),
        verdict.sentence,
        "\n".join(f"- {cell(reason)}" for reason in verdict.reasons),
        f"**Next:** {verdict.next_step}",
        table(
            ["", "base", "candidate"],
            [
                ["run", found.base.name, found.candidate.name],
                [
                    f"mean over {found.base.covered}",
                    interval(found.base.mean),
                    interval(found.candidate.mean),
                ],
                [
                    "mean of all samples, worst to best case",
                    *(f"{s.lowest_mean:.4f} to {s.highest_mean:.4f}" for s in (found.base, found.candidate)),
                ],
                [
                    "scored / unscored / failed",
                    *(
                        f"{s.tally.scored} / {s.tally.unscored} / {s.tally.failed}"
                        for s in (found.base, found.candidate)
                    ),
                ],
            ],
        ),
        facts(found),
        *_categories(found),
        *_flips(found, flips),
        *_missing(found, flips),
    ]
    if found.caveats:
        parts += ["### Caveats", "\n".join(f"- {cell(words)}" for words in found.caveats)]
    return "\n\n".join(parts) + "\n"


def _categories(found: Comparison) -> list[str]:
    if not found.categories:
        return []
    rows = [
        [
            one.category,
            one.problems,
            number(one.base_mean),
            number(one.candidate_mean),
            interval(one.delta, sign=True),
            f"{one.p_adjusted:.3g}",
        ]
        for one in found.categories
    ]
    columns = ["category", "problems", "base", "candidate", "delta", "p (Holm)"]
    return ["### Categories", table(columns, rows)]


def _flips(found: Comparison, most: int) -> list[str]:
    if not found.flips:
        return []
    rows = [
        [f"{one.problem_idx}, {one.of_repeat}" if one.of_repeat else one.problem_idx, number(one.base),
         number(one.candidate), one.expected, one.base_response, one.candidate_response]
        for one in found.flips[:most]
    ]  # fmt: skip
    columns = ["problem", "base", "candidate", "expected", "base's answer", "candidate's answer"]
    return [f"### Flipped problems ({len(rows)} of {len(found.flips)})", table(columns, rows)]


def _missing(found: Comparison, most: int) -> list[str]:
    missing = found.coverage.missing
    if not missing:
        return []
    rows = [[one.problem_idx, one.repeat, one.base, one.candidate] for one in missing[:most]]
    title = f"### Not compared ({len(rows)} of {len(missing)})"
    return [title, table(["problem", "repeat", "base", "candidate"], rows)]


def facts(found: Comparison) -> str:
    """The counts, the test and what could be seen, in a sentence each."""
    return (
        f"{found.problems:,} problems, {found.pairs:,} pairs: {found.improved} improved, {found.regressed} regressed, "
        f"{found.unchanged} unchanged. Test: {method_words(found.test.method)}, two-sided p = {found.test.p_value:.3g}, one-sided p of a drop {found.p_drop:.3g}. Effect size (Cohen's d, the delta over the standard deviation of the differences): "
        f"{interval(found.effect_size)}. Minimum detectable effect at 80 % power: {number(found.minimum_detectable_effect)}."
    )


def gate_markdown(report: GateReport) -> str:
    """The gate: verdict, then every metric."""
    rows = [
        [
            gate.benchmark,
            gate.metric,
            gate.tier,
            f"{MARKS.get(gate.status, '⚠️')} {gate.status}",
            number(gate.base),
            number(gate.candidate),
            damage(gate),
            number(gate.limit),
            "; ".join(gate.reasons),
        ]
        for gate in report.gates
    ]
    parts = [
        f"## {MARKS.get(report.verdict, '⚠️')} {report.verdict}",
        report.sentence,
        table(["benchmark", "metric", "tier", "status", "base", "candidate", "damage", "limit", "why"], rows),
    ]
    if report.notes:
        parts.append("\n".join(f"- {cell(note)}" for note in report.notes))
    return "\n\n".join(parts) + "\n"


def damage(gate: MetricCheck) -> str:
    """The damage with its one-sided bounds."""
    if gate.damage is None:
        return "–"
    if gate.damage_lower is None or gate.damage_upper is None:
        return f"{gate.damage:+.4f}"
    return f"{gate.damage:+.4f} [{gate.damage_lower:+.4f}, {gate.damage_upper:+.4f}]"


def many_markdown(found: ManyRuns) -> str:
    """The table of several runs and their pairwise tests."""
    runs = [
        [
            one.name,
            interval(one.mean),
            f"{one.lowest_mean:.4f} to {one.highest_mean:.4f}",
            share_text(one.share),
            f"{one.tally.scored} / {one.tally.unscored} / {one.tally.failed}",
            one.letters,
        ]
        for one in found.runs
    ]
    pairs = [
        [one.first, one.second, interval(one.delta, sign=True), f"{one.p_adjusted:.3g}"]
        for one in found.pairs
    ]
    return (
        "\n\n".join(
            [
                f"## {cell(found.benchmark)}: {len(found.runs)} runs on {found.problems:,} shared problems",
                table(
                    ["run", "mean", "worst to best case", "coverage", "scored / unscored / failed", "group"],
                    runs,
                ),
                "Runs that share a letter cannot be told apart.",
                table(["first", "second", "second − first", "p (Holm)"], pairs),
            ]
        )
        + "\n"
    )
