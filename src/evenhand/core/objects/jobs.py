"""Scores that the service computes outside of a request, and the rules that ask for them."""

from typing import Literal

from msgspec import Raw, Struct

JobStatus = Literal["pending", "running", "completed", "failed"]


class Job(Struct, frozen=True, kw_only=True):
    """A score that the service computes outside of a request."""

    job_id: str
    """Made by the server."""
    status: JobStatus
    """`pending`, `running`, `completed` (there is a score) or `failed` (there is none, and `error` says why)."""
    target_id: str
    """What is scored."""
    target_type: str
    """`run` or `span`."""
    scorer_name: str
    """The scorer."""
    config: Raw
    """Its parameters."""
    rule_id: str | None
    """The online rule that asked for it; null when a person did."""
    attempts: int
    """How often it was tried."""
    outcome: Literal["scored", "unscored", "failed"] | None
    """What it came to once it has ended: a score, nothing to measure, or a failure. Null before, and for old jobs."""
    error: str | None
    """Machine-readable: why there is no score."""
    message: str | None
    """The same for people."""
    reply: str | None
    """The model's raw reply, where there was one."""
    score_id: str | None
    """The score."""
    created_at: str
    """When it was asked for."""
    updated_at: str
    """When its state last changed."""


class JobAccepted(Struct, frozen=True, kw_only=True):
    """The score will be computed."""

    job_id: str
    """Ask `GET /v1/jobs/{job_id}` how far it is."""
    status: JobStatus
    """`pending`, unless it was waited for."""


class RuleFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans a rule is for; every field that is given must match."""

    name: str | None = None
    """The span's name."""
    model: str | None = None
    """The span's model."""
    has_error: bool | None = None
    """Whether the span failed."""
    is_root: bool | None = None
    """Whether the span is the root of its trace."""
    min_duration_ms: float | None = None
    """The span took at least this long."""
    metadata: dict[str, str | int | float | bool | None] = {}
    """Entries of the span's metadata."""


class Rule(Struct, frozen=True, kw_only=True):
    """Spans that match on ingest are scored, without slowing the ingest."""

    id: str
    """Made by the server."""
    project_id: str
    """The project whose spans it scores."""
    name: str
    """Unique in its project."""
    filter: RuleFilter
    """Which spans."""
    sample_rate: float
    """The share of traces, from 0 to 1; whether a trace is in depends on its id alone."""
    scorer_name: str
    """The scorer."""
    config: Raw
    """Its parameters."""
    created_at: str
    """When it was made."""
    paused: bool
    """Whether it rests: new spans are not scored."""
    updated_at: str
    """When it was last changed."""


BackfillStatus = Literal["running", "completed", "cancelled"]


class Backfill(Struct, frozen=True, kw_only=True):
    """A rule applied to spans that are stored already. It goes on after a restart, and no span gets two scores."""

    id: str
    """Made by the server."""
    project_id: str
    """The rule's project."""
    rule_id: str
    """The rule."""
    status: BackfillStatus
    """`running`, `completed` or `cancelled`."""
    trace_count: int
    """Traces looked at so far, oldest first."""
    job_count: int
    """Jobs made so far, one for each span that matches and that the rule has not scored."""
    created_at: str
    """When it was asked for."""
    updated_at: str
    """When it last got on."""


class JobsRetried(Struct, frozen=True, kw_only=True):
    """Failed jobs that will be tried again."""

    retried_count: int
    """How many."""
    more: bool
    """Whether there are more: a call takes 1,000 of them."""
