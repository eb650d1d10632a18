"""Datasets and their items."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Raw, Struct

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.datasets import Dataset, DatasetItem, Deleted, ImportReport
from evenhand.core.timestamps import format_instant, now
from evenhand.store.audit import note_deletion
from evenhand.store.connection import Connection, Row, Value
from evenhand.store.pages import LAST, as_cut, bounded_rows, newest_first, oldest_first
from evenhand.store.projects import Scope, not_found

_COLUMNS = "id, project_id, name, description, version, item_count, created_at, updated_at"
ITEM_COLUMNS = "id, dataset_id, input, expected_output, metadata, created_at, version, removed_in"
_NEWEST_FIRST = newest_first("project_id", "id")
_ITEM_VALUES = ("id", "input", "expected_output", "metadata")
CHUNK_ITEMS, CHUNK_CHARACTERS = 5_000, 8_000_000
"""What is handed to the database at once, and in memory for it: an import may be far larger."""


class ItemText(Struct, frozen=True, kw_only=True):
    """An item to be added, as JSON text."""

    input: str
    """Any JSON but null."""
    expected_output: str | None = None
    """Any JSON."""
    metadata: str | None = None
    """A JSON object."""


def create_dataset(connection: Connection, *, project_id: str, name: str, description: str | None) -> Dataset:
    """The project must be there already."""
    if connection.one("SELECT 1 FROM datasets WHERE project_id = ? AND name = ?", project_id, name):
        raise Refusal("CONFLICT", "The project has a dataset of this name already.", {"name": name})
    stamp = format_instant(now())
    made = Dataset(
        id=new_id(),
        project_id=project_id,
        name=name,
        description=description,
        version=1,
        item_count=0,
        created_at=stamp,
        updated_at=stamp,
    )
    connection.run(
        f"INSERT INTO datasets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        made.id,
        made.project_id,
        made.name,
        made.description,
        made.version,
        made.item_count,
        made.created_at,
        made.updated_at,
    )
    _note_version(connection, made.id, version=1, added=0, removed=0, item_count=0, stamp=stamp)
    return made


def get_dataset(connection: Connection, dataset_id: str, *, scope: Scope) -> Dataset:
    row = connection.one(f"SELECT {_COLUMNS} FROM datasets WHERE id = ?", dataset_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("dataset", dataset_id)
    return _dataset(row)


def list_datasets(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[Dataset]:
    """Newest first: ids sort by time."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM datasets WHERE {_NEWEST_FIRST}",  # noqa: S608  constant texts
        project_id,
        before or LAST,
        project_id,
        limit,
    )
    return [_dataset(row) for row in rows]


def delete_dataset(connection: Connection, dataset_id: str, *, scope: Scope, actor: str) -> Deleted:
    """The dataset and its items; experiments keep their runs."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    connection.run("DELETE FROM dataset_items WHERE dataset_id = ?", dataset_id)
    connection.run("DELETE FROM dataset_versions WHERE dataset_id = ?", dataset_id)
    connection.run("DELETE FROM datasets WHERE id = ?", dataset_id)
    details = {"name": dataset.name, "item_count": dataset.item_count}
    note_deletion(connection, dataset.project_id, actor, "dataset", dataset_id, details)
    return Deleted(deleted=True, id=dataset_id)


def add_item(connection: Connection, dataset_id: str, item: ItemText, *, scope: Scope) -> DatasetItem:
    """One more item, one more version."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    stamp = format_instant(now())
    item_id = new_id()
    _insert_items(connection, dataset, [(item_id, item)], stamp)
    _bump(connection, dataset, added=1, stamp=stamp)
    return DatasetItem(
        id=item_id,
        dataset_id=dataset_id,
        input=_raw(item.input),
        expected_output=None if item.expected_output is None else _raw(item.expected_output),
        metadata=None if item.metadata is None else _raw(item.metadata),
        created_at=stamp,
        version=dataset.version + 1,
        removed_in=None,
    )


def add_items(connection: Connection, dataset_id: str, items: Iterable[ItemText], *, scope: Scope) -> int:
    """Many items as one version; the number added."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    stamp = format_instant(now())
    added = 0
    for chunk in _chunks(items):
        _insert_items(connection, dataset, [(new_id(), item) for item in chunk], stamp)
        added += len(chunk)
    if added:
        _bump(connection, dataset, added=added, stamp=stamp)
    return added


def import_items(
    connection: Connection,
    dataset_id: str,
    items: Iterable[ItemText],
    report: Callable[[], ImportReport],
    *,
    scope: Scope,
) -> ImportReport:
    """`add_items`, and what the import says about them once it has seen them all."""
    add_items(connection, dataset_id, items, scope=scope)
    return report()


def list_items(
    connection: Connection,
    dataset_id: str,
    *,
    scope: Scope,
    after: str | None,
    limit: int,
    version: int | None = None,
) -> list[DatasetItem]:
    """In the order they were added: those of a version, or of the newest one."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    if version is not None:
        check_version(dataset, version)
    present = "removed_in IS NULL"
    values: list[Value] = []
    if version is not None and version != dataset.version:
        present = "version <= ? AND (removed_in IS NULL OR removed_in > ?)"
        values = [version, version]
    rows = bounded_rows(
        connection,
        ITEM_COLUMNS,
        ("input", "expected_output", "metadata"),
        f"FROM dataset_items WHERE {present} AND {oldest_first('dataset_id', 'id', limited=False)}",
        [*values, dataset_id, after or "", dataset_id],
        limit,
    )
    return as_cut(rows, [item_of(row) for row in rows])


