"""From records to a report."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import numpy as np

from evenhand.ab.arms import DEPRECATED_DELTAS, METRIC_BY_NAME, ArmNames, ArmRuns, choose_arms, runs_of
from evenhand.ab.decimals import Integers
from evenhand.ab.decision import Preference, decide, decision_text, gates_of, require_proof, with_proof
from evenhand.ab.diagnostics import diagnostics_of
from evenhand.ab.intervals import PASS_SCALE, delta_intervals
from evenhand.ab.pairing import pair, summarize_deltas
from evenhand.ab.profile import profile_of
from evenhand.ab.quality import quality_of
from evenhand.ab.readiness import readiness_of
from evenhand.ab.record import RunRecord
from evenhand.ab.report import AbReport
from evenhand.ab.significance import delta_tests
from evenhand.ab.summary import ArmSummary, summarize
from evenhand.ab.table import RunTable
from evenhand.core.errors import OptionError
from evenhand.core.timestamps import format_instant, now

CONFIDENCE_LEVEL = 0.95
NO_ARM = "(no such arm)"
Found = TypeVar("Found")


def analyze(
    records: RunTable | Iterable[RunRecord | Mapping[str, Any]],
    treatment: str | None = None,
    control: str | None = None,
    *,
    null_as_zero: bool = False,
    require_significance: bool = False,
    n_resamples: int = 10_000,
    seed: int = 0,
    generated_at: datetime | None = None,
) -> AbReport:
    """Compare two arms.

    `records` is what `load_records` returns, or run records, or mappings with their fields. Without names the arms
    `with_…` and `without_…` are found by themselves. `null_as_zero` reads a missing amount as 0;
    `require_significance` turns a gate that no test proves into mixed results. The same records in any order, with
    the same seed, give the same report.
    """
    if n_resamples < 1 or seed < 0:
        raise OptionError("the number of resamples must be at least 1, and the seed at least 0")
    table = records if isinstance(records, RunTable) else RunTable.from_records(records)
    names = choose_arms(table.arms, treatment, control)
    runs = {
        "treatment": runs_of(table, names.treatment, null_as_zero=null_as_zero),
        "control": runs_of(table, names.control, null_as_zero=null_as_zero),
    }
    summaries = {side: summarize(getattr(names, side) or NO_ARM, runs[side]) for side in runs}
    pairs = pair(runs["treatment"], runs["control"])
    deltas = summarize_deltas(pairs)
    tests = delta_tests(pairs, deltas, n_resamples=n_resamples, seed=seed)
    gates = tuple(with_proof(gate, tests) for gate in gates_of(runs["treatment"], runs["control"]))
    verdict: Preference = decide(gates) if all(len(side) for side in runs.values()) else "insufficient"
    if require_significance:
        verdict = require_proof(verdict, gates)
    compared = _compared_tasks(table, names)
    quality = quality_of(table, names, runs, pairs, null_as_zero=null_as_zero)
    excluded = sum(quality.infra_failures.values())
    return AbReport(
        generated_at_utc=format_instant(generated_at or now()),
        treatment=names.treatment,
        control=names.control,
        run_count=_effective(runs) + excluded,
        effective_run_count=_effective(runs),
        excluded_infra_failures=excluded,
        task_count=len(compared),
        arm_summaries=_named(names, summaries),
        paired_runs=len(pairs),
        deltas=_with_old_names(deltas),
        verdict=verdict,
        decision=decision_text(verdict, names.treatment, names.control),
        require_significance=require_significance,
        gates=gates,
        intervals=_with_old_names(
            delta_intervals(
                pairs,
                deltas,
                confidence_level=CONFIDENCE_LEVEL,
                n_resamples=n_resamples,
                seed=seed,
                scales={METRIC_BY_NAME["success"].delta: PASS_SCALE},
            )
        ),
        tests=_with_old_names(tests),
        readiness=readiness_of(table.tasks, compared, names, runs, pairs, tests),
        data_quality=quality,
        diagnostics=diagnostics_of(gates, deltas),
        seed=seed,
        n_resamples=n_resamples,
        profile=profile_of(table.tasks, compared, runs, pairs),
    )


def _effective(runs: Mapping[str, ArmRuns]) -> int:
    return sum(len(side) for side in runs.values())


def _with_old_names(by_delta: Mapping[str, Found]) -> dict[str, Found]:
    old = {name: by_delta[new] for name, new in DEPRECATED_DELTAS.items() if new in by_delta}
    return {**by_delta, **old}


def _named(names: ArmNames, summaries: Mapping[str, ArmSummary]) -> tuple[ArmSummary, ...]:
    """The arms that have a name, the treatment first: where only a control is there, after an empty treatment."""
    if names.treatment is None and names.control is None:
        return ()
    return (summaries["treatment"], *([summaries["control"]] if names.control is not None else []))


def _compared_tasks(table: RunTable, names: ArmNames) -> Integers:
    places = [table.arms.index(name) for name in (names.treatment, names.control) if name in table.arms]
    return np.unique(table.task[np.isin(table.arm, places)])
