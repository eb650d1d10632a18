"""Projects and the tokens that open them."""

from typing import Literal

from msgspec import Struct

Role = Literal["read", "write", "admin"]


class Project(Struct, frozen=True, kw_only=True):
    """What everything else belongs to."""

    id: str
    """Chosen by whoever made it, or by the server."""
    name: str
    """For people."""
    created_at: str
    """When it was made."""


class Token(Struct, frozen=True, kw_only=True):
    """A key to one project or to all; the secret itself is shown once and never stored."""

    id: str
    """Names the token; it is the middle part of the secret."""
    name: str
    """For people: who or what uses it."""
    project_id: str | None
    """The one project that it opens; null opens all."""
    role: Role
    """What it allows: `read`, `write` (reads too) or `admin` (manages projects and tokens too)."""
    created_at: str
    """When it was made."""
    revoked_at: str | None
    """When it was taken back."""


class NewToken(Token, frozen=True, kw_only=True):
    """A token together with its secret: the only answer that shows it."""

    token: str
    """The secret, to be sent as `Authorization: Bearer …`."""
