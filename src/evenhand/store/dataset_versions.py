"""The versions of a dataset, what differs between two of them, and what became of an item over all experiments."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from evenhand.core.objects.datasets import DatasetItem, DatasetVersion, ItemChange
from evenhand.core.objects.experiments import ItemRun
from evenhand.store.connection import Connection
from evenhand.store.datasets import ITEM_COLUMNS, check_version, get_dataset, get_item, item_of
from evenhand.store.pages import LAST, as_cut, bounded_rows, newest_first
from evenhand.store.projects import Scope
from evenhand.store.runs import with_scores


def list_versions(
    connection: Connection, dataset_id: str, *, scope: Scope, before: int | None, limit: int
) -> list[DatasetVersion]:
    """Newest first."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    rows = connection.all(
        "SELECT version, added_count, removed_count, item_count, created_at FROM dataset_versions"  # noqa: S608  constant texts
        f" WHERE {newest_first('dataset_id', 'version')}",
        dataset_id,
        dataset.version + 1 if before is None else before,
        dataset_id,
        limit,
    )
    return [
        DatasetVersion(
            version=row[0], added_count=row[1], removed_count=row[2], item_count=row[3], created_at=row[4]
        )
        for row in rows
    ]


Place = tuple[str, int, str]
"""Where a list of differences goes on: `removed` or `added`, the version of the change, the item."""


def list_changes(
    connection: Connection,
    dataset_id: str,
    *,
    scope: Scope,
    start: int,
    end: int | None,
    after: Place | None,
    limit: int,
) -> list[tuple[Place, ItemChange]]:
    """What version `end` lacks of version `start`, then what it has more."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    end = dataset.version if end is None else end
    for version in (start, end):
        check_version(dataset, version)
    low, high = sorted((start, end))
    # In time: what went between the two, and what came. Asked for backwards, the two change places.
    went, came = ("removed", "added") if start <= end else ("added", "removed")
    found: list[tuple[Place, ItemChange]] = []
    for change in ("removed", "added"):
        if after is not None and (change == "removed") and after[0] == "added":
            continue
        left = limit - len(found)
        if left <= 0:
            break
        place = after[1:] if after is not None and after[0] == change else (low, LAST)
        if change == went:
            column, other = "removed_in", "version <= ?"
            bound = low
        else:
            assert change == came
            column, other = "version", "(removed_in IS NULL OR removed_in > ?)"
            bound = high
        rows = connection.all(
            f"SELECT {ITEM_COLUMNS} FROM dataset_items WHERE {other} AND {column} IS NOT NULL"  # noqa: S608  constant texts
            f" AND (dataset_id, {column}, id) > (?, ?, ?) AND (dataset_id, {column}) <= (?, ?)"
            f" ORDER BY dataset_id, {column}, id LIMIT ?",
            bound,
            dataset_id,
            *place,
            dataset_id,
            high,
            left,
        )
        for row in rows:
            item = item_of(row)
            number = row[7] if column == "removed_in" else row[6]
            found.append(((change, number, item.id), ItemChange(change=change, item=item)))
    return found


def list_item_runs(
    connection: Connection,
    item_id: str,
    *,
    scope: Scope,
    before: str | None,
    limit: int,
    dataset_id: str | None = None,
) -> list[ItemRun]:
    """Every run of an item, over all experiments, newest first."""
    item: DatasetItem = get_item(connection, item_id, scope=scope, dataset_id=dataset_id)
    rows = bounded_rows(
        connection,
        "id, experiment_id, repeat_number, output, trace_id, created_at",
        ("output",),
        f"FROM runs WHERE {newest_first('dataset_item_id', 'id', limited=False)}",
        (item.id, before or LAST, item.id),
        limit,
    )
    rows, scores = with_scores(connection, rows, output=3)
    experiments: dict[str, Sequence[Any]] = {
        row[0]: row[1:]
        for row in connection.look_up(
            "id, name, dataset_version, status",
            "FROM experiments WHERE id IN [?]",
            sorted({row[1] for row in rows}),
        )()
    }
    made = [
        ItemRun(
            id=row[0],
            experiment_id=row[1],
            dataset_item_id=item.id,
            repeat=row[2],
            output=Raw(row[3].encode()),
            trace_id=row[4],
            scores=scores.scores.get(row[0], []),
            scores_left_out=scores.left_out.get(row[0], 0),
            created_at=row[5],
            experiment_name=experiments[row[1]][0],
            dataset_version=experiments[row[1]][1],
            experiment_status=experiments[row[1]][2],
        )
        for row in rows
        if row[1] in experiments
    ]
    return as_cut(rows, made)
