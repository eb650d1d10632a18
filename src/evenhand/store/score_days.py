"""What a scorer's scores come to by day and by the version that computed them."""

from msgspec import Struct

from evenhand.store.connection import Connection

MOST_SCORES = 20_000
"""Scores that are looked at; kept hours tell beforehand how many days these are."""


class VersionDay(Struct, frozen=True, kw_only=True):
    """The numbers of one version on one day."""

    day: str
    """Such as `2026-02-21`."""
    version: str
    """What computed them, with its version; empty for submitted values."""
    count: int
    total: float
    squares: float


def days_by_version(
    connection: Connection, *, project_id: str, scorer_name: str, since: str
) -> tuple[list[VersionDay], str]:
    """By day, within it by when a version first came; and the day that they begin with.

    The days are the newest ones, from `since` on, that together hold at most `MOST_SCORES` scores.
    """
    first = _first_day(connection, project_id, scorer_name, since)
    rows = connection.all(
        "SELECT SUBSTR(created_at, 1, 10), canonical_name, scorer_version, COUNT(*), SUM(number),"
        " SUM(CASE WHEN number > 1e-150 THEN number * number ELSE 0 END), MIN(id) FROM scores"
        " WHERE project_id = ? AND scorer_name = ? AND created_at >= ? AND number IS NOT NULL"
        " GROUP BY SUBSTR(created_at, 1, 10), canonical_name, scorer_version",
        project_id,
        scorer_name,
        first,
    )
    found = [
        VersionDay(
            day=row[0],
            version="" if row[1] is None else f"{row[1]} {row[2] or ''}".strip(),
            count=row[3],
            total=float(row[4]),
            squares=float(row[5]),
        )
        for row in sorted(rows, key=lambda row: (row[0], row[6]))
    ]
    return found, first


def _first_day(connection: Connection, project_id: str, scorer_name: str, since: str) -> str:
    """The earliest day from which on there are at most `MOST_SCORES` scores; the day after the newest where even that
    one has more."""
    days = connection.all(
        "SELECT SUBSTR(hour, 1, 10), SUM(score_count + label_count) FROM score_hours"
        " WHERE project_id = ? AND scorer_name = ? AND hour >= ? GROUP BY SUBSTR(hour, 1, 10)",
        project_id,
        scorer_name,
        since[:10],
    )
    first, total = "~", 0
    for day, count in sorted(days, reverse=True):
        total += int(count)
        if total > MOST_SCORES:
            return first
        first = day
    return since[:10]
