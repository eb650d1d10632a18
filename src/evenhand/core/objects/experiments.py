"""Experiments, their runs, and what is said about them as a whole."""

from typing import Literal

from msgspec import Raw, Struct, field

from evenhand.core.objects.scores import InlineScoreJob, Score, SkippedInlineScore

Status = Literal["created", "running", "completed"]


class Experiment(Struct, frozen=True, kw_only=True):
    """One application, tried on one dataset."""

    id: str
    """Made by the server."""
    project_id: str
    """The project that it belongs to."""
    name: str
    """For people."""
    dataset_id: str
    """The dataset whose items are run."""
    dataset_version: int
    """The dataset's version when the experiment was made."""
    status: Status
    """`created`, then `running`, then `completed`."""
    auto_complete: bool
    """Whether it completes by itself once every item of the dataset has a run."""
    metadata: Raw | None
    """Whatever the client noted."""
    run_count: int
    """How many runs it has."""
    created_at: str
    """When it was made."""
    completed_at: str | None
    """When it was completed."""


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output for one item."""

    id: str
    """Made by the server."""
    experiment_id: str
    """The experiment that it belongs to."""
    dataset_item_id: str
    """The item that was run."""
    repeat: int
    """Which repetition of the item, from 0."""
    output: Raw
    """Any JSON but null."""
    trace_id: str | None
    """The trace of how it came about."""
    scores: list[Score]
    """Its scores, oldest first."""
    created_at: str
    """When it was stored."""
    scores_left_out: int = 0
    """How many scores there are beside these, because they are too many for one answer: `GET /v1/scores` lists all.
    Absent when there are none."""


class ItemRun(Run, frozen=True, kw_only=True, omit_defaults=True):
    """A run in the history of its item."""

    experiment_name: str
    """The experiment's name."""
    experiment_status: Status
    """How far the experiment is."""
    dataset_version: int
    """The dataset's version when the experiment was made."""


class RunsAccepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a submission of runs did."""

    accepted: int
    """How many were stored: all of them."""
    run_ids: list[str]
    """In the order of the request."""
    skipped: list[SkippedInlineScore] = field(default_factory=list)
    """The inline scores that do not exist, and why; absent when there are none."""
    jobs: list[InlineScoreJob] = field(default_factory=list)
    """The inline scores that jobs compute; absent when there are none."""


class ScorerVersion(Struct, frozen=True, kw_only=True):
    """The scores of one version of what computed them."""

    canonical_name: str | None
    """The scorer by its one name; null for submitted values and old scores, whose version is unknown."""
    version: str | None
    """Its version."""
    score_count: int
    """How many scores."""
    mean: float | None
    """Of their numbers; null for labels."""
    options: Raw | None
    """The options of one of them."""
    options_differ: bool
    """Whether others had other options."""


class ScorerSummary(Struct, frozen=True, kw_only=True):
    """All scores of one scorer in an experiment."""

    scorer_name: str
    """Who or what measured."""
    scored_run_count: int
    """How many runs have at least one of them."""
    score_count: int
    """How many there are."""
    mean: float | None
    """Of the numbers; null for labels."""
    min: float | None
    """The least number."""
    max: float | None
    """The greatest number."""
    distribution: dict[str, int] | None
    """How often each label was given; null for numbers."""
    std: float | None
    """The numbers' standard deviation; null below two."""
    ci_lower: float | None
    """The lower end of the mean's interval, at least 0."""
    ci_upper: float | None
    """The upper end of the mean's interval, at most 1."""
    confidence_level: float | None
    """How often such an interval covers the truth."""
    ci_method: str | None
    """How the interval was made; items with several scores count as clusters."""
    pass_at_k: dict[str, float] | None
    """With repeats of zeros and ones: the chance that one of k tries passes, by k."""
    pass_hat_k: dict[str, float] | None
    """The chance that all of k tries pass, by k."""
    versions: list[ScorerVersion]
    """What computed them; empty when all were submitted."""
    mixed_versions: bool
    """Whether they come from several versions of a scorer, or from a known and an unknown one."""
    mixed: str | None
    """Why the numbers above are about no single measure: several versions of a scorer, several options, or values of unknown
    version beside computed ones; null when they are."""


class ExperimentSummary(Struct, frozen=True, kw_only=True):
    """An experiment in numbers. It costs the same at a thousand scores and at ten million."""

    experiment_id: str
    """The experiment."""
    status: Status
    """As the experiment's."""
    run_count: int
    """How many runs it has."""
    dataset_item_count: int
    """How many items the dataset has; 0 once it is deleted."""
    scores_by_scorer: dict[str, ScorerSummary]
    """By the scorer's name."""
    threshold_result: None = None
    """Always null: thresholds are asked for one by one."""


ComparisonVerdict = Literal["PASS", "WARN", "BLOCK", "INCONCLUSIVE", "NOT_COMPARABLE"]


class MissingRun(Struct, frozen=True, kw_only=True):
    """An item and repeat that is not scored in both experiments."""

    dataset_item_id: str
    """The item."""
    repeat: int
    """Which repetition."""
    base: str
    """`scored`, `unscored` (a run without a number of this scorer) or `absent` (no run)."""
    compare: str
    """The same in the other experiment."""


