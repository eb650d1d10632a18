"""Two runs of one benchmark, compared: pairs → delta with interval → test → verdict."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand import metrics
from evenhand.compare.compatibility import Change, differences, judge_words, treatment, uneven_words, unknowns
from evenhand.compare.coverage import Coverage, Key, planned_keys, score_range
from evenhand.compare.pairing import Pairing, Problem, pair_runs
from evenhand.compare.verdict import Evidence, Family, Verdict, decide, fewest_units
from evenhand.core.errors import Incomparable, InputError, OptionError
from evenhand.core.outcome import Tally
from evenhand.metrics.clusters import clustered_error, group_totals
from evenhand.metrics.differences import seen_scale
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import (
    cohens_d_paired,
    mcnemar,
    non_inferiority,
    paired_difference,
    permutation_test,
)
from evenhand.metrics.power import (
    flip_minimum_detectable_effect,
    mcnemar_minimum_detectable_effect,
)
from evenhand.metrics.quantiles import normal_quantile
from evenhand.metrics.types import Alternative, FloatArray, Interval, TestResult
from evenhand.results import RunResults, SampleResult

FALLBACK_EFFECT = 0.01
"""The drop that the next step is about when no drop at all is tolerated: one point, a hundredth of the scale."""


SMALLEST_EFFECT = 1e-4
"""In standard deviations: no number of problems that anyone could run shows a smaller one."""


class Options(Struct, frozen=True, kw_only=True):
    """What the caller decides."""

    max_drop: float = 0.05
    """The drop that would be tolerated, on the score's scale."""
    min_coverage: float = 0.98
    """The share of samples that each side must have scored for a PASS, unless the worst case passes too."""
    confidence_level: float = 0.95
    """Of the intervals; the tests use one minus it."""
    seed: int = 0
    """For whatever is resampled."""
    force: bool = False
    """Compare even if the runs did not measure the same thing."""
    cluster_field: str | None = None
    """The metadata field that names what problems share (a passage, a conversation): only such clusters are independent."""

    def __post_init__(self) -> None:
        if not 0 <= self.max_drop < float("inf"):
            raise OptionError(f"max_drop must be a finite number of at least 0, not {self.max_drop}")
        if not 0 <= self.min_coverage <= 1:
            raise OptionError(f"min_coverage must be between 0 and 1, not {self.min_coverage}")
        if not 0.5 <= self.confidence_level < 1:
            raise OptionError(f"confidence_level must be between 0.5 and 1, not {self.confidence_level}")


