"""`report.html`: one page that needs nothing else to be opened."""

from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.core import jsontext
from evenhand.core.outcome import Tally
from evenhand.core.terminal import preview
from evenhand.evaluation.causes import Cause
from evenhand.evaluation.failures import ADVICE, FailureAnalysis
from evenhand.evaluation.report import RunReport
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.evaluation.summary import stopping_lines
from evenhand.plots import IntervalRow, histogram
from evenhand.reports.components import (
    Cell,
    Details,
    Figure,
    Fold,
    Folds,
    Ledger,
    Paragraph,
    Part,
    Preformatted,
    Samples,
    Section,
    Table,
    Tile,
    Tiles,
    bar_table,
    interval_table,
    numbers,
)
from evenhand.reports.numbers import method_name, number
from evenhand.reports.rendering import document_parts
from evenhand.reports.samples import samples_part
from evenhand.results.bundle import Bundle, CategorySummary, MetricValue

MOST_CATEGORIES = 60
"""How many categories are open; the rest fold."""
MOST_POINTS = 20_000
EXPLAINED = {
    "timeout": "the endpoint did not answer in time",
    "rate_limit": "the endpoint asked for fewer requests",
    "refusal": "the model declined to answer",
    "empty": "the answer has no text",
    "format_error": "there is an answer, but the scorer found none in it",
    "truncated": ADVICE["truncated"],
    "wrong_answer": "the answer is wrong",
    "judge_error": "the judge gave no usable verdict",
    "sandbox_error": "the sandbox could not run the program",
    "scorer_error": "the scorer failed",
    "server_error": "the endpoint failed",
    "context_length": "the question is longer than the model takes",
    "content_filter": "the endpoint filtered the question or the answer",
}


def run_page(given: RunReport) -> Iterator[str]:
    """The whole page, part after part: the figures that matter, scores, categories, failures, time and tokens, configuration."""
    bundle = given.bundle
    configured = bundle.config.get("model")
    model = configured.get("id", "") if isinstance(configured, dict) else ""
    sections = [
        Section("", [Tiles(_tiles(given))]),
        Section("Scores", [*_ledger(given), _scores(bundle)], note="95 % intervals"),
    ]
    if len(bundle.benchmark.scorers) > 1:
        sections.append(
            Section("Scorers", [_scorers(bundle)], note="mean of what each has scored, 95 % intervals")
        )
    if stopped := stopping_lines(bundle):
        sections.append(Section("Stopped when it was decided", [Paragraph(line.strip()) for line in stopped]))
    categories = bundle.benchmark.categories
    if isinstance(categories, list) and categories:
        sections.append(Section("Categories", _categories(categories), note="mean reward, 95 % intervals"))
    if given.failures is not None and given.failures.causes:
        sections.append(Section("Why samples have no score", [_causes(given.failures.causes)]))
    samples = samples_part(given.samples, scorer=_scorer(bundle), total=bundle.benchmark.samples)
    if given.failures is not None:
        parts = _failures(given.failures, exemplars=not samples.held)
        sections.append(Section("Failures", parts, note=_failure_note(given.failures)))
    if samples.held:
        sections.append(Section("Samples", [samples], note=_samples_note(samples)))
    if given.runtime is not None:
        sections.append(Section("Time and tokens", [_runtime(given.runtime)], half=True))
        if pictures := _spreads(given):
            sections.append(Section("Spread", pictures, half=True))
    sections.append(Section("How it was run", _config(bundle)))
    return document_parts(
        f"{bundle.benchmark.name}: {model}" if model else bundle.benchmark.name,
        sections,
        crumb="run",
        facts=[f"{_problems(bundle):,} problems × {bundle.benchmark.repeats}"],
        footer=f"Evenhand run {bundle.run_id}, finished {bundle.created_at}",
        data=samples.chunks,
        script="samples.js" if samples.held else "",
    )


def _scorer(bundle: Bundle) -> str:
    identity = bundle.config.get("scorer")
    name = identity.get("name") if isinstance(identity, dict) else None
    return str(name or "reward")


