"""The record of what was deleted or shared with outsiders, and by whom."""

from msgspec import Raw, Struct


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One deletion, or one share link made or taken back. Entries are never changed or removed, not even with their project."""

    id: str
    """Made by the server."""
    project_id: str
    """The project that the object belonged to."""
    actor: str
    """Who did it: a token's id, `environment` for the token from the environment, `retention` for the server itself."""
    action: str
    """What was done: `delete`, `share` (a link for outsiders) or `revoke` (the link taken back)."""
    object_type: str
    """What kind of object it was: `project`, `experiment`, `dataset`, `item`, `score`, `trace`, `rule`, ..."""
    object_id: str
    """Its id."""
    details: Raw
    """A JSON object: counts of what went with it, names; no payloads."""
    created_at: str
    """When."""
