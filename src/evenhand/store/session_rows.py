"""The rows that list sessions."""

from collections.abc import Iterable

from evenhand.store.connection import Connection


def forget_empty(connection: Connection, project_id: str, ids: Iterable[str | None]) -> None:
    """Forget those of the sessions that have no trace any more."""
    named = sorted({session_id for session_id in ids if session_id is not None})
    if named:
        connection.run(
            "DELETE FROM sessions WHERE project_id = ? AND id IN [?] AND NOT EXISTS"
            " (SELECT 1 FROM traces WHERE traces.project_id = sessions.project_id AND traces.session_id = sessions.id)",
            project_id,
            named,
        )
