"""Annotations and the review queue."""

from typing import Literal

from msgspec import Raw, Struct

QueueStatus = Literal["pending", "annotated"]


class Annotation(Struct, frozen=True, kw_only=True):
    """What a person says about a trace or one of its spans."""

    id: str
    """Made by the server."""
    project_id: str
    """Where it belongs."""
    trace_id: str
    """The trace it is about."""
    span_id: str | None
    """The span it is about; null for the whole trace."""
    annotator: str
    """Who says it."""
    label: str | None
    """A short verdict."""
    correction: Raw | None
    """What the output should have been: any JSON."""
    notes: str | None
    """Anything else."""
    created_at: str
    """When it was said."""


class QueuedRoot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reviewer sees of a trace."""

    id: str
    """The root span's id."""
    name: str
    """Its name."""
    input: Raw | None
    """What went in."""
    output: Raw | None
    """What came out."""
    input_from_span_id: str | None = None
    """Of a root without texts: the first model call, whose input this is; absent when it is the root's own."""
    output_from_span_id: str | None = None
    """The same for the output."""
    duration_ms: float | None
    """How long it took."""


class QueueItem(Struct, frozen=True, kw_only=True):
    """A trace that waits, or waited, for review."""

    trace_id: str
    """The trace."""
    queued_at: str
    """Since when it is in the queue."""
    status: QueueStatus
    """`pending` without an annotation, otherwise `annotated`."""
    annotation_count: int
    """How many annotations it has."""
    root_span: QueuedRoot | None
    """Null while no root has arrived."""


class Queued(Struct, frozen=True, kw_only=True):
    """The answer to putting a trace into the queue, or taking it out."""

    trace_id: str
    """The trace."""
    queued: bool
    """Whether it is in the queue now."""


class QueuedSince(Queued, frozen=True, kw_only=True):
    """The same for a trace that is in the queue."""

    queued_at: str
    """Since when; asking again changes nothing."""
