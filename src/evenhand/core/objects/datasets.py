"""Datasets and their items."""

from typing import Literal

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
    version: int
    """The dataset's version that brought it."""
    removed_in: int | None
    """The first version without it; null while it is there."""


class DatasetVersion(Struct, frozen=True, kw_only=True):
    """One state of a dataset: every change makes a new one."""

    version: int
    """From 1 on."""
    added_count: int
    """Items that it brought."""
    removed_count: int
    """Items that it no longer has."""
    item_count: int
    """Items that it has."""
    created_at: str
    """When it was made."""


class ItemChange(Struct, frozen=True, kw_only=True):
    """One item that two versions of a dataset do not share."""

    change: Literal["removed", "added"]
    """Whether the later version lacks it or brought it; the other way round when the versions are swapped."""
    item: DatasetItem
    """The item."""


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
