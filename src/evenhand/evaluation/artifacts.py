"""The files of a finished run, written whole, in the order of problems and repeats."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from evenhand.benchmarks.definition import Problem, Turn
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.core.timestamps import format_instant, now
from evenhand.evaluation.aggregate import Aggregator, Summary
from evenhand.evaluation.failures import ArtifactCollector, FailureAnalysis
from evenhand.evaluation.ledger import DONE, Ledger
from evenhand.evaluation.planning import ProblemFile
from evenhand.evaluation.records import Generated, Judged, Measured
from evenhand.evaluation.report import ReportWriter, RunReport
from evenhand.evaluation.runtime import RuntimeCollector, RuntimeStats
from evenhand.evaluation.sample_views import sample_views
from evenhand.metrics.intervals import mean_interval
from evenhand.results.bundle import Bundle
from evenhand.results.records import SampleError, SampleResult, Usage, ended
from evenhand.results.writing import JsonlFile, write_json, write_text

SCHEMA_VERSION = 1


def warm_up() -> None:
    """Load what the last step needs; done in a thread while the first answers are waited for."""
    mean_interval([0.0, 1.0])


class Trajectory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of `trajectories.jsonl`: what was said, and how it came about."""

    problem_idx: int
    """The problem."""
    repeat: int
    """Which answer to it."""
    messages: tuple[Turn, ...]
    """What was sent."""
    response: str | None = None
    """What came back."""
    reasoning: str | None = None
    """The model's own thinking, from the endpoint's own field or from between tags in the answer."""
    finish_reason: str = ""
    """Why the answer ended."""
    truncated: bool = False
    """Whether the answer was cut off, at the token limit or inside its thinking."""
    model: str = ""
    """The model that answered, in the endpoint's words."""
    error: SampleError | None = None
    """Why there is no answer."""
    input_tokens: int | None = None
    """Tokens of the question."""
    output_tokens: int | None = None
    """Tokens of the answer."""
    cost_usd: float | None = None
    """Price of the call."""
    latency_seconds: float | None = None
    """Time of the call that succeeded."""
    attempts: int = 1
    """How many requests it took."""
    cached: bool = False
    """Whether the answer came from the cache."""
    judge: dict[str, Any] | None = None
    """The judge's model, prompt digest, raw reply and identity."""
    trajectory: list[Any] | None = None
    """The conversation that a task says it had."""
    trace: str = ""
    """Where in a task's code its error was raised."""
    further_judgements: dict[str, Any] = {}
    """What the judge said for the further scorers that asked it, by their names."""


class RunFacts(Struct, frozen=True, kw_only=True):
    """What the bundle says besides the results."""

    run_id: str
    started_at: str
    benchmark: str
    scorers: tuple[str, ...] = ()
    """The names of the scorers, the first one first, where every line names them."""
    stopped_early: bool = False
    """Whether the run ended before its last sample because it was decided: only finished samples are written."""
    config: dict[str, Any]
    hashes: dict[str, str]
    versions: dict[str, str]
    environment: dict[str, Any]


class Written(Struct, frozen=True, kw_only=True):
    """What was written."""

    bundle: Bundle
    summary: Summary
    failures: FailureAnalysis
    runtime: RuntimeStats
    paths: list[Path]


Steps = tuple[Generated, Measured | None, dict[str, Judged]]


def results_of(
    ledger: Ledger,
    problems: ProblemFile,
    repeats: int,
    *,
    scorers: Sequence[str] = (),
    only_done: bool = False,
) -> Iterator[tuple[SampleResult, Trajectory, Steps]]:
    """Every answered sample in order, with what led to it; `only_done` leaves out what has no last score yet.

    `scorers` names all of them, the first one first, where the lines are to hold the outcomes by name.
    """
    for place, problem in enumerate(problems):
        for repeat in range(repeats):
            key = place * repeats + repeat
            if key not in ledger.generated or (only_done and ledger.state[key] not in DONE):
                continue
            steps = (ledger.generation(key), ledger.measurement(key), ledger.judgements(key))
            yield (
                sample_result(problem, repeat, *steps, scorers=scorers),
                _trajectory(problem, repeat, steps[0], steps[2]),
                steps,
            )


