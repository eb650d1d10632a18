"""Two experiments on one dataset. The contract's means and counts are exact; all else is what `compare` says."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from evenhand.compare.comparison import CategoryComparison, Comparison, Options
from evenhand.compare.coverage import Coverage, Key
from evenhand.compare.scorers import ScorerVerdict, Sides, compare_scorers, overall
from evenhand.core import jsontext
from evenhand.core.errors import InputError, Refusal
from evenhand.core.objects.experiments import (
    CategoryDelta,
    ComparisonCoverage,
    ExperimentComparison,
    ItemComparison,
    MissingRun,
    ScorerComparison,
)
from evenhand.metrics.exact import exact_mean
from evenhand.results import BenchmarkSummary, Bundle, RunResults, SampleResult
from evenhand.server.api.summaries import exact_mean_of
from evenhand.store.comparing import RunScores, ScoredRuns, StoredItem, read_items, read_scored_runs
from evenhand.store.connection import Connection
from evenhand.store.experiments import get_experiment
from evenhand.store.projects import Scope
from evenhand.store.totals import ItemTotals, ScorerTotals, item_totals, scorer_totals
from evenhand.store.versions import Versions, versions_by_scorer, why_mixed

NUMBERS = (
    "paired_delta",
    "ci_lower",
    "ci_upper",
    "confidence_level",
    "p_value",
    "test",
    "minimum_detectable_effect",
    "p_drop",
    "effect_size",
    "coverage",
)
"""What is null where there is nothing to compare."""

SCORED_BY = ("scorer", "judge")
"""The digests that are about scores, not about answers."""

Items = dict[str, dict[str, ItemTotals]]


class ScoredBy(Struct, frozen=True, kw_only=True):
    """What made the scores of one name in one experiment."""

    version: str | None = None
    """The scorer by its one name, and its version; None for submitted values and those of older releases."""
    options: str = ""
    """The options of a computed score, as JSON text."""
    mixed: str | None = None
    """Why the scores are no single measure; None when they are."""


class Recorded(Struct, frozen=True, kw_only=True):
    """What `evenhand eval record` notes in an experiment's metadata about the run that it sends."""

    run_id: str
    """The run."""
    benchmark: str
    """Its benchmark."""
    hashes: dict[str, str]
    """Digests of what must be equal for two runs to be comparable."""
    scorer: str
    """The name under which its scores were sent."""
    repeats: int
    """How many answers each problem should have."""


class Side(Struct, frozen=True, kw_only=True):
    """What is kept about one of the experiments."""

    experiment_id: str
    """Which."""
    dataset_version: int
    """The dataset's version when it was made."""
    recorded: Recorded | None
    """The run that it was recorded from, if it was."""
    totals: dict[str, ScorerTotals]
    """By scorer."""
    items: Items
    """By scorer, then by item."""
    scored_by: dict[str, ScoredBy]
    """By scorer: what made its scores."""
    stored: ScoredRuns
    """Every run with its scores."""

    def run_ids(self) -> dict[str, list[str]]:
        """By item, in the order of repeats."""
        found: dict[str, list[str]] = {}
        for run in self.stored.runs:
            found.setdefault(run.item_id, []).append(run.id)
        return found


class Compared(Struct, frozen=True, kw_only=True):
    """Both experiments and the dataset they share."""

    base: Side
    """What is compared with."""
    other: Side
    """What is compared."""
    items: list[StoredItem]
    """The dataset's items."""