class Side(Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    """Where it came from."""
    mean: Interval
    """The mean over the samples that both sides have scored, with its own (unpaired) interval."""
    lowest_mean: float
    """The mean over all samples if every missing one had the lowest score."""
    highest_mean: float
    """The mean over all samples if every missing one had the highest score."""
    covered: str
    """Which samples the mean covers, in words."""
    tally: Tally
    """All its samples by status, compared or not."""


class Flip(Struct, frozen=True, kw_only=True):
    """A problem whose score changed."""

    problem_idx: int
    """Which problem."""
    category: str | None
    """Its category."""
    base: float
    """The base's mean over repeats."""
    candidate: float
    """The candidate's mean over repeats."""
    expected: Any
    """The target."""
    repeat: int = 0
    """The repeat whose answers are shown: the one that changed most in the direction of the whole problem."""
    base_score: float | None = None
    """The score of the base's answer in this repeat."""
    candidate_score: float | None = None
    """The score of the candidate's answer in this repeat."""
    base_response: str
    """The base's answer in this repeat."""
    candidate_response: str
    """The candidate's answer in this repeat."""

    @property
    def of_repeat(self) -> str:
        """`repeat 2: 1 → 0`, which of several answers are shown; empty where there is one on each side."""
        if self.base_score is None or self.candidate_score is None:
            return ""
        if self.repeat == 0 and (self.base_score, self.candidate_score) == (self.base, self.candidate):
            return ""
        return f"repeat {self.repeat}: {self.base_score:.4g} → {self.candidate_score:.4g}"


class CategoryComparison(Struct, frozen=True, kw_only=True):
    """The comparison within one category."""

    category: str
    """Its name."""
    problems: int
    """How many problems it has."""
    base_mean: float
    """The base's mean."""
    candidate_mean: float
    """The candidate's mean."""
    delta: Interval | None
    """Candidate minus base; None for a category of a single problem or cluster, which has no spread."""
    p_value: float
    """Of the test within the category."""
    p_adjusted: float
    """The same after Holm's correction over the categories."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Everything that can be said about the candidate against the base."""

    benchmark: str
    """The benchmark's name."""
    base: Side
    """The run to compare with."""
    candidate: Side
    """The run in question."""
    treatment: list[Change]
    """What was changed between the runs, as far as they tell: model, prompt, sampling."""
    verdict: Verdict
    """What it comes to."""
    evidence: Evidence
    """Every number that the verdict was made from."""
    delta: Interval
    """Candidate minus base: the mean over problems of the difference of their means."""
    unpaired_delta: Interval
    """The same with the pairing thrown away, to show what pairing buys."""
    test: TestResult
    """The test for the data at hand, two-sided, by name."""
    p_drop: float
    """The same test one-sided: of data like these if the candidate were not worse. The verdict rests on it."""
    p_beyond: float
    """One-sided: of data like these if the drop were as large as tolerated, or larger. A PASS rests on it."""
    family: Family | None
    """What correcting for all benchmarks that were compared together makes of these; None for one alone."""
    clusters: int | None
    """How many clusters the problems come from, when a field names them."""
    effect_size: Interval | None
    """Cohen's d of the paired differences; None when they do not vary."""
    minimum_detectable_effect: float | None
    """The smallest true change that this many problems show with 80 % power, on the score's scale."""
    problems: int
    """How many problems were compared."""
    pairs: int
    """How many pairs of answers."""
    improved: int
    """Problems whose mean rose."""
    regressed: int
    """Problems whose mean fell."""
    unchanged: int
    """The others."""
    coverage: Coverage
    """What is missing."""
    categories: list[CategoryComparison]
    """Per category, when there is more than one."""
    items: list[Problem]
    """Every compared problem."""
    flips: list[Flip]
    """Every problem whose score changed, worst first."""
    caveats: list[str]
    """What the reader must know to trust the rest."""
    max_drop: float
    """The tolerated drop."""


def compare_runs(
    base: RunResults, candidate: RunResults, options: Options | None = None, *, expected: Iterable[Key] = ()
) -> Comparison:
    """Compare two runs; `Incomparable` when they did not measure the same thing and nobody forces it.

    `expected` are samples that both runs should have: one that neither has is counted as missing.
    """
    options = options or Options()
    different = differences(base, candidate)
    if different and not options.force:
        raise Incomparable(different)
    pairing = pair_runs(base, candidate, expected)
    deltas = pairing.candidate_means - pairing.base_means
    bounds = score_range([*base.samples, *candidate.samples])
    scale = bounds[1] - bounds[0]
    groups = cluster_codes(base, candidate, [one.problem_idx for one in pairing.problems], options)
    coverage = with_extremes(pairing, options, scale, cluster_codes(base, candidate, pairing.every, options))
    evidence = _evidence(pairing, deltas, coverage, options, scale=scale, groups=groups)
    assert evidence.p_beyond is not None  # only a look at a part of the samples has none
    sides = _sides(base, candidate, pairing, bounds, options, groups)
    return Comparison(
        benchmark=base.name,
        base=sides[0],
        candidate=sides[1],
        treatment=treatment(base, candidate),
        verdict=decide(evidence),
        evidence=evidence,
        delta=evidence.delta,
        unpaired_delta=unpaired(pairing.base_means, pairing.candidate_means, options),
        test=significance(pairing, deltas, options, groups=groups),
        p_drop=evidence.p_drop,
        p_beyond=evidence.p_beyond,
        family=None,
        clusters=None if groups is None else len(set(groups)),
        effect_size=_effect(pairing, deltas, options),
        minimum_detectable_effect=_detectable(pairing, deltas, groups, options),
        problems=len(deltas),
        pairs=pairing.coverage.pairs,
        improved=int(np.sum(deltas > 0)),
        regressed=int(np.sum(deltas < 0)),
        unchanged=int(np.sum(deltas == 0)),
        coverage=coverage,
        categories=_categories(pairing, options, scale, groups),
        items=pairing.problems
        if groups is None
        else [replace(one, cluster=code) for one, code in zip(pairing.problems, groups, strict=True)],
        flips=_flips(pairing, base.samples, candidate.samples),
        caveats=_caveats(base, candidate, different, pairing),
        max_drop=options.max_drop,
    )


def _evidence(
    pairing: Pairing,
    deltas: FloatArray,
    coverage: Coverage,
    options: Options,
    *,
    scale: float,
    groups: Sequence[str] | None,
) -> Evidence:
    """What the verdict rests on; `groups` are the clusters of the problems."""
    delta = difference(pairing.base_means, pairing.candidate_means, options, scale=scale, groups=groups)
    # The mean of the decimals that people read: 0.3 − 0.1 is 0.2, not 0.19999999999999998.
    delta = replace(delta, value=pairing.delta)
    beyond = non_inferiority(
        deltas,
        options.max_drop,
        groups=groups,
        scale=scale,
        confidence_level=(1 + options.confidence_level) / 2,
    )
    effect = options.max_drop or FALLBACK_EFFECT * scale
    units = len(deltas) if groups is None else len(set(groups))
    return Evidence(
        delta=delta,
        p_drop=significance(pairing, deltas, options, "less", groups=groups).p_value,
        p_rise=significance(pairing, deltas, options, "greater", groups=groups).p_value,
        p_beyond=beyond.p_value,
        lowest=beyond.ci_lower,
        max_drop=options.max_drop,
        coverage=coverage,
        min_coverage=options.min_coverage,
        more_problems=_more_units(
            _spread(deltas, groups), units, effect, scale, options, _changed_share(pairing, deltas, groups)
        ),
        wanted_effect=effect,
        scale=scale,
        units=units,
        clustered=groups is not None,
    )


def cluster_codes(
    base: RunResults, candidate: RunResults, problems: Sequence[int], options: Options
) -> list[str] | None:
    """The cluster of every problem, by the field that the options name; `InputError` where one has none.

    A problem that neither run has a row of is a cluster of its own.
    """
    if options.cluster_field is None:
        return None
    found: dict[int, str] = {}
    for sample in [*base.samples, *candidate.samples]:
        value = sample.metadata.get(options.cluster_field)
        if value is not None:
            known = found.setdefault(sample.problem_idx, str(value))
            if known != str(value):
                raise InputError(
                    f"problem {sample.problem_idx} is in two clusters: '{known}' and '{value}'",
                    field=options.cluster_field,
                )
    present = {sample.problem_idx for run in (base, candidate) for sample in run.samples}
    found |= {problem: f"(absent: {problem})" for problem in problems if problem not in present}
    lost = [problem for problem in problems if problem not in found]
    if lost:
        raise InputError(
            f"{len(lost):,} problems have no such metadata, the first is problem {lost[0]}",
            field=options.cluster_field,
        )
    codes = [found[problem] for problem in problems]
    if len(set(codes)) < 2:
        raise InputError("all problems are in one cluster; two are needed", field=options.cluster_field)
    return codes


def difference(
    base: FloatArray,
    candidate: FloatArray,
    options: Options,
    *,
    scale: float | None = None,
    groups: Sequence[str] | None = None,
) -> Interval:
    """The paired difference of means with its interval; one problem cannot show how much the scores vary.

    `scale` is the largest difference that could be; without it, as far as these scores reach.
    """
    if len(base) < 2:
        raise InputError(
            "a comparison needs at least two problems that are scored in both runs; there is one"
        )
    return paired_difference(
        base,
        candidate,
        confidence_level=options.confidence_level,
        seed=options.seed,
        groups=groups,
        scale=scale if scale is not None else seen_scale(base, candidate),
    )


def unpaired(base: FloatArray, candidate: FloatArray, options: Options) -> Interval:
    """The difference of two independent means (Welch): what an analysis without pairing would report."""
    value = float(np.mean(candidate) - np.mean(base))
    if len(base) < 2:
        error = 0.0
    else:
        error = float(np.sqrt(np.var(base, ddof=1) / len(base) + np.var(candidate, ddof=1) / len(candidate)))
    half = normal_quantile(0.5 + options.confidence_level / 2) * error
    return Interval(
        value=value,
        ci_lower=value - half,
        ci_upper=value + half,
        confidence_level=options.confidence_level,
        method="unpaired normal",
        n=len(base),
        standard_error=error,
    )


def significance(
    pairing: Pairing,
    deltas: FloatArray,
    options: Options,
    alternative: Alternative = "two-sided",
    *,
    groups: Sequence[str] | None = None,
) -> TestResult:
    """Exact McNemar for one yes-or-no answer per problem; otherwise a sign-flip test that keeps problems whole.

    With clusters whole clusters are flipped.
    """
    if groups is not None:
        flips = permutation_test(deltas, groups=groups, seed=options.seed, alternative=alternative)
        return replace(flips, method=f"sign flips of whole clusters ({flips.method})")
    if pairing.binary and pairing.single:
        exact = mcnemar(int(np.sum(deltas < 0)), int(np.sum(deltas > 0)), alternative=alternative)
        return replace(exact, method="exact McNemar")
    flips = permutation_test(deltas, seed=options.seed, alternative=alternative)
    return replace(flips, method=f"sign flips of whole problems ({flips.method})")


def with_extremes(pairing: Pairing, options: Options, scale: float, groups: Sequence[str] | None) -> Coverage:
    """The coverage with the bounds of the worst and the best case, as sure as the interval's ends."""
    worst, best = pairing.worst, pairing.best
    if len(worst.base) < 2:
        return pairing.coverage
    level = (1 + options.confidence_level) / 2
    if not pairing.coverage.missing:
        return pairing.coverage  # nothing is missing: both cases are the delta itself
    lower, upper = (
        non_inferiority(
            sign * (one.candidate - one.base), 0.0, groups=groups, confidence_level=level, scale=scale
        )
        for sign, one in ((1.0, worst), (-1.0, best))
    )
    return replace(pairing.coverage, worst_lower=lower.ci_lower, best_upper=-upper.ci_lower)


def _sides(
    base: RunResults,
    candidate: RunResults,
    pairing: Pairing,
    bounds: tuple[float, float],
    options: Options,
    groups: Sequence[str] | None,
) -> tuple[Side, Side]:
    coverage, worst, best = pairing.coverage, pairing.worst, pairing.best
    covered = f"all {coverage.possible:,} samples"
    if coverage.pairs < coverage.possible:
        covered = f"the {coverage.pairs:,} of {coverage.possible:,} samples scored on both sides"

    def side(run: RunResults, means: FloatArray, ends: tuple[FloatArray, FloatArray], tally: Tally) -> Side:
        return Side(
            name=run.source,
            mean=metrics.mean_interval(
                means,
                groups=groups,
                confidence_level=options.confidence_level,
                seed=options.seed,
                bounds=bounds,
            ),
            lowest_mean=float(np.mean(ends[0])),
            highest_mean=float(np.mean(ends[1])),
            covered=covered,
            tally=tally,
        )

    return (
        side(base, pairing.base_means, (best.base, worst.base), pairing.base_tally),
        side(candidate, pairing.candidate_means, (worst.candidate, best.candidate), pairing.candidate_tally),
    )


def _effect(pairing: Pairing, deltas: FloatArray, options: Options) -> Interval | None:
    if len(deltas) < 2 or float(np.ptp(deltas)) < 1e-9:
        return None
    return cohens_d_paired(
        pairing.base_means, pairing.candidate_means, confidence_level=options.confidence_level
    )


def _spread(deltas: FloatArray, groups: Sequence[str] | None) -> float:
    """The standard deviation of the differences; with clusters, that of as many equal clusters with the same error."""
    if groups is None or len(set(groups)) == len(groups):
        return float(np.std(deltas, ddof=1)) if len(deltas) > 1 else 0.0
    _, codes = np.unique(np.array(groups), return_inverse=True)
    totals = group_totals(deltas, codes)
    return clustered_error(totals).standard_error * float(totals.sums.size**0.5)


def _detectable(
    pairing: Pairing, deltas: FloatArray, groups: Sequence[str] | None, options: Options
) -> float | None:
    """The smallest drop that the test at hand shows with 80 % power, if as many problems differ as did."""
    alpha = 1 - options.confidence_level
    if groups is None and pairing.binary and pairing.single:
        return mcnemar_minimum_detectable_effect(float(np.mean(deltas != 0)), len(deltas), alpha=alpha)
    sums = deltas
    if groups is not None:
        _, codes = np.unique(np.array(groups), return_inverse=True)
        sums = group_totals(deltas, codes).sums
    changed = int(np.sum(sums != 0))
    return flip_minimum_detectable_effect(_spread(deltas, groups), sums.size, changed, alpha=alpha)


def _changed_share(pairing: Pairing, deltas: FloatArray, groups: Sequence[str] | None) -> float | None:
    """The share of problems that differ, where exact McNemar is the test; None elsewhere."""
    if groups is not None or not (pairing.binary and pairing.single):
        return None
    return float(np.mean(deltas != 0))


def _more_units(
    spread: float, n: int, effect: float, scale: float, options: Options, changed: float | None
) -> int | None:
    """About how many problems (or clusters) more show a drop of `effect`, and rule it out where nothing changed."""
    if effect >= scale or effect < SMALLEST_EFFECT * max(spread, scale):
        return None
    if options.max_drop == 0 and spread == 0:
        return None
    alpha = 1 - options.confidence_level
    z_test, z_power = normal_quantile(1 - alpha), normal_quantile(0.8)
    if changed is not None or spread == 0:
        # McNemar's test with its correction for whole counts; a drop of `effect` changes at least that share of problems.
        share = max(changed or 0.0, effect / scale) * scale**2
        seen = z_test * share**0.5 + z_power * (share - effect**2) ** 0.5
        needed = _units_for(seen, effect, scale)
    else:
        needed = ceil(((z_test + z_power) * spread / effect) ** 2)
    if options.max_drop > 0:
        # As the bound is made: normal, with one value more at the end of the scale; and never fewer than it needs at all.
        bound = _units_for((normal_quantile(1 - alpha / 2) + z_power) * spread, effect, scale)
        needed = max(needed, bound, fewest_units(effect, scale, alpha / 2))
    return max(0, needed - n)


def _units_for(deviation: float, effect: float, extra: float) -> int:
    """The smallest n with n·effect − `extra` ≥ √n·`deviation`: `extra` is what one value more, or a step, costs."""
    root: float = (deviation + (deviation**2 + 4 * effect * extra) ** 0.5) / (2 * effect)
    return ceil(root**2)


def _categories(
    pairing: Pairing, options: Options, scale: float, groups: Sequence[str] | None
) -> list[CategoryComparison]:
    """Per category, in clusters as the whole is; a category that lies in a single cluster has no interval."""
    parts: dict[str, list[Problem]] = {}
    clusters: dict[str, list[str]] = {}
    for place, problem in enumerate(pairing.problems):
        if problem.category is not None:
            parts.setdefault(problem.category, []).append(problem)
            if groups is not None:
                clusters.setdefault(problem.category, []).append(groups[place])
    if len(parts) < 2:
        return []
    found = []
    for name, problems in sorted(parts.items()):
        inside = clusters.get(name)
        units = len(problems if inside is None else set(inside))
        base = np.array([problem.base for problem in problems])
        candidate = np.array([problem.candidate for problem in problems])
        part = Pairing(
            problems=problems,
            coverage=pairing.coverage,
            base_tally=pairing.base_tally,
            candidate_tally=pairing.candidate_tally,
            binary=pairing.binary,
            every=pairing.every,
            worst=pairing.worst,
            best=pairing.best,
        )
        delta = difference(base, candidate, options, scale=scale, groups=inside) if units > 1 else None
        # A single cluster could as well have gone the other way.
        p_value = 1.0
        if units > 1:
            p_value = significance(part, candidate - base, options, groups=inside).p_value
        found.append((name, base, candidate, delta, p_value))
    adjusted = holm([p_value for *_, p_value in found])
    return [
        CategoryComparison(
            category=name,
            problems=len(base),
            base_mean=float(np.mean(base)),
            candidate_mean=float(np.mean(candidate)),
            delta=delta,
            p_value=p_value,
            p_adjusted=float(corrected),
        )
        for (name, base, candidate, delta, p_value), corrected in zip(found, adjusted, strict=True)
    ]


def _flips(pairing: Pairing, base: Sequence[SampleResult], candidate: Sequence[SampleResult]) -> list[Flip]:
    changed = [problem for problem in pairing.problems if problem.delta != 0]
    wanted = {problem.problem_idx for problem in changed}
    mine, theirs = _answers(base, wanted), _answers(candidate, wanted)
    flips = []
    for problem in changed:
        index = problem.problem_idx
        old, new = _telling_repeat(mine[index], theirs[index], rose=problem.delta > 0)
        flips.append(
            Flip(
                problem_idx=index,
                category=problem.category,
                base=problem.base,
                candidate=problem.candidate,
                expected=old.expected_answer,
                repeat=old.repeat,
                base_score=old.reward,
                candidate_score=new.reward,
                base_response=_answer(old),
                candidate_response=_answer(new),
            )
        )
    return sorted(flips, key=lambda flip: (flip.candidate - flip.base, flip.problem_idx))


def _answers(samples: Sequence[SampleResult], wanted: set[int]) -> dict[int, dict[int, SampleResult]]:
    """Problem → repeat → sample, of those with a score."""
    found: dict[int, dict[int, SampleResult]] = {}
    for sample in samples:
        if sample.problem_idx in wanted and sample.reward is not None:
            found.setdefault(sample.problem_idx, {})[sample.repeat] = sample
    return found


def _telling_repeat(
    base: Mapping[int, SampleResult], candidate: Mapping[int, SampleResult], *, rose: bool
) -> tuple[SampleResult, SampleResult]:
    """The two answers that show the change: of the repeat with the largest one, the first among equals."""

    def change(repeat: int) -> float:
        found = (candidate[repeat].reward or 0.0) - (base[repeat].reward or 0.0)
        return found if rose else -found

    repeat = max(sorted(base.keys() & candidate.keys()), key=change)
    return base[repeat], candidate[repeat]


def _answer(sample: SampleResult) -> str:
    if sample.model_response is not None:
        return sample.model_response
    return "" if sample.extracted_answer is None else str(sample.extracted_answer)


def _caveats(base: RunResults, candidate: RunResults, different: list[str], pairing: Pairing) -> list[str]:
    found = [f"compared by force although this differs: {words}" for words in different]
    found += unknowns(base, candidate)
    found += [*judge_words(base, candidate), *uneven_words(base, candidate)]
    if pairing.coverage.missing and (pairing.coverage.low, pairing.coverage.high) != (0.0, 1.0):
        found.append(
            f"scores outside 0 to 1: the worst case sets missing ones to {pairing.coverage.low:g} or {pairing.coverage.high:g}, "
            "the lowest and highest that were seen"
        )
    promised = planned_keys(base, candidate) - {
        (one.problem_idx, one.repeat) for run in (base, candidate) for one in run.samples
    }
    if promised:
        found.append(
            f"{len(promised):,} samples have no row in either file although a bundle counts them: they are missing"
        )
    if len(pairing.problems) < 30:
        found.append(f"only {len(pairing.problems)} problems: intervals and tests are rough")
    return found
