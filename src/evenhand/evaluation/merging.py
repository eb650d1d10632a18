"""Shards of one run, put together."""

from collections.abc import Iterator
from hashlib import sha256
from heapq import merge
from pathlib import Path
from typing import Any

from evenhand.core import jsontext
from evenhand.core.errors import Incomparable, InputError, MissingFile
from evenhand.core.timestamps import format_instant, now
from evenhand.evaluation.aggregate import Aggregator
from evenhand.evaluation.config import differences
from evenhand.evaluation.failures import ArtifactCollector, FailureAnalysis, combined
from evenhand.evaluation.report import ReportWriter, RunReport
from evenhand.evaluation.sample_views import sample_views
from evenhand.results.bundle import Bundle
from evenhand.results.reading import read_bundle, read_samples
from evenhand.results.records import SampleResult
from evenhand.results.writing import JsonlFile, write_json, write_text

SHARDWISE = ("shard", "problems")


def merge_runs(folder: Path, target: Path, *, report: ReportWriter | None = None) -> Bundle:
    """Merge every finished run below `folder` into `target`."""
    if not folder.is_dir():
        raise MissingFile("no such folder", path=folder)
    if target.exists() and any(target.iterdir()):
        raise InputError("the folder for the merged run is not empty", path=target)
    paths = [results.parent for results in sorted(folder.glob("*/**/results.jsonl"))]
    if not paths:
        raise InputError("no finished shard here: no sub-folder with results.jsonl", path=folder)
    bundles = [_bundle(path) for path in paths]
    _check(paths, bundles)
    target.mkdir(parents=True, exist_ok=True)
    aggregator = Aggregator()
    with JsonlFile(target / "results.jsonl") as results:
        for sample in _ordered([read_samples(path / "results.jsonl") for path in paths], target):
            results.write(sample)
            aggregator.add(sample)
    _merge_trajectories(paths, target)
    first = bundles[0]
    aggregator.repeats = first.benchmark.repeats
    summary = aggregator.summary(first.benchmark.name, aggregator.tally.total)
    ids = [bundle.run_id for bundle in bundles]
    bundle = Bundle(
        benchmark=summary.benchmark,
        run_id=sha256("+".join(sorted(ids)).encode()).hexdigest()[:32],
        schema_version=first.schema_version,
        created_at=format_instant(now()),
        config={**_shared(first.config), "merged_from": ids},
        hashes=first.hashes,
        versions=first.versions,
        environment=first.environment,
    )
    analysis = combined(_analysis(path) for path in paths)
    write_json(target / "failure_analysis.json", analysis)
    if report is not None:
        shown = RunReport(
            bundle=bundle, failures=analysis, runtime=None, samples=sample_views(target, analysis)
        )
        write_text(target / "report.html", report(shown))
    write_json(target / f"eval-merged-{bundle.run_id[:8]}.json", bundle)
    return bundle


def _bundle(path: Path) -> Bundle:
    found = sorted(path.glob("eval-*.json"))
    if not found:
        raise InputError("this shard is not finished: there is no eval-*.json", path=path)
    return read_bundle(found[-1])


def _check(paths: list[Path], bundles: list[Bundle]) -> None:
    first = bundles[0]
    for path, bundle in zip(paths[1:], bundles[1:], strict=True):
        changes = differences(first.hashes, bundle.hashes)
        changes += differences(_comparable(first.config), _comparable(bundle.config))
        if changes:
            raise Incomparable([f"{paths[0]} and {path}: {change}" for change in changes])
    shards = [tuple(bundle.config.get("selection", {}).get("shard") or ()) for bundle in bundles]
    wanted = {shard[1] for shard in shards if shard}
    if len(wanted) == 1 and all(shards):
        count = wanted.pop()
        missing = sorted({*range(1, count + 1)} - {shard[0] for shard in shards})
        if missing:
            raise InputError(
                f"shards are missing: {', '.join(f'{n}/{count}' for n in missing)}", path=paths[0].parent
            )


def _comparable(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in _shared(config).items() if key != "concurrency"}


def _shared(config: dict[str, Any]) -> dict[str, Any]:
    shared = {key: value for key, value in config.items() if key not in SHARDWISE}
    if isinstance(shared.get("selection"), dict):
        shared["selection"] = {**shared["selection"], "shard": None}
    return shared


def _ordered(shards: list[Iterator[SampleResult]], target: Path) -> Iterator[SampleResult]:
    before = (-1, -1)
    for sample in merge(*shards, key=lambda one: (one.problem_idx, one.repeat)):
        here = (sample.problem_idx, sample.repeat)
        if here == before:
            raise InputError(f"problem {here[0]} repeat {here[1]} is in two shards", path=target)
        before = here
        yield sample


def _analysis(path: Path) -> FailureAnalysis:
    try:
        return jsontext.decode((path / "failure_analysis.json").read_bytes(), type=FailureAnalysis)
    except OSError:
        collector = ArtifactCollector()
        for sample in read_samples(path / "results.jsonl"):
            collector.add(sample)
        return collector.analysis()


def _merge_trajectories(paths: list[Path], target: Path) -> None:
    files = [path / "trajectories.jsonl" for path in paths]
    if not all(file.exists() for file in files):
        return
    lines = merge(
        *(_trajectories(file) for file in files), key=lambda one: (one["problem_idx"], one["repeat"])
    )
    with JsonlFile(target / "trajectories.jsonl") as written:
        for line in lines:
            written.write(line)


def _trajectories(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield jsontext.decode(line)
            except InputError as error:
                raise InputError(error.reason, path=path, line=number) from None
