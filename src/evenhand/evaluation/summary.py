"""What a run came to, in a few lines of text."""

from pathlib import Path

import msgspec

from evenhand.core.outcome import Tally
from evenhand.core.terminal import preview, printable
from evenhand.evaluation.causes import SHOWN_CAUSES
from evenhand.evaluation.failures import ADVICE, FailureAnalysis
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.results.bundle import BenchmarkSummary, Bundle, MetricValue

MOST_CATEGORIES = 20


def metric_text(metric: MetricValue) -> str:
    """`0.7125 [0.6801, 0.7433]`."""
    if metric.value is None:
        return "no scored sample"
    text = f"{metric.value:.4f}"
    if metric.ci_lower is not None and metric.ci_upper is not None:
        text += f" [{metric.ci_lower:.4f}, {metric.ci_upper:.4f}]"
    return text


def summary_text(
    bundle: Bundle, folder: Path, failures: FailureAnalysis | None = None, runtime: RuntimeStats | None = None
) -> str:
    """Counts, scores with intervals, categories, failures, where the report is."""
    summary = bundle.benchmark
    lines = [summary.name]
    if summary.tally is not None:
        tally, problems = summary.tally, summary.samples // max(summary.repeats, 1)
        lines.append(
            f"  {problems:,} problems × {summary.repeats} = {summary.samples:,} samples: {tally.scored:,} scored, "
            f"{tally.unscored:,} unscored, {tally.failed:,} failed"
        )
    width = max((len(name) for name in summary.scores), default=0)
    for name, metric in summary.scores.items():
        note = f"  ({metric.method})" if metric.method else ""
        lines.append(f"  {name:<{width}}  {metric_text(metric)}{note}")
    lines += scorer_lines(summary)
    if isinstance(summary.categories, list) and summary.categories:
        wide = max(len(one.category) for one in summary.categories[:MOST_CATEGORIES])
        for one in summary.categories[:MOST_CATEGORIES]:
            shown = "no scored sample" if one.mean_reward is None else f"{one.mean_reward:.4f}"
            lines.append(f"    {printable(one.category):<{wide}}  {shown}  n = {one.n_samples:,}")
        if len(summary.categories) > MOST_CATEGORIES:
            lines.append(
                f"    … and {len(summary.categories) - MOST_CATEGORIES} more categories in the report"
            )
    if failures is not None and failures.total_failures:
        named = ", ".join(f"{name} {category.count:,}" for name, category in failures.categories.items())
        lines.append(f"  failures: {named}")
        lines += [f"  {name}: {ADVICE[name]}" for name in failures.categories if name in ADVICE]
    if failures is not None:
        lines += cause_lines(failures)
    if runtime is not None and runtime.adjusted:
        lines.append(f"  the endpoint does not take every parameter: {', '.join(runtime.adjusted)}")
    if runtime is not None and runtime.cut_off:
        advised = failures is not None and "truncated" in failures.categories
        advice = "" if advised else "; raise the limit with --max-tokens"
        lines.append(f"  {runtime.cut_off:,} of {runtime.calls:,} answers were cut off{advice}")
    if runtime is not None and runtime.cached:
        lines.append(f"  {runtime.cached:,} of {runtime.calls:,} answers came from the cache")
    if runtime is not None:
        rate = runtime.samples_per_second or 0.0
        cost = "" if runtime.cost_usd is None else f", ${runtime.cost_usd:.4f}"
        lines.append(f"  {runtime.elapsed_seconds:.1f} s, {rate:,.1f} samples/s{cost}")
    lines += [f"  {line}" for line in stopping_lines(bundle)]
    lines.append(f"  results: {folder / 'results.jsonl'}")
    lines.append(f"  report:  {folder / 'report.html'}")
    return printable("\n".join(lines))


def stopping_lines(bundle: Bundle) -> list[str]:
    """What stopping as soon as it is decided came to, where a run was to do so."""
    told = bundle.config.get("stopping")
    if told is None:
        return []
    from evenhand.evaluation.stopping import Stopping

    return [printable(line) for line in str(msgspec.convert(told, Stopping)).splitlines()]


def scorer_lines(summary: BenchmarkSummary) -> list[str]:
    """One line per scorer, where there are several."""
    if len(summary.scorers) < 2:
        return []
    lines, width = [], max(map(len, summary.scorers))
    for name, one in summary.scorers.items():
        tally = one.tally or Tally()
        shown = metric_text(one.scores.get("mean_reward", MetricValue(value=None)))
        if one.labels:
            shown = ", ".join(f"{printable(label)} {count:,}" for label, count in one.labels.items())
        counts = f"{tally.scored:,} scored, {tally.unscored:,} unscored, {tally.failed:,} failed"
        lines.append(f"  {printable(name):<{width}}  {shown}  ({counts})")
    return lines


def cause_lines(failures: FailureAnalysis) -> list[str]:
    """The most frequent reasons why samples have no score, each with its number and with what helps against it."""
    shown = failures.causes[:SHOWN_CAUSES]
    lines, advised = [], set[str]()
    width = max((len(f"{cause.count:,}") for cause in shown), default=0)
    for cause in shown:
        state = "" if cause.status == "failed" else f"{cause.status}, "
        lines.append(f"    {cause.count:>{width},} × {state}{_cause_text(cause.kind, cause.message)}")
        if cause.advice and cause.advice not in advised:
            advised.add(cause.advice)
            lines.append(f"    {'':>{width}}   → {cause.advice}")
    if rest := len(failures.causes) - len(shown):
        lines.append(f"    … and {rest} more {'cause' if rest == 1 else 'causes'} in failure_analysis.json")
    return ["  why samples have no score:", *lines] if lines else []


def _cause_text(kind: str, message: str) -> str:
    named = f"{printable(kind)}: " if kind else ""
    return preview(f"{named}{message}" if message else named.rstrip(": "), 240)
