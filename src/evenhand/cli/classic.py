"""The A/B rule (success, duration, tokens) applied to two evaluation runs: `evenhand gate --policy classic`."""

from pathlib import Path

import click

from evenhand.ab import AbReport, RunRecord, analyze
from evenhand.cli.output import console, print_json
from evenhand.compare.markdown import number
from evenhand.core.errors import InputError
from evenhand.results import RunResults, SampleResult, read_run, run_folders

SUCCESS = 0.5
"""A reward above this counts as a success: half the points is not one."""


def classic_gate(base: Path, candidate: Path, format_: str) -> int:
    """Judge by the three gates of the A/B contract. GO prefers the candidate, NO-GO the base."""
    sides = [run_folders(path) for path in (base, candidate)]
    if any(len(side) != 1 for side in sides):
        raise InputError("the classic rule judges one benchmark: name one run folder on each side")
    runs = [read_run(next(iter(side.values()))) for side in sides]
    records = [*records_of(runs[1], "candidate"), *records_of(runs[0], "base")]
    report = analyze(records, treatment="candidate", control="base")
    verdict, status = _verdict(report)
    if format_ == "json":
        print_json({"verdict": verdict, "analysis": report.to_dict()})
    elif format_ == "markdown":
        click.echo(f"## {verdict}\n\n{report.to_markdown()}")
    else:
        out = console()
        out.print(f"{verdict}: {report.decision}", markup=False)
        for gate in report.to_dict()["gates"]:
            figures = f"candidate {number(gate['treatment'])}, base {number(gate['control'])}"
            out.print(f"  • {gate['name']}: {gate['standing']} ({figures})", markup=False)
    return status


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


def _verdict(report: AbReport) -> tuple[str, int]:
    if report.decision == "prefer candidate":
        return "GO", 0
    if report.decision == "prefer base":
        return "NO-GO", 1
    return "INCONCLUSIVE", 2