class ComparisonCoverage(Struct, frozen=True, kw_only=True):
    """How much was compared, and how far the rest could move the difference."""

    pairs: int
    """Items and repeats with a number in both experiments."""
    possible: int
    """Those that should have one: every item of the dataset, in the repeats that both experiments have."""
    base_scored: int
    """How many of these the base has scored."""
    compare_scored: int
    """How many the other has scored."""
    base_share: float
    """The part that the base has scored."""
    compare_share: float
    """The part that the other has scored."""
    worst_delta: float
    """The difference if every missing score went against the compared experiment."""
    best_delta: float
    """The difference if every missing score went for it."""
    worst_lower: float | None
    """The lower end of the worst case's interval."""
    best_upper: float | None
    """The upper end of the best case's interval."""
    missing: list[MissingRun]
    """What is not compared; empty with `per_item=false`."""


class CategoryDelta(Struct, frozen=True, kw_only=True):
    """The items of one category, which their metadata name."""

    category: str
    """Its name."""
    item_count: int
    """How many paired items it has."""
    base_mean: float
    """The base's mean over them."""
    compare_mean: float
    """The other's."""
    delta: float
    """The mean difference."""
    ci_lower: float | None
    """The lower end of its interval; null for a single item, which has no spread."""
    ci_upper: float | None
    """The upper end of its interval."""
    p_value: float
    """Of the test within the category."""
    p_adjusted: float
    """The same after Holm's correction over the categories."""


class ScorerComparison(Struct, frozen=True, kw_only=True):
    """One scorer in two experiments, item by item."""

    scorer_name: str
    """Who or what measured."""
    base_mean: float | None
    """Over all scores of the base; null for labels."""
    compare_mean: float | None
    """Over all scores of the other."""
    delta: float | None
    """`compare_mean` minus `base_mean`."""
    improved_count: int
    """Items whose score rose."""
    regressed_count: int
    """Items whose score fell."""
    unchanged_count: int
    """Items whose score stayed; for labels, items with the same label."""
    only_in_base: int
    """Items without a score in the other."""
    only_in_compare: int
    """Items without a score in the base."""
    paired_count: int
    """Items with a number in both: what the statistics below are of."""
    paired_delta: float | None
    """The mean difference over the paired items."""
    ci_lower: float | None
    """The lower end of its interval."""
    ci_upper: float | None
    """The upper end of its interval."""
    confidence_level: float | None
    """How often such an interval covers the truth."""
    p_value: float | None
    """How likely such a difference is when there is none."""
    test: str | None
    """The test behind `p_value`."""
    minimum_detectable_effect: float | None
    """The least true difference that this many pairs show with a power of 0.8; null where no drop can be: all
    pairs differ alike, or fewer than five differ at all."""
    not_comparable: str | None
    """Why the two sides are no measure of the same (other versions of the scorer): the statistics are then null."""
    verdict: ComparisonVerdict | None
    """What `evenhand compare` says about the same data; null for labels, which have no mean."""
    verdict_corrected: ComparisonVerdict | None
    """The same after a correction over the scorers of this comparison; the verdict over all is the worst of these."""
    sentence: str
    """The verdict in one sentence."""
    reasons: list[str]
    """The facts that it rests on."""
    next_step: str
    """What to do now."""
    caveats: list[str]
    """What the reader must know to trust the rest."""
    p_drop: float | None
    """One-sided: of data like these if the compared experiment were not worse. The verdict rests on it."""
    p_adjusted: float | None
    """`p_value` after Holm's correction over the scorers of this comparison."""
    p_drop_adjusted: float | None
    """`p_drop` after the same correction; the verdict over all scorers rests on it."""
    effect_size: float | None
    """Cohen's d of the paired differences; null where they do not vary."""
    coverage: ComparisonCoverage | None
    """How much was compared, and the worst and best case of the rest."""
    categories: list[CategoryDelta]
    """By category, when the paired items have more than one."""


class ItemComparison(Struct, frozen=True, kw_only=True):
    """One item, scored by one scorer in two experiments."""

    dataset_item_id: str
    """The item."""
    scorer_name: str
    """Who or what measured."""
    base_score: float | str | None
    """The mean of the item's numbers, or its newest label; null when there is none."""
    compare_score: float | str | None
    """The same in the other experiment."""
    delta: float | None
    """The difference of two numbers."""
    category: str | None
    """From the item's metadata."""
    paired_repeats: int
    """How many repeats have a number in both experiments."""
    base_run_ids: list[str]
    """The item's runs in the base, by repeat."""
    compare_run_ids: list[str]
    """The item's runs in the other experiment, by repeat."""


class ExperimentComparison(Struct, frozen=True, kw_only=True):
    """Two experiments on one dataset."""

    base_experiment_id: str
    """What is compared with."""
    compare_experiment_id: str
    """What is compared."""
    verdict: ComparisonVerdict
    """Over all scorers: the worst of their verdicts that stand after the correction."""
    sentence: str
    """The verdict in one sentence."""
    max_drop: float
    """The drop that was tolerated."""
    min_coverage: float
    """The part that each side must have scored."""
    scorer_comparisons: list[ScorerComparison]
    """By the scorer's name."""
    per_item_results: list[ItemComparison]
    """By scorer, then by item."""


class ThresholdResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a scorer's number reaches a threshold."""

    passed: bool
    """False too when nothing was scored."""
    actual_value: float | None
    """Null when nothing was scored."""
    threshold: float
    """As it was asked for."""
    scorer_name: str
    """As it was asked for."""
    metric: str
    """As it was asked for."""
    gap: float | None
    """`actual_value` minus `threshold`."""
    caveats: list[str] = []
    """What makes the scores no single measure: several options, or what `force` has overridden; absent when nothing does."""
