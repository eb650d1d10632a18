"""May it ship? Every gated metric against its limit, and one verdict over all.

For a metric let the *damage* be how much worse the candidate is, and the *limit* the tolerated damage. With
`require_significance` (the default) and error rate α:

=====================  ==========================================================================
BREACH                 damage above the limit is proven: Holm-adjusted one-sided p < α
PASS                   damage above the limit is ruled out: the one-sided upper bound is below it, and
                       missing samples cannot change that: each side has at least `min_coverage`
                       of its samples, or the worst case's upper bound is below the limit too
INSUFFICIENT_EVIDENCE  neither, or too much is missing
MISSING                the benchmark or the metric is not there on both sides
=====================  ==========================================================================

Ruling out needs no correction: the gate says GO only when every metric passes (an intersection-union test).
NO-GO: a critical or supporting BREACH, or a benchmark that the policy requires and a side has not run. INCONCLUSIVE:
neither, but something required is unproven.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.comparison import Options, cluster_codes
from evenhand.compare.compatibility import differences, judge_words, treatment, uneven_words
from evenhand.compare.coverage import share_text
from evenhand.compare.policy import Limit, Policy, Tier, limits_of
from evenhand.compare.values import SPENT, paired_values
from evenhand.compare.verdict import missing_words, too_few_words
from evenhand.core.errors import Incomparable
from evenhand.metrics.differences import p_at_most, seen_scale
from evenhand.metrics.exact import as_fraction, exact_mean
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import non_inferiority, permutation_test
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults

Status = Literal["PASS", "BREACH", "INSUFFICIENT_EVIDENCE", "MISSING"]
GateVerdict = Literal["GO", "NO-GO", "INCONCLUSIVE"]
EXIT_STATUS: dict[GateVerdict, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 2}


class MetricCheck(Struct, frozen=True, kw_only=True):
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
    possible: int = 0
    """How many problems there would be if nothing were missing; the means cover `problems` of them."""
    coverage: float = 0.0
    """The part of the possible problems that was compared."""
    missing: int = 0
    """How many samples are not there on both sides."""
    base_coverage: float = 0.0
    """The part of its samples for which the base has what the metric needs."""
    candidate_coverage: float = 0.0
    """The part of its samples for which the candidate has it."""
    worst_damage: float | None = None
    """The damage if everything missing went against the candidate; None when that has no limit."""
    worst_upper: float | None = None
    """The one-sided upper bound of that damage."""
    best_damage: float | None = None
    """The damage if everything missing went for the candidate."""
    lacking: bool = False
    """Whether a side has no run of the benchmark at all; where the policy requires it, that is NO-GO."""
    clusters: int | None = None
    """How many clusters the problems come from, when a field names them."""
    proven: bool = False
    """Whether a PASS or BREACH is shown by a bound or a test; False where the policy lets the estimate alone decide."""
    assumes_alike: bool = False
    """Whether a PASS takes the missing samples to be like the others, because in the worst case it would not stand."""


class GateReport(Struct, frozen=True, kw_only=True):
    """The whole gate."""

    verdict: GateVerdict
    """May it ship?"""
    sentence: str
    """The verdict in one sentence."""
    gates: list[MetricCheck]
    """Every metric, those that decide first."""
    alpha: float
    """The error rate of the gate as a whole."""
    notes: list[str]
    """What else the reader must know."""
    treatment: list[str] = []
    """What was changed between the runs, as far as they tell; the benchmark's name before it where they disagree."""


