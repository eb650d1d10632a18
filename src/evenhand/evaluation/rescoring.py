"""New scores for stored responses: the model is not called again."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from evenhand.core.errors import InputError, MissingFile
from evenhand.core.ids import new_id
from evenhand.core.outcome import Outcome, Scored, Unscored
from evenhand.core.timestamps import format_instant, now
from evenhand.evaluation.aggregate import Aggregator
from evenhand.evaluation.config import digest
from evenhand.evaluation.failures import ArtifactCollector, FailureAnalysis
from evenhand.evaluation.report import ReportWriter, RunReport
from evenhand.evaluation.sample_views import sample_views
from evenhand.models.reasoning import THINK_TAGS, join_reasoning, split_reasoning
from evenhand.results import (
    BenchmarkSummary,
    Bundle,
    JsonlFile,
    SampleResult,
    read_samples,
    write_json,
    write_text,
)
from evenhand.results.reading import newest_bundle, read_bundle, read_name
from evenhand.results.records import ended
from evenhand.scoring.apply import score_sample_async
from evenhand.scoring.definition import Scorer
from evenhand.scoring.fingerprint import fingerprint
from evenhand.scoring.types import ScorerInput

AT_ONCE = 64
"""How many samples are scored together; scorers that run programs bound themselves further."""
KEPT = ("dataset", "prompt", "sampling")
"""Digests that scoring anew does not touch."""


class Rescored(Struct, frozen=True, kw_only=True):
    """What came of it."""

    bundle: Bundle
    """The new results."""
    failures: FailureAnalysis
    """Why samples failed, by the new scorer."""


def rescore_run(
    folder: Path,
    target: Path,
    scorer: Scorer,
    advance: Callable[[int], None],
    *,
    think_tags: Sequence[str] = THINK_TAGS,
    report: ReportWriter | None = None,
) -> Rescored:
    """Score every stored response of the run in `folder` with `scorer`, into the new folder `target`.

    Thinking that a response still holds, as those of older runs do, is taken out of it first.
    """
    source = folder / "results.jsonl"
    if not source.exists():
        raise MissingFile("no run here: results.jsonl with the stored responses is not there", path=folder)
    if target.exists() and any(target.iterdir()):
        raise InputError("the folder for the new scores is not empty", path=target)
    path = newest_bundle(folder)
    old = read_bundle(path) if path else Bundle(benchmark=BenchmarkSummary(name=read_name(folder)))
    target.mkdir(parents=True, exist_ok=True)
    aggregator, collector = Aggregator(), ArtifactCollector()
    with JsonlFile(target / "results.jsonl") as results:
        for sample in _rescored(_without_thinking(source, think_tags), scorer, advance):
            results.write(sample)
            aggregator.add(sample)
            collector.add(sample)
    bundle = replace(
        old,
        benchmark=aggregator.summary(old.benchmark.name, aggregator.tally.total).benchmark,
        run_id=new_id(),
        schema_version=1,
        created_at=format_instant(now()),
        config={
            **{name: value for name, value in old.config.items() if name != "scorers"},
            "scorer": scorer.identity,
            "think_tags": list(think_tags),
            "rescored_from": old.run_id,
        },
        hashes={name: value for name, value in old.hashes.items() if name in KEPT}
        | {"scorer": _scorer_digest(scorer, tuple(think_tags))},
    )
    failures = collector.analysis()
    write_json(target / "failure_analysis.json", failures)
    if report is not None:
        views = sample_views(target, failures, trajectories=folder / "trajectories.jsonl")
        shown = RunReport(bundle=bundle, failures=failures, runtime=None, samples=views)
        write_text(target / "report.html", report(shown))
    write_json(target / f"eval-rescored-{bundle.run_id[-8:]}.json", bundle)
    return Rescored(bundle=bundle, failures=failures)


def _scorer_digest(scorer: Scorer, tags: tuple[str, ...]) -> str:
    found = digest([fingerprint(scorer), {}])
    return found if tags == THINK_TAGS else digest([found, tags])


def _without_thinking(source: Path, tags: Sequence[str]) -> Iterator[SampleResult]:
    for sample in read_samples(source):
        split = split_reasoning(sample.model_response or "", tags)
        if split.reasoning is None and not split.unclosed:
            yield sample
            continue
        yield replace(
            sample,
            model_response=split.answer,
            reasoning=join_reasoning(sample.reasoning, split.reasoning),
            truncated=sample.truncated or split.unclosed,
        )


def _rescored(
    samples: Iterable[SampleResult], scorer: Scorer, advance: Callable[[int], None]
) -> Iterator[SampleResult]:
    remaining = iter(samples)
    while batch := list(islice(remaining, AT_ONCE)):
        yield from asyncio.run(_score_batch(batch, scorer))
        advance(len(batch))


async def _score_batch(batch: list[SampleResult], scorer: Scorer) -> list[SampleResult]:
    return list(await asyncio.gather(*(_score(sample, scorer) for sample in batch)))


async def _score(sample: SampleResult, scorer: Scorer) -> SampleResult:
    if sample.model_response is None:
        # The model gave no answer: there is still nothing to score, and the old reason stands.
        return replace(sample, scores=UNSET) if sample.reward is None else _ended(sample, _no_response())
    given = ScorerInput(
        response=sample.model_response if sample.output is UNSET else sample.output,
        target=sample.expected_answer,
        metadata=sample.metadata,
        input=None if sample.input is UNSET else sample.input,
    )
    return _ended(sample, await score_sample_async(scorer, given, think_tags=()))


def _no_response() -> Unscored:
    return Unscored(reason="no_response", message="the file has no response to score")


def _ended(sample: SampleResult, outcome: Outcome) -> SampleResult:
    reward, status, error = ended(outcome)
    return replace(
        sample,
        reward=reward,
        status=status,
        error=error,
        extracted_answer=outcome.extracted if isinstance(outcome, Scored) else None,
        scoring_details=outcome.details,
        scores=UNSET,
    )
