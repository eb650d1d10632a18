"""Scores."""

from typing import Literal

from msgspec import Raw, Struct

TargetType = Literal["run", "span"]
Source = Literal["rule", "judge", "human", "custom"]


class Score(Struct, frozen=True, kw_only=True):
    """A measurement of a run or a span; never changes."""

    id: str
    """Made by the server."""
    target_id: str
    """What was measured."""
    target_type: TargetType
    """`run` or `span`."""
    scorer_name: str
    """Who or what measured."""
    value: float | str
    """A number from 0 to 1, or a label."""
    rationale: str | None
    """Why."""
    config: Raw | None
    """The scorer's parameters."""
    metadata: Raw | None
    """Whatever else was given."""
    source: Source
    """`rule` and `judge` were computed by the service; `human` and `custom` came with the request."""
    created_at: str
    """When it was stored."""
    canonical_name: str | None
    """The scorer that the service ran, by its one name; null for a submitted value, and for old scores."""
    scorer_version: str | None
    """Its version."""
    scorer_options: Raw | None
    """The options it ran with, defaults included."""


class ListedScore(Score, frozen=True, kw_only=True, omit_defaults=True):
    """A score in a list. A project's list says where the target belongs."""

    experiment_id: str | None = None
    """A run's experiment; only in a project's list."""
    dataset_item_id: str | None = None
    """A run's item; only in a project's list."""
    trace_id: str | None = None
    """A span's trace; only in a project's list."""


class ScoreHour(Struct, frozen=True, kw_only=True):
    """The scores of one scorer in one hour."""

    hour: str
    """When the hour began."""
    score_count: int
    """How many numbers."""
    mean: float | None
    """Their mean; null without numbers."""
    std: float | None
    """Their standard deviation; null below two."""
    min: float | None
    """The least number."""
    max: float | None
    """The greatest number."""
    label_count: int
    """How many labels."""


class ScorerHistory(Struct, frozen=True, kw_only=True):
    """One scorer over time."""

    scorer_name: str
    """The scorer."""
    hours: list[ScoreHour]
    """Oldest first; an hour without scores is absent."""


class ScoreHistory(Struct, frozen=True, kw_only=True):
    """A project's scores over time."""

    project_id: str
    """The project."""
    scorers: list[ScorerHistory]
    """By name."""


class NotScored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer when there is no score: nothing to measure, or, with `error`, a scorer that failed."""

    score: None
    """Always null."""
    reason: str
    """Machine-readable: `no_expected_output`, `no_response`, `out_of_range`, `scorer_timeout`, ..."""
    error: str | None = None
    """Only when the scorer failed: what failed. A sample that there is nothing to measure of is no error."""
    message: str | None = None
    """The same for people."""


class SkippedScore(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A score of a batch that does not exist."""

    index: int
    """Its place in the batch, from 0."""
    reason: str
    """As in `NotScored`."""
    error: str | None = None
    """As in `NotScored`."""
    message: str | None = None
    """The same for people."""


class ScoreJob(Struct, frozen=True, kw_only=True):
    """A score of a batch that a job computes."""

    index: int
    """Which of the batch."""
    job_id: str
    """Ask `GET /v1/jobs/{job_id}` how far it is."""


class SkippedInlineScore(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A score of a run or a span that does not exist."""

    index: int
    """The place of its run or span in the request, from 0."""
    score_index: int
    """Its place among the scores of that run or span, from 0."""
    scorer_name: str
    """As the request named it."""
    reason: str
    """As in `NotScored`."""
    error: str | None = None
    """As in `NotScored`."""
    message: str | None = None
    """The same for people."""


class InlineScoreJob(Struct, frozen=True, kw_only=True):
    """A score of a run or a span that a job computes."""

    index: int
    """The place of its run or span in the request, from 0."""
    score_index: int
    """Its place among the scores of that run or span, from 0."""
    job_id: str
    """Ask `GET /v1/jobs/{job_id}` how far it is."""


class BatchReport(Struct, frozen=True, kw_only=True):
    """What a batch of scores did."""

    accepted: int
    """How many were stored."""
    score_ids: list[str | None]
    """One for each score of the batch, in order; null where there is none, or none yet."""
    skipped: list[SkippedScore]
    """Which do not exist, and why."""
    jobs: list[ScoreJob]
    """Which a job computes."""
