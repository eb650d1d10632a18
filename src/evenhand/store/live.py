"""Whether something of a project has changed since somebody looked: a few reads by index, cheap enough for every second."""

import hashlib

from evenhand.core.jsontext import encode
from evenhand.store.connection import Connection
from evenhand.store.pages import LAST, newest_first

ROWS = 50
_NEWEST = newest_first("project_id", "id")


def project_mark(connection: Connection, project_id: str) -> str:
    """A text that changes when a run, a score or a job of the project comes or changes.

    It covers what pages show of work under way: the newest experiments with their runs, the newest jobs and those that
    have not ended, the newest score.
    """
    parts = [
        connection.all(
            f"SELECT id, status, run_count FROM experiments WHERE {_NEWEST}",  # noqa: S608  constant texts
            project_id,
            LAST,
            project_id,
            ROWS,
        ),
        connection.all(
            f"SELECT id, status, updated_at FROM jobs WHERE {_NEWEST}",  # noqa: S608  constant texts
            project_id,
            LAST,
            project_id,
            ROWS,
        ),
        *(
            connection.all(
                "SELECT id, updated_at FROM jobs WHERE (project_id, status, id) > (?, ?, '')"
                " AND (project_id, status) <= (?, ?) ORDER BY project_id, status, id LIMIT ?",
                project_id,
                status,
                project_id,
                status,
                ROWS,
            )
            for status in ("pending", "running")
        ),
        connection.all(
            "SELECT id FROM scores WHERE (project_id, created_at, id) < (?, ?, ?) AND project_id >= ?"
            " ORDER BY project_id DESC, created_at DESC, id DESC LIMIT 1",
            project_id,
            LAST,
            LAST,
            project_id,
        ),
    ]
    texts = [[str(value) for row in part for value in row] for part in parts]
    return hashlib.blake2b(encode(texts), digest_size=12).hexdigest()


def anything_running(connection: Connection, project_id: str) -> bool:
    """Whether an experiment or a job of the project has not ended."""
    for table, statuses in (("experiments", ("running",)), ("jobs", ("pending", "running"))):
        for status in statuses:
            row = connection.one(
                f"SELECT 1 FROM {table} WHERE project_id = ? AND status = ? LIMIT 1",  # noqa: S608  constant texts
                project_id,
                status,
            )
            if row is not None:
                return True
    return False
