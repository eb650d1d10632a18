"""Two runs of one benchmark, compared: pairs → delta with interval → test → verdict."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand import metrics
from evenhand.compare.compatibility import differences, unknowns
from evenhand.compare.pairing import Coverage, Pairing, Problem, pair_runs, score_range
from evenhand.compare.verdict import Evidence, Verdict, decide
from evenhand.core.errors import Incomparable, InputError, OptionError
from evenhand.core.outcome import Tally
from evenhand.metrics.differences import seen_scale
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import cohens_d_paired, mcnemar, paired_difference, permutation_test
from evenhand.metrics.power import minimum_detectable_effect, required_n
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
    min_coverage: float = 0.0
    """The part of the possible pairs that must be compared for a verdict."""
    confidence_level: float = 0.95
    """Of the intervals; the tests use one minus it."""
    seed: int = 0
    """For whatever is resampled."""
    force: bool = False
    """Compare although the runs did not measure the same thing."""

    def __post_init__(self) -> None:
        if not 0 <= self.max_drop < float("inf"):
            raise OptionError(f"max_drop must be a number from 0 up, and is {self.max_drop}")
        if not 0 <= self.min_coverage <= 1:
            raise OptionError(f"min_coverage must lie between 0 and 1, and is {self.min_coverage}")
        if not 0.5 <= self.confidence_level < 1:
            raise OptionError(f"confidence_level must lie between 0.5 and 1, and is {self.confidence_level}")


class Side(Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    """Where it came from."""
    mean: Interval
    """The mean over the compared problems, with its own (unpaired) interval."""
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
    base_response: str
    """The base's first answer."""
    candidate_response: str
    """The candidate's first answer."""


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
    """Candidate minus base; None for a category of a single problem, which has no spread."""
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
    verdict: Verdict
    """What it comes to."""
    delta: Interval
    """Candidate minus base: the mean over problems of the difference of their means."""
    unpaired_delta: Interval
    """The same with the pairing thrown away, to show what pairing buys."""
    test: TestResult
    """The test for the data at hand, two-sided, by name."""
    p_drop: float
    """The same test one-sided: of data like these if the candidate were not worse. The verdict rests on it."""
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


def compare_runs(base: RunResults, candidate: RunResults, options: Options | None = None) -> Comparison:
    """Compare two runs; `Incomparable` when they did not measure the same thing and nobody forces it."""
    options = options or Options()
    different = differences(base, candidate)
    if different and not options.force:
        raise Incomparable(different)
    pairing = pair_runs(base, candidate)
    deltas = pairing.candidate_means - pairing.base_means
    bounds = score_range([*base.samples, *candidate.samples])
    scale = bounds[1] - bounds[0]
    delta = difference(pairing.base_means, pairing.candidate_means, options, scale=scale)
    test = significance(pairing, deltas, options)
    p_drop = significance(pairing, deltas, options, "less").p_value
    p_rise = significance(pairing, deltas, options, "greater").p_value
    spread = float(np.std(deltas, ddof=1)) if len(deltas) > 1 else 0.0
    effect = options.max_drop or FALLBACK_EFFECT * scale
    verdict = decide(
        Evidence(
            delta=delta,
            p_drop=p_drop,
            p_rise=p_rise,
            max_drop=options.max_drop,
            coverage_share=pairing.coverage.share,
            min_coverage=options.min_coverage,
            more_problems=_more_problems(spread, len(deltas), effect, options),
            wanted_effect=effect,
            scale=scale,
        )
    )
    return Comparison(
        benchmark=base.name,
        base=_side(base, pairing.base_means, pairing.base_tally, bounds, options),
        candidate=_side(candidate, pairing.candidate_means, pairing.candidate_tally, bounds, options),
        verdict=verdict,
        delta=delta,
        unpaired_delta=unpaired(pairing.base_means, pairing.candidate_means, options),
        test=test,
        p_drop=p_drop,
        effect_size=_effect(pairing, deltas, options),
        minimum_detectable_effect=detectable(spread, len(deltas), options) if spread > 0 else None,
        problems=len(deltas),
        pairs=pairing.coverage.pairs,
        improved=int(np.sum(deltas > 0)),
        regressed=int(np.sum(deltas < 0)),
        unchanged=int(np.sum(deltas == 0)),
        coverage=pairing.coverage,
        categories=_categories(pairing, options, scale),
        items=pairing.problems,
        flips=_flips(pairing, base.samples, candidate.samples),
        caveats=_caveats(base, candidate, different, pairing),
        max_drop=options.max_drop,
    )


def difference(
    base: FloatArray, candidate: FloatArray, options: Options, *, scale: float | None = None
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
        scale=scale if scale is not None else seen_scale(base, candidate),
    )


