"""May it ship? Every gated metric against its limit, and one verdict over all.

For a metric let the *damage* be how much worse the candidate is, and the *limit* the tolerated damage. With
`require_significance` (the default) and error rate α:

=====================  ==========================================================================
BREACH                 damage above the limit is proven: Holm-adjusted one-sided p < α
PASS                   damage above the limit is ruled out: the one-sided upper bound is below it
INSUFFICIENT_EVIDENCE  neither, or too few pairs
MISSING                the benchmark or the metric is not there on both sides
=====================  ==========================================================================

Ruling out needs no correction: the gate says GO only when every metric passes (an intersection-union test).
NO-GO: a critical or supporting BREACH. INCONCLUSIVE: no breach, but something required is missing or unproven.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.compatibility import differences
from evenhand.compare.policy import Limit, Policy, Tier, limits_of
from evenhand.compare.values import SPENT, paired_values
from evenhand.core.errors import Incomparable
from evenhand.metrics.differences import seen_scale
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import non_inferiority, permutation_test
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults

Status = Literal["PASS", "BREACH", "INSUFFICIENT_EVIDENCE", "MISSING"]
GateVerdict = Literal["GO", "NO-GO", "INCONCLUSIVE"]
EXIT_STATUS: dict[GateVerdict, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 2}


class MetricGate(Struct, frozen=True, kw_only=True):
    """One metric of one benchmark against its limit."""

    benchmark: str
    """The benchmark's name."""
    metric: str
    """The metric's name."""
    tier: Tier
    """How much it counts."""
    status: Status
    """What it comes to."""
    reasons: list[str]
    """Why."""
    base: float | None = None
    """The base's mean over the compared problems."""
    candidate: float | None = None
    """The candidate's mean over the same problems."""
    damage: float | None = None
    """How much worse the candidate is; negative is better."""
    damage_lower: float | None = None
    """The one-sided lower bound of the damage."""
    damage_upper: float | None = None
    """The one-sided upper bound of the damage."""
    limit: float | None = None
    """The damage that is tolerated here, relative limits applied."""
    p_value: float | None = None
    """Of the hypothesis that the damage is within the limit."""
    p_adjusted: float | None = None
    """The same after Holm's correction over the gated metrics."""
    problems: int = 0
    """How many problems were compared."""
    coverage: float = 0.0
    """The part of the possible problems that was compared."""


class GateReport(Struct, frozen=True, kw_only=True):
    """The whole gate."""

    verdict: GateVerdict
    """May it ship?"""
    sentence: str
    """The verdict in one sentence."""
    gates: list[MetricGate]
    """Every metric, those that decide first."""
    alpha: float
    """The error rate of the gate as a whole."""
    notes: list[str]
    """What else the reader must know."""


def run_gate(
    base: Mapping[str, RunResults],
    candidate: Mapping[str, RunResults],
    policy: Policy,
    *,
    force: bool = False,
) -> GateReport:
    """Judge the runs, by benchmark name, against the policy."""
    names = list(policy.benchmarks) or sorted(base.keys() | candidate.keys())
    notes = [
        f"benchmark '{name}' was run but is not in the policy: not gated"
        for name in sorted((base.keys() | candidate.keys()) - set(names))
    ]
    gates: list[MetricGate] = []
    for name in names:
        limits = limits_of(policy, name)
        if name in base and name in candidate:
            different = differences(base[name], candidate[name])
            if different and not force:
                raise Incomparable([f"{name}: {words}" for words in different])
            notes += [f"{name}: compared by force although this differs: {words}" for words in different]
            gates += [_measure(limit, base[name], candidate[name], policy.alpha) for limit in limits]
        else:
            side = "the base" if name not in base else "the candidate"
            gates += [_missing(limit, f"no run of this benchmark on the side of {side}") for limit in limits]
    gates = _decided(
        gates,
        {(limit.benchmark, limit.metric): limit for name in names for limit in limits_of(policy, name)},
        policy.alpha,
    )
    order = {"critical": 0, "supporting": 1, "advisory": 2}
    gates.sort(key=lambda gate: (order[gate.tier], gate.benchmark, gate.metric))
    verdict, sentence = _verdict(gates)
    return GateReport(verdict=verdict, sentence=sentence, gates=gates, alpha=policy.alpha, notes=notes)


def _missing(limit: Limit, reason: str) -> MetricGate:
    return MetricGate(
        benchmark=limit.benchmark, metric=limit.metric, tier=limit.tier, status="MISSING", reasons=[reason]
    )


def _measure(limit: Limit, base: RunResults, candidate: RunResults, alpha: float) -> MetricGate:
    values = paired_values(limit.metric, base, candidate)
    if len(values.base) == 0:
        return _missing(limit, f"no problem has the metric '{limit.metric}' on both sides")
    worse = (
        values.base - values.candidate
        if limit.direction == "higher_is_better"
        else values.candidate - values.base
    )
    tolerated = tolerated_damage(limit, float(np.mean(values.base)))
    scale = None if limit.metric in SPENT else seen_scale(values.base, values.candidate)
    lower, upper = _bounds(worse, alpha, scale)
    return MetricGate(
        benchmark=limit.benchmark,
        metric=limit.metric,
        tier=limit.tier,
        status="INSUFFICIENT_EVIDENCE",
        reasons=[],
        base=float(np.mean(values.base)),
        candidate=float(np.mean(values.candidate)),
        damage=float(np.mean(worse)),
        damage_lower=lower,
        damage_upper=upper,
        limit=tolerated,
        p_value=_breach_p_value(worse, tolerated, scale),
        problems=len(worse),
        coverage=values.share,
    )


