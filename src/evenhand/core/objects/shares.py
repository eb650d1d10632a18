"""Links that show one object to whoever has them."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

ShareKind = Literal["trace", "experiment", "comparison", "ab"]


class Share(Struct, frozen=True, kw_only=True):
    """One link. It shows the object alone: no other object of the project can be reached from it."""

    id: str
    """Made by the server; not the secret."""
    project_id: str
    """The project of the object."""
    kind: ShareKind
    """What is shown."""
    object_ids: Sequence[str]
    """Its id; of a comparison both experiments'."""
    title: str
    """What the page was called when it was shared."""
    made_by: str
    """Who shared it."""
    created_at: str
    """When."""
    expires_at: str
    """When it ends by itself."""
    revoked_at: str | None = None
    """When it was taken back."""
