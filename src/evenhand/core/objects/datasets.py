"""Datasets and their items."""

from msgspec import Raw, Struct


class Dataset(Struct, frozen=True, kw_only=True):
    """A versioned list of inputs with what is expected of them."""

    id: str
    """Made by the server."""
    project_id: str
    """The project that it belongs to."""
    name: str
    """Unique in its project."""
    description: str | None
    """For people."""
    version: int
    """1 when made; one more for each change, and for each import as a whole."""
    item_count: int
    """How many items it has now."""
    created_at: str
    """When it was made."""
    updated_at: str
    """When it last changed."""


class DatasetItem(Struct, frozen=True, kw_only=True):
    """One input; never changes."""

    id: str
    """Made by the server."""
    dataset_id: str
    """The dataset that it belongs to."""
    input: Raw
    """Any JSON but null."""
    expected_output: Raw | None
    """What a good output would be; any JSON."""
    metadata: Raw | None
    """Any JSON object."""
    created_at: str
    """When it was added."""


class SkippedLine(Struct, frozen=True, kw_only=True):
    """A line of an import that was left out."""

    line: int
    """Counted from 1."""
    reason: str
    """Machine-readable, and a few words for people where they help."""


class ImportReport(Struct, frozen=True, kw_only=True):
    """What an import did."""

    imported_count: int
    """Lines that became items."""
    skipped_count: int
    """Lines that did not."""
    skipped: list[SkippedLine]
    """Which, and why; the first thousand of them."""


class Deleted(Struct, frozen=True, kw_only=True):
    """The answer to a deletion."""

    deleted: bool
    """Always true."""
    id: str
    """What was deleted."""
