"""`eval-*.json`: what a run was and what it came to."""

from typing import Any

from msgspec import Struct, field

from evenhand.core.outcome import Tally


class MetricValue(Struct, frozen=True, kw_only=True):
    """A metric with its uncertainty."""

    value: float | None
    """The estimate; null when nothing was scored."""
    ci_lower: float | None = None
    """The lower end of the interval."""
    ci_upper: float | None = None
    """The upper end of the interval."""
    method: str = ""
    """How the interval was made."""
    n: int | None = None
    """How many independent units (problems) it rests on."""


class CategorySummary(Struct, frozen=True, kw_only=True):
    """One category of a benchmark."""

    category: str
    """Its name."""
    mean_reward: float | None
    """The mean of the scored samples; null when there are none."""
    n_samples: int
    """How many samples were scored."""
    ci_lower: float | None = None
    """The lower end of the interval."""
    ci_upper: float | None = None
    """The upper end of the interval."""
    unscored: int = 0
    """How many samples had nothing to score."""
    failed: int = 0
    """How many samples could not be scored."""


class ScorerResult(Struct, frozen=True, kw_only=True):
    """The result of one scorer of a run that has several."""

    scores: dict[str, MetricValue] = field(default_factory=dict)
    """Metric name to value and interval."""
    categories: list[CategorySummary] = field(default_factory=list)
    """Per category."""
    tally: Tally | None = None
    """Scored, unscored and failed samples among those that the scorer was applied to."""
    labels: dict[str, int] = field(default_factory=dict)
    """How often each label was given, by a scorer that gives labels."""


class BenchmarkSummary(Struct, frozen=True, kw_only=True):
    """The result on one benchmark."""

    name: str
    """The benchmark's name."""
    samples: int = 0
    """Problems times repeats."""
    repeats: int = 1
    """Answers per problem."""
    scores: dict[str, MetricValue] = field(default_factory=dict)
    """Metric name to value and interval."""
    categories: list[CategorySummary] | dict[str, Any] = field(default_factory=list)
    """Per category; a mapping in files of other tools."""
    tally: Tally | None = None
    """Scored, unscored and failed samples; they add up to `samples`."""
    scorers: dict[str, ScorerResult] = field(default_factory=dict)
    """Every scorer's result by name, where a run has several or is one of a task; `scores` are those of the first."""


class Bundle(Struct, frozen=True, kw_only=True):
    """A finished run. Files of other tools may lack all but `benchmark`."""

    benchmark: BenchmarkSummary
    """What came out."""
    run_id: str = ""
    """Names the run."""
    schema_version: int = 0
    """The version of this layout; 0 in files of other tools."""
    created_at: str = ""
    """When the run finished."""
    config: dict[str, Any] = field(default_factory=dict)
    """Everything that was asked for; never a key or token."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Digests of what must be equal for two runs to be comparable: benchmark, dataset, prompt, scorer, judge, sampling."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of Evenhand, Python and the packages that matter."""
    environment: dict[str, Any] = field(default_factory=dict)
    """Where it ran."""