def tolerated_damage(limit: Limit, base_mean: float) -> float:
    """The smaller of the absolute limit and, where it counts, the relative one."""
    limits = [] if limit.max_drop is None else [limit.max_drop]
    if limit.max_relative_drop is not None:
        guarded = limit.relative_guard_below is None or base_mean < limit.relative_guard_below
        if guarded or not limits:
            limits.append(limit.max_relative_drop * abs(base_mean))
    return min(limits)


def _bounds(worse: FloatArray, alpha: float, scale: float | None) -> tuple[float | None, float | None]:
    """One-sided bounds of the mean damage, each at level 1 − α; None where one problem tells nothing.

    `scale` is the largest damage that could be, None for what is spent. Scores that did not change on any problem still leave a drop possible on the next one, as in `compare`.
    """
    if len(worse) < 2:
        return None, None
    if scale is None and float(np.ptp(worse)) == 0.0:
        return float(worse[0]), float(worse[0])
    level = 1 - alpha
    lower = non_inferiority(worse, 0.0, confidence_level=level, scale=scale).ci_lower
    upper = -non_inferiority(-worse, 0.0, confidence_level=level, scale=scale).ci_lower
    return lower, upper


def _breach_p_value(worse: FloatArray, tolerated: float, scale: float | None) -> float | None:
    """One-sided p of "the damage is within the limit": sign flips at a limit of zero, a t test above it."""
    if len(worse) < 2:
        return None
    if float(np.ptp(worse)) == 0.0:
        every = float(worse[0])
        if every <= tolerated:
            return 1.0
        if scale is None:
            return 0.0
        # Within the scale and with a mean of at most the limit they take this value with at most this probability.
        return float(((scale + tolerated) / (scale + every)) ** len(worse))
    if tolerated == 0.0:
        return permutation_test(worse, alternative="greater").p_value
    return non_inferiority(worse - tolerated, 0.0, scale=scale).p_value


def _decided(
    gates: list[MetricGate], limits: Mapping[tuple[str, str], Limit], alpha: float
) -> list[MetricGate]:
    """The gates with corrected p-values and their statuses."""
    gated = {
        i: gate.p_value
        for i, gate in enumerate(gates)
        if gate.tier != "advisory" and gate.p_value is not None
    }
    adjusted = dict(zip(gated, holm(list(gated.values())).tolist(), strict=True)) if gated else {}
    decided = []
    for index, gate in enumerate(gates):
        if gate.status == "MISSING":
            decided.append(gate)
            continue
        corrected = adjusted.get(index, gate.p_value)
        status, reason = _status(
            replace(gate, p_adjusted=corrected), limits[gate.benchmark, gate.metric], alpha
        )
        decided.append(replace(gate, p_adjusted=corrected, status=status, reasons=[*gate.reasons, reason]))
    return decided


def _status(gate: MetricGate, limit: Limit, alpha: float) -> tuple[Status, str]:
    assert gate.damage is not None
    assert gate.limit is not None
    if gate.coverage < limit.min_coverage:
        return (
            "INSUFFICIENT_EVIDENCE",
            f"{gate.coverage:.1%} of the problems are compared, {limit.min_coverage:.1%} are asked for",
        )
    if not limit.require_significance:
        if gate.damage > gate.limit:
            return (
                "BREACH",
                f"damage {gate.damage:.4g} is above the limit {gate.limit:.4g} (estimate alone, as the policy says)",
            )
        return (
            "PASS",
            f"damage {gate.damage:.4g} is within the limit {gate.limit:.4g} (estimate alone, as the policy says)",
        )
    if gate.p_adjusted is None or gate.damage_upper is None or gate.damage_lower is None:
        return "INSUFFICIENT_EVIDENCE", "one problem cannot show how much the scores vary"
    bounds = f"damage {gate.damage:.4g}, one-sided bounds {gate.damage_lower:.4g} and {gate.damage_upper:.4g}"
    if gate.damage > gate.limit and gate.p_adjusted < alpha:
        return "BREACH", f"{bounds}: above the limit {gate.limit:.4g} (adjusted p = {gate.p_adjusted:.3g})"
    if gate.damage_upper < gate.limit or (
        gate.damage_lower == gate.damage_upper and gate.damage <= gate.limit
    ):
        return "PASS", f"{bounds}: more than the limit {gate.limit:.4g} is ruled out"
    return (
        "INSUFFICIENT_EVIDENCE",
        f"{bounds}: the limit {gate.limit:.4g} is neither proven broken nor proven kept",
    )


def _verdict(gates: list[MetricGate]) -> tuple[GateVerdict, str]:
    required = [gate for gate in gates if gate.tier != "advisory"]
    broken = [gate for gate in required if gate.status == "BREACH"]
    open_ = [gate for gate in required if gate.status in ("MISSING", "INSUFFICIENT_EVIDENCE")]
    if broken:
        return "NO-GO", f"Do not ship: {_names(broken)} dropped by more than is tolerated."
    if open_:
        return "INCONCLUSIVE", f"Not shown to be safe: {_names(open_)} could not be decided."
    if not required:
        return "INCONCLUSIVE", "Nothing is gated: the policy has no critical or supporting benchmark."
    return "GO", f"Ship: {len(required)} of {len(required)} gated metrics are within their limits."


def _names(gates: list[MetricGate]) -> str:
    names = [
        gate.benchmark if gate.metric == "mean_reward" else f"{gate.benchmark} ({gate.metric})"
        for gate in gates
    ]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
