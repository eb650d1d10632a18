"""Uploaded results of A/B analyses."""

from msgspec import Struct


class StoredReport(Struct, frozen=True, kw_only=True):
    """An `analysis.json` that somebody uploaded, as a list shows it."""

    id: str
    """Made by the server."""
    project_id: str
    """Where it was uploaded."""
    title: str
    """Which arms it compares."""
    decision: str
    """What it says."""
    run_count: int
    """Runs behind it."""
    made_by: str
    """Who uploaded it."""
    created_at: str
    """When."""
