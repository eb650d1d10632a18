"""Making the page of a finished run anew from its other artifacts."""

from pathlib import Path
from typing import TypeVar

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.evaluation.aggregate import Aggregator
from evenhand.evaluation.failures import ArtifactCollector, FailureAnalysis
from evenhand.evaluation.report import ReportInput, report_html
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.results.bundle import Bundle
from evenhand.results.reading import read_bundle, read_samples
from evenhand.results.writing import write_text

T = TypeVar("T")


def rewrite_report(folder: Path) -> tuple[Bundle, FailureAnalysis, Path]:
    """The bundle of the run in `folder`, its failures and its fresh `report.html`; other tools' runs work too."""
    found = sorted(folder.glob("eval-*.json"))
    bundle = read_bundle(found[-1]) if found else None
    aggregator, collector = Aggregator(), ArtifactCollector()
    latencies: list[float] = []
    tokens: list[float] = []
    for sample in read_samples(folder / "results.jsonl"):
        aggregator.add(sample)
        collector.add(sample)
        if sample.usage is not None:
            if sample.usage.duration_seconds is not None:
                latencies.append(sample.usage.duration_seconds)
            if sample.usage.output_tokens is not None:
                tokens.append(sample.usage.output_tokens)
    if bundle is None or bundle.schema_version == 0:
        name = bundle.benchmark.name if bundle else folder.name
        summary = aggregator.summary(name, aggregator.tally.total).benchmark
        bundle = Bundle(benchmark=summary, config=bundle.config if bundle else {})
    # Written when the run was made, with more knowledge of the scorer than its results alone give.
    failures = _kept(folder / "failure_analysis.json", FailureAnalysis) or collector.analysis()
    page = folder / "report.html"
    given = ReportInput(
        bundle=bundle,
        failures=failures,
        runtime=_kept(folder / "runtime_stats.json", RuntimeStats),
        latencies=latencies,
        output_tokens=tokens,
    )
    write_text(page, report_html(given))
    return bundle, failures, page


def _kept(path: Path, kind: type[T]) -> T | None:
    try:
        return jsontext.decode(path.read_bytes(), type=kind)
    except (OSError, InputError):
        return None