def run_gate(
    base: Mapping[str, RunResults],
    candidate: Mapping[str, RunResults],
    policy: Policy,
    *,
    force: bool = False,
    cluster_field: str | None = None,
) -> GateReport:
    """Judge the runs, by benchmark name, against the policy; `cluster_field` as in `compare`."""
    names = list(policy.benchmarks) or sorted(base.keys() | candidate.keys())
    notes = [
        f"benchmark '{name}' was run but is not in the policy: not gated"
        for name in sorted((base.keys() | candidate.keys()) - set(names))
    ]
    gates: list[MetricCheck] = []
    changes: dict[str, list[str]] = {}
    for name in names:
        limits = limits_of(policy, name)
        if name in base and name in candidate:
            for change in treatment(base[name], candidate[name]):
                changes.setdefault(str(change), []).append(name)
            different = differences(base[name], candidate[name])
            if different and not force:
                raise Incomparable([f"{name}: {words}" for words in different])
            notes += [f"{name}: compared by force although this differs: {words}" for words in different]
            assumed = [*judge_words(base[name], candidate[name]), *uneven_words(base[name], candidate[name])]
            notes += [f"{name}: {words}" for words in assumed]
            gates += [
                _measure(limit, base[name], candidate[name], policy.alpha, cluster_field) for limit in limits
            ]
        else:
            side = "the base" if name not in base else "the candidate"
            if name not in base and name not in candidate:
                side = "both"
            reason = f"no run of this benchmark on the side of {side}"
            required = name in policy.benchmarks or name in base
            gates += [replace(_missing(limit, reason), lacking=required) for limit in limits]
    gates = _decided(
        gates,
        {(limit.benchmark, limit.metric): limit for name in names for limit in limits_of(policy, name)},
        policy.alpha,
    )
    order = {"critical": 0, "supporting": 1, "advisory": 2}
    gates.sort(key=lambda gate: (order[gate.tier], gate.benchmark, gate.metric))
    verdict, sentence = _verdict(gates)
    return GateReport(
        verdict=verdict,
        sentence=sentence,
        gates=gates,
        alpha=policy.alpha,
        notes=notes,
        treatment=_treatments(changes, len(names)),
    )


def _treatments(changes: Mapping[str, Sequence[str]], benchmarks: int) -> list[str]:
    return [
        words if len(where) == benchmarks else f"{', '.join(where)}: {words}"
        for words, where in changes.items()
    ]


def _missing(limit: Limit, reason: str) -> MetricCheck:
    return MetricCheck(
        benchmark=limit.benchmark, metric=limit.metric, tier=limit.tier, status="MISSING", reasons=[reason]
    )


def _measure(
    limit: Limit, base: RunResults, candidate: RunResults, alpha: float, cluster_field: str | None
) -> MetricCheck:
    values = paired_values(limit.metric, base, candidate)
    if len(values.base) == 0:
        return _missing(limit, f"no problem has the metric '{limit.metric}' on both sides")
    worse = _damage(limit, values.base, values.candidate)
    worst, best = values.worst, values.best
    if limit.direction == "lower_is_better":
        worst, best = best, worst
    tolerated = tolerated_damage(limit, _mean(values.base))
    scale = None if limit.metric in SPENT else seen_scale(values.base, values.candidate)
    options = Options(cluster_field=cluster_field)
    groups = cluster_codes(base, candidate, values.problems, options)
    lower, upper = _bounds(worse, alpha, scale, groups)
    extremes = [None if one is None else _damage(limit, one.base, one.candidate) for one in (worst, best)]
    return MetricCheck(
        benchmark=limit.benchmark,
        metric=limit.metric,
        tier=limit.tier,
        status="INSUFFICIENT_EVIDENCE",
        reasons=_too_few(len(worse if groups is None else set(groups)), tolerated, scale, alpha, groups),
        base=_mean(values.base),
        candidate=_mean(values.candidate),
        damage=_mean(worse),
        damage_lower=lower,
        damage_upper=upper,
        limit=tolerated,
        p_value=_breach_p_value(worse, tolerated, scale, groups),
        problems=len(worse),
        possible=values.possible,
        coverage=values.share,
        missing=values.missing,
        base_coverage=values.base_share,
        candidate_coverage=values.candidate_share,
        worst_damage=None if extremes[0] is None else _mean(extremes[0]),
        worst_upper=None
        if worst is None or extremes[0] is None
        else _bounds(extremes[0], alpha, scale, cluster_codes(base, candidate, worst.problems, options))[1],
        clusters=None if groups is None else len(set(groups)),
        best_damage=None if extremes[1] is None else _mean(extremes[1]),
    )


def _too_few(
    units: int, tolerated: float, scale: float | None, alpha: float, groups: Sequence[str] | None
) -> list[str]:
    """Why nothing short of a gain could pass; scores only, costs have no largest damage to allow for."""
    if scale is None:
        return []
    return too_few_words(units, tolerated, scale, alpha, clustered=groups is not None)


