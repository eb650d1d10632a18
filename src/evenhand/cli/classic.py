"""The A/B rule (success, duration, tokens) applied to two evaluation runs: `evenhand gate --policy classic`."""

from pathlib import Path

from evenhand.ab import AbReport, RunRecord, analyze
from evenhand.ab.decision import Gate
from evenhand.ab.significance import ALPHA
from evenhand.compare.compatibility import differences
from evenhand.compare.gate import GateReport, GateVerdict, MetricGate, Status
from evenhand.compare.markdown import number
from evenhand.core.errors import Incomparable, InputError
from evenhand.results import RunResults, SampleResult, read_run, run_folders

VERDICTS: dict[str, GateVerdict] = {"prefer candidate": "GO", "prefer base": "NO-GO"}
SUCCESS = 0.5
"""A reward above this counts as a success: half the points is not one."""


def classic_gate(base: Path, candidate: Path, *, force: bool) -> tuple[GateReport, AbReport]:
    """Judge by the three gates of the A/B contract. GO prefers the candidate, NO-GO the base."""
    sides = [run_folders(path) for path in (base, candidate)]
    if any(len(side) != 1 for side in sides):
        raise InputError("the classic rule judges one benchmark: name one run folder on each side")
    runs = [read_run(next(iter(side.values()))) for side in sides]
    different = differences(runs[0], runs[1])
    if different and not force:
        raise Incomparable(different)
    records = [*records_of(runs[1], "candidate"), *records_of(runs[0], "base")]
    analysis = analyze(records, treatment="candidate", control="base")
    report = GateReport(
        verdict=VERDICTS.get(analysis.decision, "INCONCLUSIVE"),
        sentence=f"{analysis.decision}.",
        gates=[_gate(gate, runs[0].name) for gate in analysis.gates],
        alpha=ALPHA,
        notes=[f"compared by force although this differs: {words}" for words in different],
    )
    return report, analysis


def _gate(gate: Gate, benchmark: str) -> MetricGate:
    status: Status = "MISSING" if gate.holds is None else "PASS" if gate.holds else "BREACH"
    figures = f"candidate {number(gate.treatment)}, base {number(gate.control)}"
    return MetricGate(
        benchmark=benchmark,
        metric=gate.name,
        tier="critical",
        status=status,
        reasons=[f"{gate.standing} ({figures})"],
        base=gate.control,
        candidate=gate.treatment,
    )


def records_of(run: RunResults, arm: str) -> list[RunRecord]:
    """The samples of a run as A/B records; failed samples are infrastructure failures, not failed tasks."""
    return [_record(sample, arm) for sample in run.samples]


def _record(sample: SampleResult, arm: str) -> RunRecord:
    usage = sample.usage
    if usage is None or usage.duration_seconds is None:
        raise InputError(
            f"the classic rule needs durations and tokens, and problem {sample.problem_idx} has none"
        )
    return RunRecord(
        task_id=str(sample.problem_idx),
        arm=arm,
        repeat=sample.repeat + 1,
        success=sample.reward is not None and sample.reward > SUCCESS,
        duration_seconds=usage.duration_seconds,
        total_cost_usd=usage.cost_usd,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=0,
        cache_write_tokens=0,
        infra_failure=sample.reward is None,
    )