def read_sides(
    connection: Connection, base_id: str, other_id: str, scorer_name: str | None, *, scope: Scope
) -> Compared:
    """Everything that a comparison needs; `INCOMPATIBLE_EXPERIMENTS` for two datasets."""
    base = get_experiment(connection, base_id, scope=scope)
    other = get_experiment(connection, other_id, scope=scope)
    if base.dataset_id != other.dataset_id:
        raise Refusal(
            "INCOMPATIBLE_EXPERIMENTS",
            "The experiments are on different datasets.",
            {"dataset_ids": [base.dataset_id, other.dataset_id]},
        )
    names = None if scorer_name is None else [scorer_name]
    sides = []
    for experiment in (base, other):
        totals = {
            name: found for (_, name), found in scorer_totals(connection, [experiment.id], names).items()
        }
        versions = versions_by_scorer(connection, experiment.id, names)
        sides.append(
            Side(
                experiment_id=experiment.id,
                dataset_version=experiment.dataset_version,
                recorded=_recorded(experiment.metadata),
                totals=totals,
                items=item_totals(connection, experiment.id, scorer_name),
                scored_by={name: _scored_by(found, versions.get(name, {})) for name, found in totals.items()},
                stored=read_scored_runs(connection, experiment.id, scorer_name),
            )
        )
    return Compared(base=sides[0], other=sides[1], items=read_items(connection, base.dataset_id))


def compare(given: Compared, options: Options, *, per_item: bool) -> ExperimentComparison:
    """The comparison of every scorer that either experiment has."""
    base, other = given.base, given.other
    places = _places(given)
    categories = {item.id: item.category for item in given.items}
    names = sorted({*base.totals, *other.totals})
    verdicts = compare_scorers(
        {name: _sides(name, given, places, categories) for name in names},
        options,
        expected=_expected(given, places),
    )
    item_ids = {place: item_id for item_id, place in places.items()}
    comparisons = [_scorer(name, given, verdicts[name], item_ids, per_item=per_item) for name in names]
    results: list[ItemComparison] = []
    if per_item:
        runs = base.run_ids(), other.run_ids()
        for name in names:
            results += _item_results(name, given, verdicts[name], places, categories, runs)
    whole = overall(verdicts)
    return ExperimentComparison(
        base_experiment_id=base.experiment_id,
        compare_experiment_id=other.experiment_id,
        verdict=whole.name,
        sentence=whole.sentence,
        max_drop=options.max_drop,
        min_coverage=options.min_coverage,
        scorer_comparisons=comparisons,
        per_item_results=results,
    )


def _places(given: Compared) -> dict[str, int]:
    """Items by number, in the order in which they were added; resampling depends on the order."""
    seen = {item.id for item in given.items}
    seen |= {run.item_id for side in (given.base, given.other) for run in side.stored.runs}
    return {item_id: place for place, item_id in enumerate(sorted(seen))}


def _expected(given: Compared, places: dict[str, int]) -> list[Key]:
    """What neither experiment may leave out silently: the items that were in the dataset when both were made.

    Recorded runs say how many repeats there should be. Of others only an item without any run is known to be missing.
    """
    sides = given.base, given.other
    repeats = [{run.repeat for run in side.stored.runs} for side in sides]
    shared = sorted(repeats[0] & repeats[1])
    if not shared:
        return []
    version = min(side.dataset_version for side in sides)
    there = [places[item.id] for item in given.items if item.in_version(version)]
    if given.base.recorded is not None and given.other.recorded is not None:
        asked = min(given.base.recorded.repeats, given.other.recorded.repeats)
        return [(place, repeat) for place in there for repeat in shared if repeat < asked]
    run = {places[run.item_id] for side in sides for run in side.stored.runs}
    return [(place, shared[0]) for place in there if place not in run]


def _recorded(metadata: Raw | None) -> Recorded | None:
    """Metadata are the client's own: what does not look like a recorded run is none."""
    if metadata is None:
        return None
    try:
        return jsontext.decode(bytes(metadata), type=Recorded)
    except InputError:
        return None


def _sides(name: str, given: Compared, places: dict[str, int], categories: dict[str, str | None]) -> Sides:
    numbers = sum(side.totals.get(name, ScorerTotals()).score_count for side in (given.base, given.other))
    return Sides(
        base=_results(name, given.base, places, categories),
        candidate=_results(name, given.other, places, categories),
        labels_only=not numbers,
        not_comparable=not_comparable(given.base.scored_by.get(name), given.other.scored_by.get(name)),
    )


