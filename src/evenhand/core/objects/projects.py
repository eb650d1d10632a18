"""Projects and the tokens that open them."""

from typing import Literal

from msgspec import Struct

Role = Literal["review", "read", "write", "admin"]
"""What a caller may do, each more than the one before: `review` works on review queues and sees nothing else."""


class Project(Struct, frozen=True, kw_only=True):
    """What everything else belongs to."""

    id: str
    """Chosen by whoever made it, or by the server."""
    name: str
    """For people."""
    created_at: str
    """When it was made."""
    retain_days: int | None = None
    """Traces that arrived more days ago are deleted; null keeps them."""


class Token(Struct, frozen=True, kw_only=True):
    """A key to one project or to all; the secret itself is shown once and never stored."""

    id: str
    """Names the token; it is the middle part of the secret."""
    name: str
    """For people: who or what uses it."""
    project_id: str | None
    """The one project that it opens; null opens all."""
    role: Role
    """What it allows: `review` (works on review queues, nothing else), `read`, `write` (reads too) or `admin` (manages projects and tokens too)."""
    created_at: str
    """When it was made."""
    revoked_at: str | None
    """When it was taken back."""


class NewToken(Token, frozen=True, kw_only=True):
    """A token together with its secret: the only answer that shows it."""

    token: str
    """The secret, to be sent as `Authorization: Bearer …`."""


class Person(Struct, frozen=True, kw_only=True):
    """Somebody who logs in with a browser, by a link of their own."""

    id: str
    """Made by the server."""
    project_id: str
    """The one project that they see."""
    name: str
    """Their annotations and reviews carry it."""
    role: Role
    """What they may do; a reviewer has `review`."""
    created_at: str
    """When they were invited."""
    revoked_at: str | None
    """When they were shut out; their work stays."""


class InvitedPerson(Person, frozen=True, kw_only=True):
    """A person together with a login link: the only answer that shows it."""

    login_path: str
    """Opens a session once, within a week: put the server's address before it."""