def _samples_note(samples: Samples) -> str:
    if samples.held == samples.total:
        return ""
    return f"the first {samples.held:,} of {samples.total:,}; all are in results.jsonl"


def _problems(bundle: Bundle) -> int:
    return bundle.benchmark.samples // max(bundle.benchmark.repeats, 1)


def _tiles(given: RunReport) -> list[Tile]:
    summary, runtime = given.bundle.benchmark, given.runtime
    tiles: list[Tile] = []
    name = "pass@1" if "pass@1" in summary.scores else "mean_reward"
    metric = summary.scores.get(name)
    if metric is not None:
        tiles.append(Tile(name.replace("_", " "), number(metric.value), _metric_note(metric)))
    if summary.tally is not None:
        tally = summary.tally
        lost = f"{tally.unscored:,} unscored, {tally.failed:,} failed"
        tiles.append(Tile("scored samples", f"{tally.scored:,}", f"of {summary.samples:,}; {lost}"))
    if runtime is not None:
        rate = _amount(runtime.samples_per_second)
        tiles.append(Tile("time", f"{runtime.elapsed_seconds:,.1f} s", f"{rate} samples per second"))
        cost = "unknown" if runtime.cost_usd is None else f"${runtime.cost_usd:,.4f}"
        note = "no price is known for this model" if runtime.cost_usd is None else "for the model's answers"
        tiles.append(Tile("cost", cost, note))
    return tiles


def _metric_note(metric: MetricValue) -> str:
    if metric.value is None:
        return "no scored sample"
    if metric.ci_lower is None or metric.ci_upper is None:
        return "no spread to estimate from"
    return f"{number(metric.ci_lower)} to {number(metric.ci_upper)}, {method_name(metric.method or '')}"


def _ledger(given: RunReport) -> list[Part]:
    tally = given.bundle.benchmark.tally
    if tally is None:
        return []
    return [
        Ledger(
            scored=tally.scored,
            unscored={"unscored": tally.unscored} if tally.unscored else {},
            failed={"failed": tally.failed} if tally.failed else {},
            note="Scores rest on the scored samples only.",
        )
    ]


def _scores(bundle: Bundle) -> Table:
    rows = [
        (
            IntervalRow(label=name, value=m.value, low=m.ci_lower, high=m.ci_upper),
            ["–" if m.n is None else f"{m.n:,}", method_name(m.method) if m.method else "–"],
        )
        for name, m in bundle.benchmark.scores.items()
    ]
    return interval_table(rows, label="metric", value="value", others=[*numbers("n"), "interval"])


def _scorers(bundle: Bundle) -> Table:
    rows = []
    for name, one in bundle.benchmark.scorers.items():
        mean = one.scores.get("mean_reward", MetricValue(value=None))
        tally = one.tally or Tally()
        labels = ", ".join(f"{label} {count:,}" for label, count in one.labels.items())
        rows.append(
            (
                IntervalRow(label=name, value=mean.value, low=mean.ci_lower, high=mean.ci_upper),
                [*(f"{n:,}" for n in (tally.scored, tally.unscored, tally.failed)), labels or "–"],
            )
        )
    return interval_table(
        rows, label="scorer", value="mean", others=[*numbers("scored", "unscored", "failed"), "labels"]
    )


def _categories(categories: Sequence[CategorySummary]) -> list[Part]:
    rows = [
        (
            IntervalRow(label=c.category, value=c.mean_reward, low=c.ci_lower, high=c.ci_upper),
            [f"{n:,}" for n in (c.n_samples, c.unscored, c.failed)],
        )
        for c in categories
    ]
    shown, rest = rows[:MOST_CATEGORIES], rows[MOST_CATEGORIES:]
    others = numbers("scored", "unscored", "failed")
    parts: list[Part] = [interval_table(shown, label="category", value="mean", others=others)]
    if rest:
        table = interval_table(rest, label="category", value="mean", others=others)
        parts.append(Details(f"{len(rest):,} more categories", [table]))
    return parts


