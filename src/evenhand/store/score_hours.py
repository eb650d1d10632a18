"""What a project's scores come to by scorer and hour: for pictures over time, and so that a search by value skips the
hours that cannot hold one. Sums are floats here; means that decide something are in `totals`."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from evenhand.core.objects.scores import ScoreHour
from evenhand.store.connection import Connection
from evenhand.store.pages import oldest_first

HOUR = 13
"""Characters of an instant that name its hour: `2026-02-21T22`."""
_UPSERT = """INSERT INTO score_hours (project_id, scorer_name, hour, score_count, total, squares, minimum, maximum,
    label_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_id, scorer_name, hour) DO UPDATE SET
    score_count = score_hours.score_count + excluded.score_count, total = score_hours.total + excluded.total,
    squares = score_hours.squares + excluded.squares, label_count = score_hours.label_count + excluded.label_count,
    minimum = CASE WHEN score_hours.minimum IS NULL OR excluded.minimum < score_hours.minimum THEN excluded.minimum
        ELSE score_hours.minimum END,
    maximum = CASE WHEN score_hours.maximum IS NULL OR excluded.maximum > score_hours.maximum THEN excluded.maximum
        ELSE score_hours.maximum END"""


class HourKey(NamedTuple):
    """A scorer's hour in a project."""

    project_id: str
    scorer_name: str
    hour: str


def add_to_hours(connection: Connection, stamp: str, scores: Iterable[tuple[str, str, float | None]]) -> None:
    """Count new scores in: project, scorer, number or None for a label; all stored at `stamp`."""
    numbers: defaultdict[HourKey, list[float]] = defaultdict(list)
    labels: defaultdict[HourKey, int] = defaultdict(int)
    for project_id, scorer_name, number in scores:
        key = HourKey(project_id, scorer_name, stamp[:HOUR])
        if number is None:
            labels[key] += 1
        else:
            numbers[key].append(number)
    rows = []
    for key in sorted({*numbers, *labels}):
        own = numbers.get(key, [])
        low, high = (min(own), max(own)) if own else (None, None)
        rows.append(
            (*key, len(own), sum(own), sum(value * value for value in own), low, high, labels.get(key, 0))
        )
    connection.run_many(_UPSERT, rows)


def take_from_hours(connection: Connection, scores: Iterable[tuple[str, str, str, float | None]]) -> None:
    """Count deleted scores out: project, scorer, instant, number or None. The least and greatest number of an hour
    stay as limits; an hour without scores goes."""
    gone: defaultdict[HourKey, list[float | None]] = defaultdict(list)
    for project_id, scorer_name, stamp, number in scores:
        gone[HourKey(project_id, scorer_name, stamp[:HOUR])].append(number)
    for key in sorted(gone):
        numbers = [number for number in gone[key] if number is not None]
        connection.run(
            "UPDATE score_hours SET score_count = score_count - ?, total = total - ?, squares = squares - ?,"
            " label_count = label_count - ? WHERE project_id = ? AND scorer_name = ? AND hour = ?",
            len(numbers),
            sum(numbers),
            sum(number * number for number in numbers),
            len(gone[key]) - len(numbers),
            *key,
        )
        connection.run(
            "DELETE FROM score_hours WHERE project_id = ? AND scorer_name = ? AND hour = ? AND score_count = 0"
            " AND label_count = 0",
            *key,
        )


def count_hours_again(connection: Connection, keys: Iterable[HourKey]) -> None:
    """After scores of these hours were deleted."""
    for key in sorted(set(keys)):
        connection.run(
            "DELETE FROM score_hours WHERE project_id = ? AND scorer_name = ? AND hour = ?",
            *key,
        )
        connection.run(
            "INSERT INTO score_hours (project_id, scorer_name, hour, score_count, total, squares, minimum, maximum,"
            " label_count) SELECT project_id, scorer_name, SUBSTR(created_at, 1, 13), COUNT(number),"
            " COALESCE(SUM(number), 0.0), COALESCE(SUM(CASE WHEN number > 1e-150 THEN number * number END), 0.0), MIN(number), MAX(number), COUNT(label)"
            " FROM scores WHERE project_id = ? AND scorer_name = ? AND created_at >= ? AND created_at < ?"
            " GROUP BY project_id, scorer_name, SUBSTR(created_at, 1, 13)",
            key.project_id,
            key.scorer_name,
            key.hour,
            f"{key.hour}~",
        )


def list_hours(
    connection: Connection,
    *,
    project_id: str,
    scorer_name: str,
    since: str = "",
    until: str = "~",
    limit: int = 10_000,
) -> list[ScoreHour]:
    """The hours of one scorer with scores, oldest first, from one instant to before another."""
    rows = connection.all(
        "SELECT hour, score_count, total, squares, minimum, maximum, label_count FROM score_hours"
        " WHERE (project_id, scorer_name, hour) >= (?, ?, ?) AND (project_id, scorer_name, hour) < (?, ?, ?)"
        " ORDER BY project_id, scorer_name, hour LIMIT ?",
        project_id,
        scorer_name,
        since[:HOUR],
        project_id,
        scorer_name,
        until,
        limit,
    )
    return [
        ScoreHour(
            hour=f"{row[0]}:00:00.000Z",
            score_count=row[1],
            mean=row[2] / row[1] if row[1] else None,
            std=_spread(row[1], row[2], row[3]),
            min=row[4],
            max=row[5],
            label_count=row[6],
        )
        for row in rows
    ]


def _spread(count: int, total: float, squares: float) -> float | None:
    if count < 2:
        return None
    return float(max(0.0, (squares - total * total / count) / (count - 1)) ** 0.5)


def scorers_of_project(connection: Connection, project_id: str, *, limit: int = 1_000) -> list[str]:
    """The names under which a project has scores, in order: one look into the index for each."""
    names: list[str] = []
    last = ""
    while len(names) < limit:
        row = connection.one(
            f"SELECT scorer_name FROM score_hours WHERE {oldest_first('project_id', 'scorer_name')}",  # noqa: S608  constant texts
            project_id,
            last,
            project_id,
            1,
        )
        if row is None:
            break
        last = row[0]
        names.append(last)
    return names
