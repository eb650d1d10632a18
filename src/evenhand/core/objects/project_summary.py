"""A project at a glance."""

from msgspec import Struct


class TraceCounts(Struct, frozen=True, kw_only=True):
    """The traces of a stretch of time."""

    count: int
    """How many were created."""
    error_count: int
    """How many of them have a span that failed."""
    error_rate: float
    """Their share, to three decimals; 0 when there are none."""
    avg_duration_ms: float | None
    """The mean duration of the root spans; null when none has one."""
    tokens: int
    """Tokens of their model calls."""
    cost_usd: float | None
    """What the model calls with a known cost came to; null when none has one."""
    cost_known_share: float | None
    """The share of the model calls whose cost is known, to three decimals; null when there are none."""


class TraceWindows(Struct, frozen=True, kw_only=True):
    """The traces of the last day and week."""

    last_24h: TraceCounts
    """The last 24 hours."""
    last_7d: TraceCounts
    """The last 7 days."""


class CompletedExperiment(Struct, frozen=True, kw_only=True):
    """The experiment that was completed last."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    completed_at: str
    """When."""
    mean_scores: dict[str, float]
    """The mean of each scorer that gives numbers."""


class ExperimentCounts(Struct, frozen=True, kw_only=True):
    """Experiments by status."""

    created_count: int
    """Without a run yet."""
    running_count: int
    """With runs, not completed."""
    completed_count: int
    """Completed."""
    most_recent_completed: CompletedExperiment | None
    """Null when none was."""


class QueueCounts(Struct, frozen=True, kw_only=True):
    """The review queue."""

    pending_count: int
    """Traces that nobody annotated yet."""
    annotated_count: int
    """Traces with an annotation."""


class ProjectSummary(Struct, frozen=True, kw_only=True):
    """A project at a glance."""

    project_id: str
    """The project."""
    traces: TraceWindows
    """Traces of the last day and week."""
    experiments: ExperimentCounts
    """Experiments by status."""
    queue: QueueCounts
    """The review queue."""
