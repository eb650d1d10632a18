"""Spans by their ids alone.

Ids are random. An index of all of them changes a page for nearly every span that comes, so that storing gets dearer with
what is stored. Spans therefore belong to blocks in the order in which they came, and the index is by block first: a
batch changes only the pages of the newest block (docs/decisions/0286-ids-of-spans-in-blocks.md).
"""

from collections.abc import Callable, Iterable, Sequence

from evenhand.store.connection import Connection, Row

BLOCK = 131_072
"""Spans after which a new block begins."""
NEWEST = 64
"""Blocks in which a batch looks for the parents of its spans: eight million spans."""
_ADD = (
    "INSERT INTO span_blocks (number, span_count) VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET"
    " span_count = span_blocks.span_count + excluded.span_count"
)


def ask_block(connection: Connection) -> Callable[[], int]:
    """The block that new spans go to, as `Connection.ask` does it."""
    rows = connection.ask("SELECT number, span_count FROM span_blocks ORDER BY number DESC LIMIT 1")

    def block() -> int:
        newest = rows()
        if not newest:
            return 0
        number: int = newest[0][0]
        return number + 1 if newest[0][1] >= BLOCK else number

    return block


def count_in_block(connection: Connection, block: int, spans: int) -> None:
    """Count spans that were put into a block."""
    connection.run(_ADD, block, spans)


def spans_of_id(
    connection: Connection, span_id: str, project: str | None, *, limit: int
) -> list[tuple[str, str]]:
    """Project and trace key of the spans with an id, in a project or in all: one look for each block."""
    own, values = ("", ()) if project is None else (" AND spans.project_id = ?", (project,))
    rows = connection.all(
        "SELECT spans.project_id, spans.trace_key FROM span_blocks CROSS JOIN spans"  # noqa: S608  constant texts
        f" WHERE span_blocks.number >= 0 AND spans.block = span_blocks.number AND spans.id = ?{own} LIMIT ?",
        span_id,
        *values,
        limit,
    )
    return [(row[0], row[1]) for row in rows]


def recent_homes(connection: Connection, project_id: str, span_ids: Sequence[str]) -> list[Row]:
    """Id and trace id of the spans of a project with one of some ids, among the newest blocks."""
    return connection.look_up(
        "spans.id, traces.id",
        f"FROM (SELECT number FROM span_blocks ORDER BY number DESC LIMIT {NEWEST}) AS newest"  # noqa: S608  a constant
        " CROSS JOIN spans CROSS JOIN traces WHERE spans.block = newest.number AND spans.id IN [?]"
        " AND spans.project_id = ? AND traces.trace_key = spans.trace_key",
        list(span_ids),
        project_id,
    )()


def forget_empty_blocks(connection: Connection, blocks: Iterable[int]) -> None:
    """Forget those of some blocks that have lost their last span; the newest stays, because it counts on."""
    for block in sorted(set(blocks)):
        connection.run(
            "DELETE FROM span_blocks WHERE number = ? AND number < (SELECT MAX(number) FROM span_blocks)"
            " AND NOT EXISTS (SELECT 1 FROM spans WHERE block = ?)",
            block,
            block,
        )
