"""`report.html`: one page that needs nothing else to be opened."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from evenhand.core import jsontext
from evenhand.evaluation.failures import FailureAnalysis
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.plots import (
    Bar,
    Details,
    Figure,
    IntervalRow,
    Paragraph,
    Preformatted,
    Section,
    Table,
    bars,
    document,
    forest,
    histogram,
)
from evenhand.plots.document import Part
from evenhand.results.bundle import Bundle, CategorySummary, MetricValue

MOST_CATEGORIES = 60
MOST_POINTS = 20_000
EXPLAINED = {
    "timeout": "the endpoint did not answer in time",
    "rate_limit": "the endpoint asked for fewer requests",
    "refusal": "the model declined to answer",
    "empty": "the answer has no text",
    "format_error": "there is an answer, but the scorer found none in it",
    "wrong_answer": "the answer is wrong",
    "judge_error": "the judge gave no usable verdict",
    "sandbox_error": "the sandbox could not run the program",
    "scorer_error": "the scorer failed",
    "server_error": "the endpoint failed",
    "context_length": "the question is longer than the model takes",
    "content_filter": "the endpoint filtered the question or the answer",
}


class ReportInput(Struct, frozen=True, kw_only=True):
    """Everything that the page shows."""

    bundle: Bundle
    failures: FailureAnalysis | None
    runtime: RuntimeStats | None
    latencies: Sequence[float] = ()
    output_tokens: Sequence[float] = ()


def report_html(given: ReportInput) -> str:
    """The whole page."""
    bundle = given.bundle
    model = (
        bundle.config.get("model", {}).get("id", "") if isinstance(bundle.config.get("model"), dict) else ""
    )
    title = f"{bundle.benchmark.name}: {model}" if model else bundle.benchmark.name
    sections = [Section("", _headline(bundle)), Section("Scores", _scores(bundle))]
    categories = bundle.benchmark.categories
    if isinstance(categories, list) and categories:
        sections.append(Section("Categories", _categories(categories)))
    if given.failures is not None:
        sections.append(Section("Failures", _failures(given.failures)))
    if given.runtime is not None:
        sections.append(Section("Time and tokens", _runtime(given.runtime, given)))
    sections.append(Section("How it was run", _config(bundle)))
    return document(title, sections, footer=f"Evenhand run {bundle.run_id}, finished {bundle.created_at}")


def metric_text(metric: MetricValue) -> str:
    """`0.7125 [0.6801, 0.7433]`."""
    if metric.value is None:
        return "no scored sample"
    text = f"{metric.value:.4f}"
    if metric.ci_lower is not None and metric.ci_upper is not None:
        text += f" [{metric.ci_lower:.4f}, {metric.ci_upper:.4f}]"
    return text


def _headline(bundle: Bundle) -> list[Part]:
    summary = bundle.benchmark
    name = "pass@1" if "pass@1" in summary.scores else "mean_reward"
    found: list[Part] = []
    metric = summary.scores.get(name)
    if metric is not None:
        found.append(Paragraph(f"{name} = {metric_text(metric)} (95 % interval, {metric.method or 'none'})"))
    tally = summary.tally
    if tally is not None:
        problems = summary.samples // max(summary.repeats, 1)
        found.append(
            Paragraph(
                f"{problems:,} problems × {summary.repeats} = {summary.samples:,} samples: {tally.scored:,} scored, "
                f"{tally.unscored:,} unscored, {tally.failed:,} failed. Scores rest on the scored samples only."
            )
        )
    return found


def _scores(bundle: Bundle) -> list[Part]:
    rows = [
        [
            name,
            "–" if m.value is None else f"{m.value:.4f}",
            "–" if m.ci_lower is None else f"{m.ci_lower:.4f}",
            "–" if m.ci_upper is None else f"{m.ci_upper:.4f}",
            m.method or "–",
            "–" if m.n is None else f"{m.n:,}",
        ]
        for name, m in bundle.benchmark.scores.items()
    ]
    columns = ["metric", "value", "lower", "upper", "interval", "n"]
    return [Table(columns, rows, numeric=["value", "lower", "upper", "n"], caption="95 % intervals")]


def _categories(categories: Sequence[CategorySummary]) -> list[Part]:
    shown = categories[:MOST_CATEGORIES]
    rows = [
        IntervalRow(c.category, c.mean_reward, c.ci_lower, c.ci_upper, f"n = {c.n_samples:,}") for c in shown
    ]
    found: list[Part] = [
        Figure(forest(rows, title="Mean reward by category", x_label="mean reward", reference=None))
    ]
    table = Table(
        ["category", "mean", "lower", "upper", "scored", "unscored", "failed"],
        [
            [
                c.category,
                *("–" if v is None else f"{v:.4f}" for v in (c.mean_reward, c.ci_lower, c.ci_upper)),
                *(f"{n:,}" for n in (c.n_samples, c.unscored, c.failed)),
            ]
            for c in categories
        ],
        numeric=["mean", "lower", "upper", "scored", "unscored", "failed"],
    )
    found.append(Details(f"The same as a table ({len(categories)} categories)", [table]))
    return found


def _failures(failures: FailureAnalysis) -> list[Part]:
    if not failures.total_failures:
        return [Paragraph(f"None of {failures.samples:,} samples failed.")]
    found: list[Part] = [
        Paragraph(
            f"{failures.total_failures:,} of {failures.samples:,} samples ({failures.failure_rate:.1%}) were answered "
            "wrongly or could not be measured."
        ),
        Figure(
            bars(
                [Bar(name, float(category.count)) for name, category in failures.categories.items()],
                title="Failures by category",
                x_label="samples",
            )
        ),
    ]
    for name, category in failures.categories.items():
        meaning = EXPLAINED.get(name)
        parts: list[Part] = [Paragraph(f"{name}: {meaning}.")] if meaning else []
        parts += [
            Preformatted(
                example.response_preview or "(no text)",
                f"problem {example.problem_idx}, repeat {example.repeat}",
            )
            for example in failures.exemplars
            if example.category == name
        ]
        found.append(Details(f"{name}: {category.count:,} ({category.rate:.1%})", parts))
    return found


def _runtime(stats: RuntimeStats, given: ReportInput) -> list[Part]:
    latency = stats.latency_seconds
    rows = [
        ["calls", f"{stats.calls:,}"],
        ["requests sent again", f"{stats.retries:,}"],
        ["answers cut off at the length limit", f"{stats.cut_off:,}"],
        ["samples per second", _number(stats.samples_per_second)],
        ["output tokens per second", _number(stats.output_tokens_per_second)],
        [
            "latency p50 / p90 / p99 (s)",
            " / ".join(_number(v, 3) for v in (latency.p50, latency.p90, latency.p99)),
        ],
        ["tokens in / out", f"{stats.tokens.input:,} / {stats.tokens.output:,}"],
        ["judge tokens in / out", f"{stats.judge_tokens.input:,} / {stats.judge_tokens.output:,}"],
        ["cost (US dollars)", "unknown price" if stats.cost_usd is None else f"{stats.cost_usd:.4f}"],
        [
            "judge cost (US dollars)",
            "unknown price" if stats.judge_cost_usd is None else f"{stats.judge_cost_usd:.4f}",
        ],
    ]
    found: list[Part] = [Table(["figure", "value"], rows, numeric=["value"])]
    if given.latencies:
        figure = histogram({"calls": _thinned(given.latencies)}, title="Latency", x_label="seconds")
        found.append(Figure(figure))
    if given.output_tokens:
        figure = histogram(
            {"answers": _thinned(given.output_tokens)}, title="Length of answers", x_label="tokens"
        )
        found.append(Figure(figure))
    return found


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


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _thinned(values: Sequence[float]) -> Sequence[float]:
    # A picture of thirty bins looks the same made from every tenth value.
    step = -(-len(values) // MOST_POINTS)
    return values if step == 1 else values[::step]
