"""Experiments, their runs, and what is said about them as a whole."""

from typing import Literal

from msgspec import Raw, Struct

from evenhand.core.objects.scores import Score

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


class Run(Struct, frozen=True, kw_only=True):
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


class RunsAccepted(Struct, frozen=True, kw_only=True):
    """What a submission of runs did."""

    accepted: int
    """How many were stored: all of them."""
    run_ids: list[str]
    """In the order of the request."""


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
    """The least true difference that this many pairs show with a power of 0.8; null where all pairs differ alike."""


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


class ExperimentComparison(Struct, frozen=True, kw_only=True):
    """Two experiments on one dataset."""

    base_experiment_id: str
    """What is compared with."""
    compare_experiment_id: str
    """What is compared."""
    scorer_comparisons: list[ScorerComparison]
    """By the scorer's name."""
    per_item_results: list[ItemComparison]
    """By scorer, then by item."""


class ThresholdResult(Struct, frozen=True, kw_only=True):
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
