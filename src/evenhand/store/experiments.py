"""Experiments."""

from msgspec import Raw

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.experiments import Experiment
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row
from evenhand.store.datasets import get_dataset
from evenhand.store.pages import LAST, as_cut, bounded_rows, newest_first
from evenhand.store.projects import Scope, not_found

_COLUMNS = (
    "id, project_id, name, dataset_id, dataset_version, status, auto_complete, metadata, run_count, created_at,"
    " completed_at"
)
_NEWEST_FIRST = newest_first("project_id", "id", limited=False)


def create_experiment(
    connection: Connection,
    *,
    project_id: str,
    name: str,
    dataset_id: str,
    metadata: str | None,
    auto_complete: bool,
) -> Experiment:
    """The dataset must be in the same project."""
    dataset = get_dataset(connection, dataset_id, scope=project_id)
    made = Experiment(
        id=new_id(),
        project_id=project_id,
        name=name,
        dataset_id=dataset_id,
        dataset_version=dataset.version,
        status="created",
        auto_complete=auto_complete,
        metadata=None if metadata is None else Raw(metadata.encode()),
        run_count=0,
        created_at=format_instant(now()),
        completed_at=None,
    )
    connection.run(
        f"INSERT INTO experiments ({_COLUMNS}, covered_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, NULL, 0)",  # noqa: S608  constant columns
        made.id,
        made.project_id,
        made.name,
        made.dataset_id,
        made.dataset_version,
        made.status,
        int(auto_complete),
        metadata,
        made.created_at,
    )
    return made


def get_experiment(connection: Connection, experiment_id: str, *, scope: Scope) -> Experiment:
    row = connection.one(f"SELECT {_COLUMNS} FROM experiments WHERE id = ?", experiment_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("experiment", experiment_id)
    return _experiment(row)


def list_experiments(
    connection: Connection, *, project_id: str, before: str | None, limit: int
) -> list[Experiment]:
    """Newest first."""
    rows = bounded_rows(
        connection,
        _COLUMNS,
        ("metadata",),
        f"FROM experiments WHERE {_NEWEST_FIRST}",
        [project_id, before or LAST, project_id],
        limit,
    )
    return as_cut(rows, [_experiment(row) for row in rows])


def open_experiment(connection: Connection, experiment_id: str, *, scope: Scope) -> Experiment:
    """The experiment, if it still takes runs."""
    experiment = get_experiment(connection, experiment_id, scope=scope)
    if experiment.status == "completed":
        raise Refusal(
            "EXPERIMENT_COMPLETED", "The experiment is completed.", {"experiment_id": experiment_id}
        )
    return experiment


def complete_experiment(connection: Connection, experiment_id: str, *, scope: Scope) -> Experiment:
    open_experiment(connection, experiment_id, scope=scope)
    mark_completed(connection, experiment_id)
    return get_experiment(connection, experiment_id, scope=scope)


def mark_completed(connection: Connection, experiment_id: str) -> None:
    connection.run(
        "UPDATE experiments SET status = 'completed', completed_at = ? WHERE id = ?",
        format_instant(now()),
        experiment_id,
    )


def count_runs(connection: Connection, experiment: Experiment, *, added: int, newly_covered: int) -> None:
    """Count new runs in; the first ones start the experiment, and full coverage may complete it."""
    connection.run(
        "UPDATE experiments SET run_count = run_count + ?, covered_count = covered_count + ?, status = 'running'"
        " WHERE id = ?",
        added,
        newly_covered,
        experiment.id,
    )
    if not experiment.auto_complete:
        return
    row = connection.one("SELECT covered_count FROM experiments WHERE id = ?", experiment.id)
    needed = item_count(connection, experiment)
    if row is not None and needed is not None and row[0] - _covered_in_vain(connection, experiment) >= needed:
        mark_completed(connection, experiment.id)


def item_count(connection: Connection, experiment: Experiment) -> int | None:
    """How many items the experiment is about: those of its version, and those that came since and are still there.
    None once the dataset is deleted."""
    row = connection.one("SELECT item_count, version FROM datasets WHERE id = ?", experiment.dataset_id)
    if row is None:
        return None
    kept = 0
    if row[1] > experiment.dataset_version:
        [(kept,)] = connection.all(
            "SELECT COUNT(*) FROM dataset_items WHERE dataset_id = ? AND removed_in > ? AND version <= ?",
            experiment.dataset_id,
            experiment.dataset_version,
            experiment.dataset_version,
        )
    return int(row[0]) + int(kept)


def _covered_in_vain(connection: Connection, experiment: Experiment) -> int:
    """Items with runs that came after the experiment was made and were taken out again."""
    rows = connection.all(
        "SELECT COUNT(*) FROM dataset_items WHERE dataset_id = ? AND removed_in > ? AND version > ? AND EXISTS"
        " (SELECT 1 FROM runs WHERE experiment_id = ? AND dataset_item_id = dataset_items.id)",
        experiment.dataset_id,
        experiment.dataset_version,
        experiment.dataset_version,
        experiment.id,
    )
    return int(rows[0][0])


def _experiment(row: Row) -> Experiment:
    return Experiment(
        id=row[0],
        project_id=row[1],
        name=row[2],
        dataset_id=row[3],
        dataset_version=row[4],
        status=row[5],
        auto_complete=bool(row[6]),
        metadata=None if row[7] is None else Raw(row[7].encode()),
        run_count=row[8],
        created_at=row[9],
        completed_at=row[10],
    )
