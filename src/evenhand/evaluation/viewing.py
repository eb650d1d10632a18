"""What the report of a finished run shows, read back from its artifacts."""

from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.evaluation.aggregate import Aggregator
from evenhand.evaluation.failures import ArtifactCollector, FailureAnalysis
from evenhand.evaluation.report import RunReport
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.evaluation.sample_views import sample_views
from evenhand.results.bundle import Bundle
from evenhand.results.reading import read_bundle, read_samples

T = TypeVar("T")


def read_report(folder: Path) -> RunReport:
    """The report of the run in `folder`; other tools' runs work too."""
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
    failures, found_anew = _kept(folder / "failure_analysis.json", FailureAnalysis), collector.analysis()
    if failures is None:
        failures = found_anew
    elif not failures.causes:  # written by an older version
        failures = replace(failures, causes=found_anew.causes)
    return RunReport(
        bundle=bundle,
        failures=failures,
        runtime=_kept(folder / "runtime_stats.json", RuntimeStats),
        latencies=latencies,
        output_tokens=tokens,
        samples=sample_views(folder, failures),
    )


def _kept(path: Path, kind: type[T]) -> T | None:
    try:
        return jsontext.decode(path.read_bytes(), type=kind)
    except (OSError, InputError):
        return None
