"""The navigation: which pages there are, for whom, in which order."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

ICONS = {
    "dashboard": "M2 2h5v7H2zM9 2h5v4H9zM9 8h5v6H9zM2 11h5v3H2z",
    "traces": "M2 3h9M4 6.5h9M4 10h5M6 13.5h7",
    "experiments": "M8 2v12M2.5 8h11M2.5 5.5v5M13.5 5.5v5M6 8a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
    "datasets": "M2.5 3.8a5.5 2 0 1 0 11 0a5.5 2 0 1 0-11 0v8.4c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V3.8M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
    "queue": "M2.5 2.5h11v11h-11zM5 8l2.2 2.2L11 6",
    "agreement": "M2 8a4 4 0 1 0 8 0a4 4 0 1 0-8 0M6 8a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "scorers": "M8 2v12M4.5 14h7M2 5h12M2 5l-.5 4h3zM14 5l-2.5 4h3z",
    "jobs": "M8 2.2a5.8 5.8 0 1 0 .01 0M8 4.5V8l2.5 1.7",
    "rules": "M2 3.5h12M4.5 8h7M6.5 12.5h3",
    "search": "M7 2.5a4.5 4.5 0 1 0 .01 0M10.4 10.4L14 14",
    "sessions": "M2 3h9v6H6l-2.5 2.5V9H2zM8 11h3l2 2v-2h1V6h-1",
    "ab": "M2.5 3h4.5v10H2.5zM9 6h4.5v7H9z",
    "shares": "M4 8a2 2 0 1 0 .01 0M12 2.5a2 2 0 1 0 .01 0M12 9.5a2 2 0 1 0 .01 0M5.8 9l4.4-3.2M5.8 10.6l4.4 1.8",
    "settings": "M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 2.8v3.4M6.5 9.8v3.4",
}
"""The path of each icon, on 16 by 16."""


class Entry(Struct, frozen=True, kw_only=True):
    """One link of the navigation."""

    key: str
    """The section; also the last part of its path and the name of its icon."""
    text: str
    """What it is called."""
    href: str = ""
    """Its address within a project."""
    count: int | None = None
    """How many wait there."""
    role: str = "read"
    """The least role that sees it."""


class Group(Struct, frozen=True):
    """Links for one audience."""

    heading: str
    entries: tuple[Entry, ...]


GROUPS = (
    Group(
        "For developers",
        (
            Entry(key="dashboard", text="Dashboard"),
            Entry(key="traces", text="Traces"),
            Entry(key="sessions", text="Sessions"),
            Entry(key="search", text="Search"),
            Entry(key="experiments", text="Experiments"),
            Entry(key="ab", text="A/B reports"),
            Entry(key="datasets", text="Datasets"),
        ),
    ),
    Group(
        "For reviewers",
        (
            Entry(key="queue", text="Review queue", role="review"),
            Entry(key="agreement", text="Agreement"),
        ),
    ),
    Group("Trust", (Entry(key="scorers", text="Scorers and judges"),)),
    Group(
        "Operations",
        (
            Entry(key="rules", text="Online rules"),
            Entry(key="jobs", text="Jobs"),
            Entry(key="shares", text="Share links", role="write"),
        ),
    ),
    Group(
        "Administration",
        (Entry(key="settings", text="Settings", role="admin"),),
    ),
)
"""Every page that has an entry. A new page adds its line here."""

_SEES = {
    "review": ("review",),
    "read": ("review", "read"),
    "write": ("review", "read", "write"),
    "admin": ("review", "read", "write", "admin"),
}


def groups_for(base: str, role: str, counts: Mapping[str, int]) -> tuple[Group, ...]:
    """The navigation of one project, for somebody with `role`."""
    seen = _SEES.get(role, ())
    found = []
    for group in GROUPS:
        entries = tuple(
            replace(entry, href=f"{base}/{entry.key}", count=counts.get(entry.key))
            for entry in group.entries
            if entry.role in seen
        )
        if entries:
            found.append(Group(group.heading, entries))
    return tuple(found)
