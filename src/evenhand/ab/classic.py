"""The A/B rule (success, duration, tokens) applied to two evaluation runs: `evenhand gate --policy classic`."""

from math import inf
from statistics import median

from evenhand.ab.analysis import analyze
from evenhand.ab.decision import DecisionGate
from evenhand.ab.narrative import lack_of_proof
from evenhand.ab.record import RunRecord
from evenhand.ab.report import AbReport
from evenhand.ab.significance import ALPHA
from evenhand.compare.compatibility import differences
from evenhand.compare.coverage import coverage_words
from evenhand.compare.gate import GateReport, GateVerdict, MetricCheck, Status
from evenhand.compare.pairing import pair_runs
from evenhand.compare.verdict import missing_words
from evenhand.core.errors import Incomparable, InputError
from evenhand.results import RunResults, SampleResult
from evenhand.results.records import Usage

VERDICTS: dict[str, GateVerdict] = {"prefer candidate": "GO", "prefer base": "NO-GO"}
MIN_COVERAGE = 0.98
"""The part of the samples that each side must have scored for a GO, unless the gates hold in the worst case."""
SUCCESS = 0.5
"""A reward above this counts as a success: half the points is not one."""


def classic_gate(
    base: RunResults, candidate: RunResults, *, force: bool = False
) -> tuple[GateReport, AbReport]:
    """Judge by the three gates of the A/B contract. GO prefers the candidate, NO-GO the base."""
    different = differences(base, candidate)
    if different and not force:
        raise Incomparable(different)
    records = [*records_of(candidate, "candidate"), *records_of(base, "base")]
    analysis = analyze(records, treatment="candidate", control="base")
    verdict = VERDICTS.get(analysis.decision, "INCONCLUSIVE")
    unproven = lack_of_proof(analysis)
    sentence = f"{analysis.decision}{f' ({unproven})' if unproven else ''}."
    coverage = pair_runs(base, candidate).coverage
    counted = [_counted(run) for run in (base, candidate)]
    known = all(have >= MIN_COVERAGE * scored for have, scored in counted)
    missing = coverage.possible - coverage.pairs
    holds = verdict == "GO" and _holds_at_worst(base, candidate)
    if verdict == "GO" and missing:
        sentence = f"{sentence.removesuffix('.')}{missing_words(missing, cleared=holds)}."
    if verdict == "GO" and not ((coverage.reaches(MIN_COVERAGE) and known) or holds):
        verdict = "INCONCLUSIVE"
        sentence = (
            f"{analysis.decision} for the samples that were scored, but too much is missing: each side must have scored "
            f"{MIN_COVERAGE:.0%} and know the tokens of as many, or the gates must hold in the worst case."
        )
    report = GateReport(
        verdict=verdict,
        sentence=sentence,
        gates=[_gate(gate, base.name) for gate in analysis.gates],
        alpha=ALPHA,
        notes=[
            coverage_words(
                coverage,
                delta="the gates",
                worst=f"{coverage.worst_delta:+.4f} in mean score",
                best=f"{coverage.best_delta:+.4f}",
            ),
            *(
                f"tokens are known for {have:,} of the {scored:,} samples that the {side} has scored"
                for side, (have, scored) in zip(("base", "candidate"), counted, strict=True)
                if have < scored
            ),
            *(f"compared by force although this differs: {words}" for words in different),
        ],
    )
    return report, analysis


def _holds_at_worst(base: RunResults, candidate: RunResults) -> bool:
    """Whether the three gates hold when every missing base sample succeeded at no cost, and no candidate's ever ends."""
    keys = sorted({(one.problem_idx, one.repeat) for one in [*base.samples, *candidate.samples]})
    sides = []
    for run, good in ((base, True), (candidate, False)):
        scored = {(one.problem_idx, one.repeat): one for one in run.samples if one.reward is not None}
        spent = 0.0 if good else inf
        usages = [scored[key].usage if key in scored else None for key in keys]
        sides.append(
            (
                sum((scored[key].reward or 0.0) > SUCCESS if key in scored else good for key in keys),
                median(spent if one is None else one.duration_seconds or 0.0 for one in usages),
                median(spent if (tokens := _tokens(one)) is None else tokens for one in usages),
            )
        )
    mine, theirs = sides
    return theirs[0] >= mine[0] and theirs[1] <= mine[1] and theirs[2] <= mine[2]


def _tokens(usage: Usage | None) -> int | None:
    """None where either count is unknown: that is missing, not zero."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def _counted(run: RunResults) -> tuple[int, int]:
    """For how many of the scored samples the tokens are known, and how many there are."""
    scored = [one for one in run.samples if one.reward is not None]
    return sum(_tokens(one.usage) is not None for one in scored), len(scored)


def _gate(gate: DecisionGate, benchmark: str) -> MetricCheck:
    status: Status = "MISSING" if gate.holds is None else "PASS" if gate.holds else "BREACH"
    figures = f"candidate {_figure(gate.treatment)}, base {_figure(gate.control)}"
    return MetricCheck(
        benchmark=benchmark,
        metric=gate.name,
        tier="critical",
        status=status,
        reasons=[f"{gate.standing} ({figures})"],
        base=gate.control,
        candidate=gate.treatment,
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


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