def _damage(limit: Limit, base: FloatArray, candidate: FloatArray) -> FloatArray:
    """Per problem, in the decimals that people read: 0.3 − 0.2 is 0.1 and no more."""
    first, second = (base, candidate) if limit.direction == "higher_is_better" else (candidate, base)
    return np.array(
        [float(as_fraction(a) - as_fraction(b)) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    )


def _mean(values: FloatArray) -> float:
    return float(exact_mean(values.tolist()))


def tolerated_damage(limit: Limit, base_mean: float) -> float:
    """The smaller of the absolute limit and, where it counts, the relative one."""
    limits = [] if limit.max_drop is None else [limit.max_drop]
    if limit.max_relative_drop is not None:
        guarded = limit.relative_guard_below is None or base_mean < limit.relative_guard_below
        if guarded or not limits:
            limits.append(float(as_fraction(limit.max_relative_drop) * abs(as_fraction(base_mean))))
    return min(limits)


def _bounds(
    worse: FloatArray, alpha: float, scale: float | None, groups: Sequence[str] | None
) -> tuple[float | None, float | None]:
    """One-sided bounds of the mean damage, each at level 1 − α; None where the spread is unknown.

    `scale` is the largest damage that could be, None for what is spent: equal differences then leave any damage possible
    on the next problem, and have no bounds. Scores that did not change on any problem still leave a drop possible on the next one, as in `compare`.
    """
    if len(worse) < 2:
        return None, None
    if scale is None and float(np.ptp(worse)) == 0.0:
        return None, None
    level = 1 - alpha
    lower = non_inferiority(worse, 0.0, confidence_level=level, scale=scale, groups=groups).ci_lower
    upper = -non_inferiority(-worse, 0.0, confidence_level=level, scale=scale, groups=groups).ci_lower
    return lower, upper


def _breach_p_value(
    worse: FloatArray, tolerated: float, scale: float | None, groups: Sequence[str] | None
) -> float | None:
    """One-sided p of "the damage is within the limit": sign flips at a limit of zero, else the bound of `_bounds`."""
    if len(worse) < 2:
        return None
    if scale is None:
        if float(np.ptp(worse)) == 0.0:  # sign flips around the limit
            return 1.0 if float(worse[0]) <= tolerated else float(0.5 ** len(worse))
        return non_inferiority(worse - tolerated, 0.0, scale=None, groups=groups).p_value
    if tolerated == 0.0:
        return permutation_test(worse, alternative="greater", groups=groups).p_value
    return p_at_most(worse, tolerated, groups=groups, scale=scale)


def _decided(
    gates: list[MetricCheck], limits: Mapping[tuple[str, str], Limit], alpha: float
) -> list[MetricCheck]:
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
        corrected, limit = adjusted.get(index, gate.p_value), limits[gate.benchmark, gate.metric]
        status, reason = _status(replace(gate, p_adjusted=corrected), limit, alpha)
        worst = gate.worst_upper if limit.require_significance else gate.worst_damage
        cleared = worst is not None and gate.limit is not None and worst < gate.limit
        tells = status == "INSUFFICIENT_EVIDENCE" and limit.require_significance
        too_few = gate.reasons if tells and not _beyond(gate) else []
        assumption = missing_words(gate.missing, cleared=cleared) if status == "PASS" else ""
        decided.append(
            replace(
                gate,
                p_adjusted=corrected,
                status=status,
                reasons=[f"{reason}{assumption}", *too_few, _coverage_line(gate)],
                proven=limit.require_significance and status in ("PASS", "BREACH"),
                assumes_alike=status == "PASS" and gate.missing > 0 and not cleared,
            )
        )
    return decided


def _status(gate: MetricCheck, limit: Limit, alpha: float) -> tuple[Status, str]:
    assert gate.damage is not None
    assert gate.limit is not None
    if not limit.require_significance:
        alone = "(estimate alone, as the policy says)"
        if gate.damage > gate.limit:
            return "BREACH", f"damage {gate.damage:.4g} is above the limit {gate.limit:.4g} {alone}"
        if not _covered(gate, limit, gate.worst_damage):
            return "INSUFFICIENT_EVIDENCE", _missing_words(limit)
        return "PASS", f"damage {gate.damage:.4g} is within the limit {gate.limit:.4g} {alone}"
    if gate.p_adjusted is None:
        return "INSUFFICIENT_EVIDENCE", "one problem cannot show how much the scores vary"
    if gate.damage_upper is None or gate.damage_lower is None:
        same = f"damage {gate.damage:.4g} on each of {gate.problems:,} problems"
        if gate.damage > gate.limit and gate.p_adjusted < alpha:
            return "BREACH", f"{same}: above the limit {gate.limit:.4g} {_corrected(gate.p_adjusted)}"
        return "INSUFFICIENT_EVIDENCE", f"{same}: equal differences do not show how much it varies"
    bounds = f"damage {gate.damage:.4g}, one-sided bounds {gate.damage_lower:.4g} and {gate.damage_upper:.4g}"
    if gate.damage > gate.limit and gate.p_adjusted < alpha:
        return "BREACH", f"{bounds}: above the limit {gate.limit:.4g} {_corrected(gate.p_adjusted)}"
    if gate.damage_upper < gate.limit:
        if not _covered(gate, limit, gate.worst_upper):
            return "INSUFFICIENT_EVIDENCE", f"{bounds}: {_missing_words(limit)}"
        return "PASS", f"{bounds}: more than the limit {gate.limit:.4g} is ruled out"
    return (
        "INSUFFICIENT_EVIDENCE",
        f"{bounds}: the limit {gate.limit:.4g} is neither proven broken nor proven kept",
    )


def _beyond(gate: MetricCheck) -> bool:
    return gate.damage is not None and gate.limit is not None and gate.damage > gate.limit


def _corrected(p_value: float) -> str:
    return f"(p = {p_value:.3g} after Holm's correction for all gated metrics)"


def _covered(gate: MetricCheck, limit: Limit, worst: float | None) -> bool:
    """Whether what is missing may be left out: there is little of it, or even at its worst the limit holds."""
    if min(gate.base_coverage, gate.candidate_coverage) >= limit.min_coverage:
        return True
    return worst is not None and gate.limit is not None and worst < gate.limit


def _missing_words(limit: Limit) -> str:
    return (
        f"too much is missing: each side must have {share_text(limit.min_coverage)} of its samples, or the worst case "
        "must keep the limit"
    )


def _coverage_line(gate: MetricCheck) -> str:
    if gate.base_coverage == gate.candidate_coverage == 1.0 and gate.problems == gate.possible:
        every = (
            "the only problem is there" if gate.possible == 1 else f"all {gate.possible:,} problems are there"
        )
        return f"coverage 100%: {every} on both sides"
    if gate.worst_damage is None:
        extremes = "the worst case has no limit"
    else:
        upper = "" if gate.worst_upper is None else f" (upper bound {gate.worst_upper:.4g})"
        extremes = f"worst case damage {gate.worst_damage:.4g}{upper}, best case {gate.best_damage:.4g}"
    return (
        f"coverage: base {share_text(gate.base_coverage)} of its samples, candidate {share_text(gate.candidate_coverage)}; the means "
        f"cover {gate.problems:,} of {gate.possible:,} problems; {extremes}"
    )


def _verdict(gates: list[MetricCheck]) -> tuple[GateVerdict, str]:
    required = [gate for gate in gates if gate.tier != "advisory"]
    broken = [gate for gate in required if gate.status == "BREACH"]
    open_ = [gate for gate in required if gate.status in ("MISSING", "INSUFFICIENT_EVIDENCE")]
    lacking = [gate for gate in required if gate.lacking]
    if broken:
        worse = "got worse" if any(gate.metric in SPENT for gate in broken) else "dropped"
        return "NO-GO", f"Do not ship: {_names(broken)} {worse} by more than is tolerated{_unproven(broken)}."
    if lacking:
        which = (
            f"{_names(lacking)} is required and was"
            if len(lacking) == 1
            else f"{_names(lacking)} are required and were"
        )
        return "NO-GO", f"Do not ship: {which} not run on both sides."
    if open_:
        return "INCONCLUSIVE", f"Not shown to be safe: {_names(open_)} could not be decided."
    if not required:
        return "INCONCLUSIVE", "Nothing is gated: the policy has no critical or supporting benchmark."
    which = "the gated metric is within its limit"
    if len(required) > 1:
        which = f"all {len(required):,} gated metrics are within their limits"
    assumed = [gate for gate in required if gate.assumes_alike]
    alike = (
        f"; this assumes that the missing samples of {_names(assumed)} are like the others" if assumed else ""
    )
    return "GO", f"Ship: {which}{_unproven(required)}{alike}."


def _unproven(gates: list[MetricCheck]) -> str:
    """Which of the metrics were decided by their estimates alone."""
    found = [gate for gate in gates if not gate.proven]
    if not found:
        return ""
    which = "" if len(found) == len(gates) else f" for {_names(found)}"
    return f" (not proven{which}: the policy lets the estimate decide)"


def _names(gates: list[MetricCheck]) -> str:
    names = [
        gate.benchmark if gate.metric == "mean_reward" else f"{gate.benchmark} ({gate.metric})"
        for gate in gates
    ]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
