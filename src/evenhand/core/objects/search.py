"""What a search finds."""

from msgspec import Struct


class Found(Struct, frozen=True, kw_only=True):
    """A span that holds what was searched for."""

    trace_id: str
    """Its trace."""
    span_id: str
    """Its id."""
    name: str
    """Its name."""
    place: str
    """Where the words stand: `name`, `input` or `output`, the first of them."""
    excerpt: str
    """The words with what stands around them."""
    created_at: str
    """When the trace arrived."""


class SearchPage(Struct, frozen=True, kw_only=True):
    """A part of what a search finds, newest traces first."""

    items: list[Found]
    """Spans that hold every word."""
    next_cursor: str | None
    """Ask with this `cursor` to search on; null when everything was searched. A page may be empty and still go on."""
    limit: int
    """How many items a page may have."""
    searched_until: str | None
    """Traces that arrived at this instant or later were searched; null when all were."""