def _failure_note(failures: FailureAnalysis) -> str:
    if not failures.total_failures:
        return ""
    return (
        f"{failures.total_failures:,} of {failures.samples:,} samples ({failures.failure_rate:.1%}) were answered "
        "wrongly or could not be measured."
    )


def _failures(failures: FailureAnalysis, *, exemplars: bool) -> list[Part]:
    if not failures.total_failures:
        return [Paragraph(f"None of {failures.samples:,} samples failed.")]
    table = bar_table(
        [
            (name, float(category.count), [f"{category.rate:.1%}", EXPLAINED.get(name, "")])
            for name, category in failures.categories.items()
        ],
        label="category",
        value="samples",
        others=[*numbers("share"), "meaning"],
    )
    rows = [
        Fold(
            label=str(example.problem_idx),
            text=preview(example.response_preview, 120) or "(no text)",
            badge=example.category,
            value=f"repeat {example.repeat}",
            parts=[Preformatted(example.response_preview or "(no text)")],
        )
        for example in failures.exemplars
        if exemplars
    ]
    return [table, Folds(rows=rows, label="problem", text="an example of each")] if rows else [table]


def _causes(causes: Sequence[Cause]) -> Table:
    rows: list[list[Cell | str]] = [
        [
            one.kind or "–",
            f"{one.count:,}",
            one.status,
            Cell(one.message or "–", below=one.advice),
        ]
        for one in causes
    ]
    return Table(["kind", *numbers("samples"), "status", "message, and what helps"], rows)


def _runtime(stats: RuntimeStats) -> Table:
    latency = stats.latency_seconds
    rows = [
        ["calls", f"{stats.calls:,}"],
        ["requests sent again", f"{stats.retries:,}"],
        ["answers cut off", f"{stats.cut_off:,}"],
        ["samples per second", _amount(stats.samples_per_second)],
        ["output tokens per second", _amount(stats.output_tokens_per_second)],
        [
            "latency p50 / p90 / p99 (s)",
            " / ".join(number(v) for v in (latency.p50, latency.p90, latency.p99)),
        ],
        ["tokens in / out", f"{stats.tokens.input:,} / {stats.tokens.output:,}"],
        ["cost (US dollars)", "unknown price" if stats.cost_usd is None else f"{stats.cost_usd:.4f}"],
    ]
    if stats.judge_tokens.input or stats.judge_tokens.output or stats.judge_cost_usd is not None:
        cost = "unknown price" if stats.judge_cost_usd is None else f"{stats.judge_cost_usd:.4f}"
        rows += [
            ["judge tokens in / out", f"{stats.judge_tokens.input:,} / {stats.judge_tokens.output:,}"],
            ["judge cost (US dollars)", cost],
        ]
    return Table(["figure", *numbers("value")], rows)


def _spreads(given: RunReport) -> list[Part]:
    return [
        Figure(histogram({name: _thinned(values)}, title=title, x_label=unit), title)
        for name, values, title, unit in (
            ("calls", given.latencies, "Latency", "seconds"),
            ("answers", given.output_tokens, "Length of answers", "tokens"),
        )
        if values
    ]


def _config(bundle: Bundle) -> list[Part]:
    rows = [[key, _plain(value)] for key, value in flat(bundle.config)]
    return [
        Table(["setting", "value"], rows),
        Details("Digests", [Table(["of", "sha256"], [[key, value] for key, value in bundle.hashes.items()])]),
        Details(
            "Versions", [Table(["part", "version"], [[key, value] for key, value in bundle.versions.items()])]
        ),
    ]


def flat(config: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as dotted names, unset ones left out."""
    found: list[tuple[str, Any]] = []
    for key, value in config.items():
        if isinstance(value, dict):
            found += flat(value, f"{prefix}{key}.")
        elif value not in (None, "", [], ()):
            found.append((f"{prefix}{key}", value))
    return found


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.encode_text(value)


def _amount(value: float | None) -> str:
    return number(value, 1)


def _thinned(values: Sequence[float]) -> Sequence[float]:
    # A picture of thirty bins looks the same made from every tenth value.
    step = -(-len(values) // MOST_POINTS)
    return values if step == 1 else values[::step]