def _scored_by(totals: ScorerTotals, versions: Versions) -> ScoredBy:
    mixed = why_mixed(totals, versions)
    for key, kept in versions.items():
        return ScoredBy(version=key.shown, options=kept.options, mixed=mixed)
    return ScoredBy(mixed=mixed)


def not_comparable(base: ScoredBy | None, other: ScoredBy | None) -> str | None:
    """Why scores made by these are no measure of the same; None when they are, or one side has no scores.

    Scores that were submitted on both sides are comparable as far as anybody knows. Computed scores and scores of unknown
    version are not: their name alone does not make them one measure.
    """
    for side, made in (("base", base), ("compared", other)):
        if made is not None and made.mixed is not None:
            return f"the {side} experiment mixes {made.mixed}"
    if base is None or other is None:
        return None
    if base.version != other.version:
        first, second = base.version or "an unknown version", other.version or "an unknown version"
        return f"the base was scored by {first}, the compared experiment by {second}"
    if base.options != other.options:
        return f"{base.version} had the options {base.options} in the base, {other.options} in the compared experiment"
    return None


def _results(name: str, side: Side, places: dict[str, int], categories: dict[str, str | None]) -> RunResults:
    """An experiment as `compare` reads a run from disk: a sample for every run, scored or not."""
    scores = side.stored.scores.get(name, {})
    samples = []
    for run in side.stored.runs:
        reward = _reward(scores.get(run.id))
        category = categories.get(run.item_id)
        samples.append(
            SampleResult(
                problem_idx=places[run.item_id],
                repeat=run.repeat,
                reward=reward,
                status="unscored" if reward is None else "scored",
                metadata={} if category is None else {"category": category},
            )
        )
    bundle = Bundle(benchmark=BenchmarkSummary(name=name), hashes=_hashes(name, side.recorded))
    return RunResults(path=Path(side.experiment_id), name=name, bundle=bundle, samples=samples)


def _hashes(name: str, recorded: Recorded | None) -> dict[str, str]:
    """What the run was made of. Its scorer and judge are those of its own scores, not of scores added later."""
    if recorded is None:
        return {"dataset": "one and the same"}
    own = name == recorded.scorer
    return {aspect: value for aspect, value in recorded.hashes.items() if own or aspect not in SCORED_BY}


def _reward(found: RunScores | None) -> float | None:
    """A run's score: the mean of its numbers, where there are several."""
    if found is None or not found.numbers:
        return None
    return found.numbers[0] if len(found.numbers) == 1 else float(exact_mean(found.numbers))


def item_score(item: ItemTotals | None) -> Fraction | str | None:
    """The exact mean of an item's numbers, or its newest label."""
    if item is None:
        return None
    return Fraction(item.total) / item.score_count if item.score_count else item.label


def _shown(score: Fraction | str | None) -> float | str | None:
    return float(score) if isinstance(score, Fraction) else score


def _item_results(
    name: str,
    given: Compared,
    verdict: ScorerVerdict,
    places: dict[str, int],
    categories: dict[str, str | None],
    runs: tuple[dict[str, list[str]], dict[str, list[str]]],
) -> Iterable[ItemComparison]:
    before, after = given.base.items.get(name, {}), given.other.items.get(name, {})
    pairs = {one.problem_idx: one.repeats for one in verdict.comparison.items} if verdict.comparison else {}
    for item_id in sorted({*before, *after}):
        base, other = item_score(before.get(item_id)), item_score(after.get(item_id))
        both = isinstance(base, Fraction) and isinstance(other, Fraction)
        yield ItemComparison(
            dataset_item_id=item_id,
            scorer_name=name,
            base_score=_shown(base),
            compare_score=_shown(other),
            delta=float(other - base) if both else None,  # type: ignore[operator]  # both are fractions
            category=categories.get(item_id),
            paired_repeats=pairs.get(places[item_id], 0),
            base_run_ids=runs[0].get(item_id, []),
            compare_run_ids=runs[1].get(item_id, []),
        )


