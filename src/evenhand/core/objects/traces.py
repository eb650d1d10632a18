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


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    input_from_span_id: str | None
    """Of a root without texts: the first model call, whose input this is; null when it is the span's own."""
    output_from_span_id: str | None
    """The same for the output."""
    tokens_input: int | None
    """Tokens that the model read."""
    tokens_output: int | None
    """Tokens that the model wrote."""
    model: str | None
    """The model that was asked for."""
    session_id: str | None
    """The conversation that it belongs to."""
    user_id: str | None
    """The person whom the application worked for."""
    cost_usd: float | None
    """What it cost in US dollars; null when that is not known, never 0 for want of a price."""
    cost_source: str | None
    """`reported` by the provider, or worked out from `configured` or `shipped` prices; null when it is not known."""
    is_total: bool
    """Whether its tokens and cost repeat those of the calls below it; they are in no sum then."""
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
    scores_left_out: int = 0
    """How many scores there are beside these, because they are too many for one answer: `GET /v1/scores` lists all.
    Absent when there are none."""


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
    session_id: str | None
    """The first session that one of its spans names."""
    user_id: str | None
    """The first user that one of its spans names."""
    tokens: int
    """Tokens read and written by all spans; totals that a span repeats are not counted again."""
    cost_usd: float | None
    """The sum of the known costs in US dollars; null when none is known."""
    cost_known_calls: int
    """How many model calls that sum covers."""
    cost_unknown_calls: int
    """How many model calls are not in it, because their cost is not known."""
    queued_at: str | None
    """Since when it waits for review; null when it is not in the queue."""
    created_at: str
    """When its first span arrived."""
    started_at: str
    """When it began by its own clock: the earliest start of its spans."""
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
    """Tokens read and written by all spans; totals that a span repeats are not counted again."""
    session_id: str | None
    """The first session that one of its spans names."""
    user_id: str | None
    """The first user that one of its spans names."""
    cost_usd: float | None
    """The sum of the known costs in US dollars; null when none is known."""
    cost_known_calls: int
    """How many model calls that sum covers."""
    cost_unknown_calls: int
    """How many model calls are not in it, because their cost is not known."""
    models: list[str]
    """Every model that a span names."""
    queued_at: str | None
    """Since when it waits for review; null when it is not in the queue."""
    created_at: str
    """When its first span arrived."""
    started_at: str
    """When it began by its own clock: the earliest start of its spans."""
    metadata: Raw
    """The root span's metadata."""


class Session(Struct, frozen=True, kw_only=True):
    """The traces of one conversation."""

    id: str
    """Chosen by the client."""
    project_id: str
    """Where it belongs."""
    trace_count: int
    """How many traces it has."""
    error_count: int
    """How many of them hold a span that failed."""
    user_ids: list[str]
    """The users of its traces, at most ten."""
    first_at: str
    """When its first trace arrived."""
    last_at: str
    """When its newest trace arrived."""
    tokens: int
    """Tokens read and written by all its spans."""
    cost_usd: float | None
    """The sum of the known costs in US dollars; null when none is known."""
    cost_known_calls: int
    """How many model calls that sum covers."""
    cost_unknown_calls: int
    """How many model calls are not in it, because their cost is not known."""
