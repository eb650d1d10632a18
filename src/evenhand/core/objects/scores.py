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
    """`rule` and `judge` were worked out by the service; `human` and `custom` came with the request."""
    created_at: str
    """When it was stored."""


class NotScored(Struct, frozen=True, kw_only=True):
    """The answer when a rule has nothing to compare with: no score, and no error either."""

    score: None
    """Always null."""
    reason: str
    """Machine-readable: `no_expected_output`, `no_output`, `scorer_timeout`, ..."""


class SkippedScore(Struct, frozen=True, kw_only=True):
    """A score of a batch that could not be worked out."""

    index: int
    """Its place in the batch, from 0."""
    reason: str
    """As in `NotScored`."""


class ScoreJob(Struct, frozen=True, kw_only=True):
    """A score of a batch that a judge works out."""

    index: int
    """Which of the batch."""
    job_id: str
    """Ask `GET /v1/jobs/{job_id}` how far it is."""


class BatchReport(Struct, frozen=True, kw_only=True):
    """What a batch of scores did."""

    accepted: int
    """How many were stored."""
    score_ids: list[str | None]
    """One for each score of the batch, in order; null where there is none, or none yet."""
    skipped: list[SkippedScore]
    """Which were not worked out, and why."""
    jobs: list[ScoreJob]
    """Which a judge works out."""