def unpaired(base: FloatArray, candidate: FloatArray, options: Options) -> Interval:
    """The difference of two independent means (Welch): what an analysis without pairing would report."""
    value = float(np.mean(candidate) - np.mean(base))
    if len(base) < 2:
        error = 0.0
    else:
        error = float(np.sqrt(np.var(base, ddof=1) / len(base) + np.var(candidate, ddof=1) / len(candidate)))
    half = _normal_quantile(0.5 + options.confidence_level / 2) * error
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
    pairing: Pairing, deltas: FloatArray, options: Options, alternative: Alternative = "two-sided"
) -> TestResult:
    """Exact McNemar for one yes-or-no answer per problem; otherwise a sign-flip test that keeps problems whole."""
    if pairing.binary and pairing.single:
        exact = mcnemar(int(np.sum(deltas < 0)), int(np.sum(deltas > 0)), alternative=alternative)
        return replace(exact, method="exact McNemar")
    flips = permutation_test(deltas, seed=options.seed, alternative=alternative)
    return replace(flips, method=f"sign flips of whole problems ({flips.method})")


def _side(
    run: RunResults, means: FloatArray, tally: Tally, bounds: tuple[float, float], options: Options
) -> Side:
    mean = metrics.mean_interval(
        means, confidence_level=options.confidence_level, seed=options.seed, bounds=bounds
    )
    return Side(name=str(run.path), mean=mean, tally=tally)


def _effect(pairing: Pairing, deltas: FloatArray, options: Options) -> Interval | None:
    if len(deltas) < 2 or float(np.ptp(deltas)) < 1e-9:
        return None
    return cohens_d_paired(
        pairing.base_means, pairing.candidate_means, confidence_level=options.confidence_level
    )


def detectable(spread: float, n: int, options: Options) -> float:
    """The smallest drop that the one-sided test shows with 80 % power."""
    return minimum_detectable_effect(spread, n, alpha=1 - options.confidence_level, alternative="greater")


def _more_problems(spread: float, n: int, effect: float, options: Options) -> int | None:
    if spread == 0.0 or effect < SMALLEST_EFFECT * spread:
        return None
    needed = required_n(effect, spread, alpha=1 - options.confidence_level, alternative="greater")
    return max(0, needed - n)


def _categories(pairing: Pairing, options: Options, scale: float) -> list[CategoryComparison]:
    groups: dict[str, list[Problem]] = {}
    for problem in pairing.problems:
        if problem.category is not None:
            groups.setdefault(problem.category, []).append(problem)
    if len(groups) < 2:
        return []
    found = []
    for name, problems in sorted(groups.items()):
        base = np.array([problem.base for problem in problems])
        candidate = np.array([problem.candidate for problem in problems])
        part = Pairing(
            problems=problems,
            coverage=pairing.coverage,
            base_tally=pairing.base_tally,
            candidate_tally=pairing.candidate_tally,
            binary=pairing.binary,
        )
        delta = difference(base, candidate, options, scale=scale) if len(problems) > 1 else None
        found.append((name, base, candidate, delta, significance(part, candidate - base, options).p_value))
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
    mine, theirs = _first_answers(base, wanted), _first_answers(candidate, wanted)
    flips = [
        Flip(
            problem_idx=problem.problem_idx,
            category=problem.category,
            base=problem.base,
            candidate=problem.candidate,
            expected=mine[problem.problem_idx].expected_answer,
            base_response=_answer(mine[problem.problem_idx]),
            candidate_response=_answer(theirs[problem.problem_idx]),
        )
        for problem in changed
    ]
    return sorted(flips, key=lambda flip: (flip.candidate - flip.base, flip.problem_idx))


def _first_answers(samples: Sequence[SampleResult], wanted: set[int]) -> dict[int, SampleResult]:
    first: dict[int, SampleResult] = {}
    for sample in samples:
        if sample.problem_idx in wanted and sample.reward is not None:
            known = first.get(sample.problem_idx)
            if known is None or sample.repeat < known.repeat:
                first[sample.problem_idx] = sample
    return first


def _answer(sample: SampleResult) -> str:
    if sample.model_response is not None:
        return sample.model_response
    return "" if sample.extracted_answer is None else str(sample.extracted_answer)


def _caveats(base: RunResults, candidate: RunResults, different: list[str], pairing: Pairing) -> list[str]:
    found = [f"compared by force although this differs: {words}" for words in different]
    found += unknowns(base, candidate)
    if pairing.coverage.missing:
        found.append(
            f"{len(pairing.coverage.missing):,} of {pairing.coverage.possible:,} pairs are missing; the delta could be "
            f"{pairing.coverage.worst_delta:+.4f} to {pairing.coverage.best_delta:+.4f} if they all went one way"
        )
    if len(pairing.problems) < 30:
        found.append(f"only {len(pairing.problems)} problems: intervals and tests are rough")
    return found


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