def write_artifacts(
    folder: Path,
    facts: RunFacts,
    ledger: Ledger,
    problems: ProblemFile,
    repeats: int,
    session: tuple[float, int, int],
    report: ReportWriter | None = None,
) -> Written:
    """Write every artifact of a run whose samples are all finished. `session`: seconds, samples and tokens of this
    process; `report` writes the text of `report.html`."""
    aggregator, collector, runtime = Aggregator(), ArtifactCollector(), RuntimeCollector()
    with (
        JsonlFile(folder / "results.jsonl") as results,
        JsonlFile(folder / "trajectories.jsonl") as trajectories,
    ):
        for sample, trajectory, steps in results_of(
            ledger, problems, repeats, scorers=facts.scorers, only_done=facts.stopped_early
        ):
            results.write_checked(sample)
            trajectories.write_checked(trajectory)
            aggregator.add(sample)
            collector.add(sample, extracts=steps[1] is None or steps[1].extracts)
            runtime.add(*steps)
    aggregator.repeats = repeats
    summary = aggregator.summary(facts.benchmark, ledger.done() if facts.stopped_early else len(ledger))
    if facts.stopped_early:
        summary = replace(
            summary, benchmark=aggregator.anytime(summary.benchmark, facts.config["order_seed"])
        )
    failures, stats = collector.analysis(), runtime.stats(*session)
    config = {**facts.config, "adjusted_parameters": stats.adjusted} if stats.adjusted else facts.config
    bundle = Bundle(
        benchmark=summary.benchmark,
        run_id=facts.run_id,
        schema_version=SCHEMA_VERSION,
        created_at=format_instant(now()),
        config=config,
        hashes=facts.hashes,
        versions=facts.versions,
        environment=facts.environment,
    )
    name = bundle_name(facts)
    write_json(folder / "failure_analysis.json", failures)
    write_json(folder / "runtime_stats.json", stats)
    names = [name, "results.jsonl", "trajectories.jsonl", "runtime_stats.json", "failure_analysis.json"]
    if report is not None:
        shown = RunReport(
            bundle=bundle,
            failures=failures,
            runtime=stats,
            latencies=runtime.latencies,
            output_tokens=runtime.output_tokens,
            samples=sample_views(folder, failures),
        )
        write_text(folder / "report.html", report(shown))
        names.append("report.html")
    write_json(folder / name, bundle)
    return Written(
        bundle=bundle,
        summary=summary,
        failures=failures,
        runtime=stats,
        paths=[folder / name for name in names],
    )


def bundle_name(facts: RunFacts) -> str:
    """`eval-TIME-ID.json`: sorts by the time at which the run started."""
    stamp = facts.started_at[:19].replace("-", "").replace(":", "").replace("T", "-")
    return f"eval-{stamp}-{facts.run_id[-8:]}.json"


def sample_result(
    problem: Problem,
    repeat: int,
    generated: Generated,
    measured: Measured | None,
    judged: dict[str, Judged],
    *,
    scorers: Sequence[str] = (),
) -> SampleResult:
    """The line of `results.jsonl`."""
    outcomes: dict[str, Outcome]
    if measured is None:
        lost = Failed(error=generated.error or "not_scored", message=generated.message)
        outcomes = dict.fromkeys(["", *scorers[1:]], lost)
    else:
        outcomes = {"": measured.outcome, **measured.others}
        outcomes |= {name: one.outcome for name, one in judged.items()}
    outcome = outcomes.pop("")
    reward, status, error = ended(outcome)
    details = dict(outcome.details)
    if isinstance(outcome, Scored) and isinstance(outcome.value, str):
        details["label"] = outcome.value
    if "" in judged:
        details["judge"] = judged[""].info.get("model", "")
        details["judge_identity"] = judged[""].info.get("identity", "")
    return SampleResult(
        problem_idx=problem.index,
        repeat=repeat,
        reward=reward,
        expected_answer=problem.target,
        model_response=generated.text,
        extracted_answer=outcome.extracted if isinstance(outcome, Scored) else None,
        metadata=problem.metadata,
        scoring_details=details,
        status=status,
        error=error,
        usage=Usage(
            input_tokens=generated.input_tokens,
            output_tokens=generated.output_tokens,
            cost_usd=generated.cost_usd,
            duration_seconds=generated.latency_seconds if generated.error is None else None,
        ),
        reasoning=generated.reasoning,
        truncated=generated.truncated or generated.finish_reason == "length",
        scores={scorers[0]: outcome, **outcomes} if scorers else UNSET,
        input=UNSET if problem.input is None else problem.input,
        output=UNSET if generated.output is None else generated.output,
        trace_id=generated.trace_id or UNSET,
    )


def _trajectory(problem: Problem, repeat: int, generated: Generated, judged: dict[str, Judged]) -> Trajectory:
    failed = generated.error is not None
    return Trajectory(
        problem_idx=problem.index,
        repeat=repeat,
        messages=problem.turns,
        response=generated.text,
        reasoning=generated.reasoning,
        finish_reason=generated.finish_reason,
        truncated=generated.truncated or generated.finish_reason == "length",
        model=generated.model,
        error=SampleError(kind=generated.error or "", message=generated.message) if failed else None,
        input_tokens=generated.input_tokens,
        output_tokens=generated.output_tokens,
        cost_usd=generated.cost_usd,
        latency_seconds=None if failed else generated.latency_seconds,
        attempts=generated.attempts,
        cached=generated.cached,
        judge=judged[""].info if "" in judged else None,
        trajectory=generated.messages,
        trace=generated.trace,
        further_judgements={name: one.info for name, one in judged.items() if name},
    )
