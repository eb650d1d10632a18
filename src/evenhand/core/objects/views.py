"""Saved views of pages."""

from msgspec import Struct


class View(Struct, frozen=True, kw_only=True):
    """A name for the state of a page: its filters, order and columns."""

    id: str
    """Made by the server."""
    project_id: str
    """Where it belongs; everybody who reads the project sees it."""
    page: str
    """The page's path within the project, such as `traces`."""
    name: str
    """Unique on its page."""
    query: str
    """The page's query string."""
    made_by: str
    """Who saved it."""
    created_at: str
    """When."""