def check_version(dataset: Dataset, version: int) -> None:
    """`NOT_FOUND` for a version that the dataset never had."""
    if not 1 <= version <= dataset.version:
        raise Refusal(
            "NOT_FOUND", f"The dataset has no version {version}.", {"id": dataset.id, "version": version}
        )


def get_item(
    connection: Connection, item_id: str, *, scope: Scope, dataset_id: str | None = None
) -> DatasetItem:
    """One item, also one that was taken out of its dataset; `NOT_FOUND` unless it is in the dataset named."""
    row = connection.one(f"SELECT {ITEM_COLUMNS} FROM dataset_items WHERE id = ?", item_id)  # noqa: S608  constant columns
    if row is None or dataset_id not in (None, row[1]):
        raise not_found("item", item_id)
    try:
        get_dataset(connection, row[1], scope=scope)
    except Refusal:
        raise not_found("item", item_id) from None
    return item_of(row)


def remove_item(
    connection: Connection, dataset_id: str, item_id: str, *, scope: Scope, actor: str
) -> Deleted:
    """Take an item out: the next version lacks it, earlier ones and their experiments keep it."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    item = get_item(connection, item_id, scope=scope, dataset_id=dataset_id)
    if item.removed_in is not None:
        raise not_found("item", item_id)
    connection.run("UPDATE dataset_items SET removed_in = ? WHERE id = ?", dataset.version + 1, item_id)
    _bump(connection, dataset, removed=1, stamp=format_instant(now()))
    details = {"dataset_id": dataset_id, "version": dataset.version + 1}
    note_deletion(connection, dataset.project_id, actor, "item", item_id, details)
    return Deleted(deleted=True, id=item_id)


def _chunks(items: Iterable[ItemText]) -> Iterator[list[ItemText]]:
    chunk: list[ItemText] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += len(item.input) + len(item.expected_output or "") + len(item.metadata or "")
        if len(chunk) == CHUNK_ITEMS or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _insert_items(
    connection: Connection, dataset: Dataset, items: Sequence[tuple[str, ItemText]], stamp: str
) -> None:
    always: dict[str, Value] = {
        "dataset_id": dataset.id,
        "version": dataset.version + 1,
        "created_at": stamp,
    }
    values: list[Value] = []
    for item_id, item in items:
        values += (item_id, item.input, item.expected_output, item.metadata)
    connection.insert_many("dataset_items", always, _ITEM_VALUES, values)


def _bump(connection: Connection, dataset: Dataset, *, added: int = 0, removed: int = 0, stamp: str) -> None:
    count = dataset.item_count + added - removed
    connection.run(
        "UPDATE datasets SET version = version + 1, item_count = ?, updated_at = ? WHERE id = ?",
        count,
        stamp,
        dataset.id,
    )
    _note_version(
        connection,
        dataset.id,
        version=dataset.version + 1,
        added=added,
        removed=removed,
        item_count=count,
        stamp=stamp,
    )


def _note_version(
    connection: Connection,
    dataset_id: str,
    *,
    version: int,
    added: int,
    removed: int,
    item_count: int,
    stamp: str,
) -> None:
    connection.run(
        "INSERT INTO dataset_versions (dataset_id, version, added_count, removed_count, item_count, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        dataset_id,
        version,
        added,
        removed,
        item_count,
        stamp,
    )


def _dataset(row: Row) -> Dataset:
    return Dataset(
        id=row[0],
        project_id=row[1],
        name=row[2],
        description=row[3],
        version=row[4],
        item_count=row[5],
        created_at=row[6],
        updated_at=row[7],
    )


def item_of(row: Row) -> DatasetItem:
    """The item in a row of `ITEM_COLUMNS`."""
    return DatasetItem(
        id=row[0],
        dataset_id=row[1],
        input=_raw(row[2]),
        expected_output=None if row[3] is None else _raw(row[3]),
        metadata=None if row[4] is None else _raw(row[4]),
        created_at=row[5],
        version=row[6],
        removed_in=row[7],
    )


def _raw(text: str) -> Raw:
    return Raw(text.encode())


def read_items(connection: Connection, item_ids: Sequence[str], *, scope: Scope) -> dict[str, DatasetItem]:
    """Items by id, those that were taken out of their dataset too; what the caller may not see is left out."""
    if not item_ids:
        return {}
    rows = connection.all(
        f"SELECT {ITEM_COLUMNS} FROM dataset_items WHERE id IN [?]",  # noqa: S608  constant columns
        sorted(set(item_ids)),
    )
    seen = {
        row[0]
        for row in connection.all(
            "SELECT id FROM datasets WHERE id IN [?] AND (? = '' OR project_id = ?)",
            sorted({row[1] for row in rows}),
            scope or "",
            scope or "",
        )
    }
    return {row[0]: item_of(row) for row in rows if row[1] in seen}


class Expectation(NamedTuple):
    """What scorers are told about an item, as JSON text."""

    expected_output: str | None
    metadata: str | None


def expectations(connection: Connection, item_ids: Sequence[str], *, scope: Scope) -> dict[str, Expectation]:
    """What is expected of items; items that the caller may not see are left out."""
    rows = connection.all(
        "SELECT dataset_items.id, dataset_items.expected_output, dataset_items.metadata FROM dataset_items"
        " JOIN datasets ON datasets.id = dataset_items.dataset_id"
        " WHERE dataset_items.id IN [?] AND (? = '' OR datasets.project_id = ?)",
        item_ids,
        scope or "",
        scope or "",
    )
    return {row[0]: Expectation(row[1], row[2]) for row in rows}
