"""Traces and their spans."""

from msgspec import Raw, Struct, field

from evenhand.core.objects.scores import InlineScoreJob, Score, SkippedInlineScore


class SpanError(Struct, frozen=True, kw_only=True):
    """Why an operation failed."""

    message: str
    """What happened."""
    type: str | None = None
    """The kind of exception."""
    stack: str | None = None
    """Where it happened."""


class Span(Struct, frozen=True, kw_only=True):
    """One timed operation of an application."""

    id: str
    """Chosen by the client; unique within its trace."""
    trace_id: str
    """The trace it belongs to."""
    parent_span_id: str | None
    """The span that caused it; null for the root."""
    name: str
    """What the operation is called."""
    start_time: str
    """When it started."""
    end_time: str | None
    """When it ended."""
    duration_ms: float | None
    """How long it took."""
    input: Raw | None
    """What went in: any JSON."""
    output: Raw | None
    """What came out: any JSON."""
    tokens_input: int | None
    """Tokens that the model read."""
    tokens_output: int | None
    """Tokens that the model wrote."""
    model: str | None
    """The model that was asked for."""
    metadata: Raw
    """A flat object."""
    error: SpanError | None
    """Why it failed; null when it did not."""
    clock_skew: bool
    """The client's clock was impossible: the end came before the start."""
    received_at: str
    """When the server got it."""
    scores: list[Score]
    """Its scores, oldest first."""


class SpansAccepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch of spans is stored."""

    accepted: int
    """How many spans."""
    trace_ids: list[str]
    """The traces that they belong to, in the order they came."""
    skipped: list[SkippedInlineScore] = field(default_factory=list)
    """The inline scores that do not exist, and why; absent when there are none."""
    jobs: list[InlineScoreJob] = field(default_factory=list)
    """The inline scores that jobs compute; absent when there are none."""


class Trace(Struct, frozen=True, kw_only=True):
    """Everything that happened for one request of an application."""

    id: str
    """Chosen by the client."""
    project_id: str
    """Where it belongs."""
    root_span_id: str | None
    """Null while no root has arrived."""
    span_count: int
    """How many spans it has."""
    error_count: int
    """How many of them failed."""
    queued_at: str | None
    """Since when it waits for review; null when it is not in the queue."""
    created_at: str
    """When its first span arrived."""
    metadata: Raw
    """The root span's metadata."""
    spans: list[Span]
    """By start time."""


class TraceRow(Struct, frozen=True, kw_only=True):
    """A trace in a list: without its spans."""

    id: str
    """Chosen by the client."""
    project_id: str
    """Where it belongs."""
    root_span_id: str | None
    """Null while no root has arrived."""
    name: str | None
    """The root span's name."""
    duration_ms: float | None
    """The root span's duration."""
    span_count: int
    """How many spans it has."""
    error_count: int
    """How many of them failed."""
    tokens: int
    """Tokens read and written by all spans."""
    models: list[str]
    """Every model that a span names."""
    queued_at: str | None
    """Since when it waits for review; null when it is not in the queue."""
    created_at: str
    """When its first span arrived."""
    metadata: Raw
    """The root span's metadata."""
