"""Which values occur where among a project's traces, so that a filter reads only what can match.

A trace's key begins with the instant of its arrival. Its first ten characters name a stretch of four seconds, and for each
value (the root's name, a model, an entry of metadata, the size of the duration) the stretches that have it are kept: one
row however many traces of the stretch share the value. A value that nobody has is known to be absent at once; a rare
one leads to the few stretches where it is.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from evenhand.store.connection import Connection
from evenhand.store.pages import LAST

LENGTH = 10
"""Characters of a key that name its stretch."""
MANY = 128
"""Stretches that are asked for at once."""
LEAST_POWER, MOST_POWER = 0, 50
"""Powers of two of milliseconds by which durations are told apart: up to 36,000 years."""
INSERT = "INSERT INTO trace_marks (project_id, mark, stretch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


@lru_cache(maxsize=65_536)
def mark_of(kind: str, text: str) -> int:
    """A number for a value; two values that share one only cost a look."""
    digest = hashlib.blake2b(f"{kind}\n{text}".encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def power_of(milliseconds: float) -> int:
    """The power of two that a duration reaches."""
    if milliseconds < 1:
        return LEAST_POWER
    return min(MOST_POWER, math.frexp(milliseconds)[1] - 1)


def marks_of(
    name: str | None, duration_ms: float | None, facet_lines: str, model_lines: Iterable[str]
) -> set[int]:
    """All marks of a trace, or of what a batch adds to one."""
    found = {mark_of("model", line) for line in model_lines}
    if name is not None:
        found.add(mark_of("name", name))
    if duration_ms is not None:
        found.add(mark_of("power", str(power_of(duration_ms))))
    found.update(mark_of("facet", line) for line in facet_lines.split("\n") if line)
    return found


def wanted_marks(
    name: str | None, min_duration_ms: float | None, facet_lines: Iterable[str], model_line: str | None
) -> list[list[int]]:
    """For each thing that a list asks for, the marks of which a stretch must have one."""
    wanted: list[list[int]] = []
    if name is not None:
        wanted.append([mark_of("name", name)])
    if model_line is not None:
        wanted.append([mark_of("model", model_line)])
    wanted += [[mark_of("facet", line)] for line in facet_lines]
    if min_duration_ms is not None:
        powers = range(power_of(min_duration_ms), MOST_POWER + 1)
        wanted.append([mark_of("power", str(power)) for power in powers])
    return wanted


def last_unmarked(connection: Connection) -> str:
    """The key up to which traces have no marks."""
    row = connection.one("SELECT last_key FROM trace_marks_start WHERE last_key >= ''")
    return "" if row is None else str(row[0])


def stretches(
    connection: Connection, project_id: str, wanted: Sequence[Sequence[int]], *, newest: str, oldest: str
) -> Iterator[str]:
    """The stretches that may hold traces with all that is wanted, newest first, both ends included."""
    # The rarest leads, as far as a look at a few tells.
    lead, *others = sorted(
        wanted, key=lambda marks: len(_some(connection, project_id, marks, newest + LAST, oldest))
    )
    end = newest + LAST
    while found := _some(connection, project_id, lead, end, oldest):
        left = set(found)
        for marks in others:
            left &= _having(connection, project_id, marks, sorted(left)) if left else set()
        yield from sorted(left, reverse=True)
        end = found[-1]


def _some(connection: Connection, project_id: str, marks: Sequence[int], end: str, oldest: str) -> list[str]:
    """The newest stretches before `end` with one of the marks, newest first."""
    found: set[str] = set()
    for mark in marks:
        found.update(
            row[0]
            for row in connection.all(
                # No comparisons of rows: PostgreSQL would read on to the oldest row of the project.
                "SELECT stretch FROM trace_marks WHERE project_id = ? AND mark = ? AND stretch < ? AND stretch >= ?"
                " ORDER BY project_id DESC, mark DESC, stretch DESC LIMIT ?",
                project_id,
                mark,
                end,
                oldest,
                MANY,
            )
        )
    return sorted(found, reverse=True)[:MANY]


def _having(connection: Connection, project_id: str, marks: Sequence[int], named: list[str]) -> set[str]:
    found: set[str] = set()
    for mark in marks:
        found.update(
            row[0]
            for row in connection.ask_texts(
                "stretch",
                "FROM trace_marks WHERE project_id = ? AND mark = ? AND stretch IN [?]",
                project_id,
                mark,
                named,
            )()
        )
    return found


def forget_marks(
    connection: Connection, project_id: str, deleted: Iterable[tuple[str, Iterable[int]]]
) -> None:
    """After traces were deleted: keys with their marks. Stretches without a trace are forgotten."""
    by_stretch: dict[str, set[int]] = {}
    for key, marks in deleted:
        by_stretch.setdefault(key[:LENGTH], set()).update(marks)
    for stretch, marks in by_stretch.items():
        if connection.one(
            "SELECT 1 FROM traces WHERE (project_id, trace_key) >= (?, ?) AND (project_id, trace_key) < (?, ?) LIMIT 1",
            project_id,
            stretch,
            project_id,
            stretch + LAST,
        ):
            continue
        for mark in marks:
            connection.run(
                "DELETE FROM trace_marks WHERE project_id = ? AND mark = ? AND stretch = ?",
                project_id,
                mark,
                stretch,
            )
