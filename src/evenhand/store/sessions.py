"""Sessions: the traces of one conversation. Their sums are those of their traces, made when they are asked for."""

from collections import defaultdict

from evenhand.core.objects.traces import Session
from evenhand.core.spans import PICO
from evenhand.store.connection import Connection
from evenhand.store.pages import LAST, newest_first
from evenhand.store.spans import created_at_of

MAX_USERS = 10
"""How many users of a session are named."""
_NEWEST_FIRST = newest_first("project_id", "session_key")
_SUMS = (
    "session_id, COUNT(*), COUNT(CASE WHEN error_count > 0 THEN 1 END), MIN(trace_key), MAX(trace_key), SUM(tokens),"
    # In two parts: SQLite gives up where a sum of whole numbers needs more than 64 bits.
    f" SUM(cost_pico / {PICO}), SUM(cost_pico % {PICO}), SUM(cost_known), SUM(cost_unknown)"
)


def list_sessions(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[tuple[str, Session | None]]:
    """The newest first, each with the key that a cursor continues from; None for one whose traces are gone."""
    rows = connection.all(
        f"SELECT session_key, id FROM sessions WHERE {_NEWEST_FIRST}",  # noqa: S608  constant texts
        project_id,
        before or LAST,
        project_id,
        limit,
    )
    ids = [row[1] for row in rows]
    sums = connection.look_up(
        _SUMS,
        "FROM traces WHERE session_id IN [?] AND project_id = ? GROUP BY session_id",
        ids,
        project_id,
    )()
    users = _users(connection, project_id, ids)
    found = {
        row[0]: Session(
            id=row[0],
            project_id=project_id,
            trace_count=row[1],
            error_count=row[2],
            user_ids=users[row[0]],
            first_at=created_at_of(row[3]),
            last_at=created_at_of(row[4]),
            tokens=int(row[5]),
            cost_usd=None if row[6] is None else (int(row[6]) * PICO + int(row[7])) / PICO,
            cost_known_calls=int(row[8]),
            cost_unknown_calls=int(row[9]),
        )
        for row in sums
    }
    return [(key, found.get(session_id)) for key, session_id in rows]


def _users(connection: Connection, project_id: str, ids: list[str]) -> defaultdict[str, list[str]]:
    rows = connection.look_up(
        "session_id, user_id",
        "FROM traces WHERE session_id IN [?] AND project_id = ? AND user_id IS NOT NULL GROUP BY session_id, user_id",
        ids,
        project_id,
    )()
    users: defaultdict[str, list[str]] = defaultdict(list)
    for session_id, user_id in sorted(rows):
        if len(users[session_id]) < MAX_USERS:
            users[session_id].append(user_id)
    return users