def _scorer(
    name: str, given: Compared, verdict: ScorerVerdict, item_ids: dict[int, str], *, per_item: bool
) -> ScorerComparison:
    base, other = (side.totals.get(name, ScorerTotals()) for side in (given.base, given.other))
    before, after = given.base.items.get(name, {}), given.other.items.get(name, {})
    base_mean, other_mean = exact_mean_of(base), exact_mean_of(other)
    improved = regressed = unchanged = paired = 0
    for item_id in before.keys() & after.keys():
        first, second = item_score(before[item_id]), item_score(after[item_id])
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            paired += 1
            improved += second > first
            regressed += second < first
        unchanged += first == second
    found = verdict.comparison
    return ScorerComparison(
        scorer_name=name,
        base_mean=None if base_mean is None else float(base_mean),
        compare_mean=None if other_mean is None else float(other_mean),
        delta=None if base_mean is None or other_mean is None else float(other_mean - base_mean),
        improved_count=improved,
        regressed_count=regressed,
        unchanged_count=unchanged,
        only_in_base=len(before.keys() - after.keys()),
        only_in_compare=len(after.keys() - before.keys()),
        paired_count=paired if found is None else found.problems,
        not_comparable=verdict.reasons[0] if verdict.name == "NOT_COMPARABLE" else None,
        verdict=verdict.name,
        sentence=verdict.sentence,
        reasons=verdict.reasons,
        next_step=verdict.next_step,
        verdict_corrected=verdict.corrected,
        p_adjusted=verdict.p_adjusted,
        p_drop_adjusted=verdict.p_drop_adjusted,
        **_numbers(found, item_ids, per_item=per_item),
    )


def _numbers(found: Comparison | None, item_ids: dict[int, str], *, per_item: bool) -> dict[str, Any]:
    """What `evenhand compare --format json` says about the same data; null where there is nothing to say."""
    if found is None:
        return {**dict.fromkeys(NUMBERS), "caveats": [], "categories": []}
    return {
        "paired_delta": found.delta.value,
        "ci_lower": found.delta.ci_lower,
        "ci_upper": found.delta.ci_upper,
        "confidence_level": found.delta.confidence_level,
        "p_value": found.test.p_value,
        "test": found.test.method,
        "minimum_detectable_effect": found.minimum_detectable_effect,
        "p_drop": found.p_drop,
        "effect_size": None if found.effect_size is None else found.effect_size.value,
        "coverage": _coverage(found.coverage, item_ids, per_item=per_item),
        "caveats": found.caveats,
        "categories": [_category(one) for one in found.categories],
    }


def _coverage(found: Coverage, item_ids: dict[int, str], *, per_item: bool) -> ComparisonCoverage:
    return ComparisonCoverage(
        pairs=found.pairs,
        possible=found.possible,
        base_scored=found.base_scored,
        compare_scored=found.candidate_scored,
        base_share=found.base_share,
        compare_share=found.candidate_share,
        worst_delta=found.worst_delta,
        best_delta=found.best_delta,
        worst_lower=found.worst_lower,
        best_upper=found.best_upper,
        missing=[
            MissingRun(
                dataset_item_id=item_ids[one.problem_idx],
                repeat=one.repeat,
                base=one.base,
                compare=one.candidate,
            )
            for one in (found.missing if per_item else ())
        ],
    )


def _category(one: CategoryComparison) -> CategoryDelta:
    return CategoryDelta(
        category=one.category,
        item_count=one.problems,
        base_mean=one.base_mean,
        compare_mean=one.candidate_mean,
        delta=one.candidate_mean - one.base_mean if one.delta is None else one.delta.value,
        ci_lower=None if one.delta is None else one.delta.ci_lower,
        ci_upper=None if one.delta is None else one.delta.ci_upper,
        p_value=one.p_value,
        p_adjusted=one.p_adjusted,
    )
