"""What a comparison of two experiments reads: every run with its scores, and the items of their dataset."""

from typing import NamedTuple

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.core.objects.experiments import Experiment
from evenhand.store.audit import list_audit
from evenhand.store.connection import Connection
from evenhand.store.totals import scorer_totals


class StoredRun(NamedTuple):
    """A run, without its output."""

    id: str
    item_id: str
    repeat: int


class StoredItem(NamedTuple):
    """An item of the dataset, without its input."""

    id: str
    version: int
    category: str | None
    removed_in: int | None = None

    def in_version(self, version: int) -> bool:
        """Whether that version of the dataset has it."""
        return self.version <= version and (self.removed_in is None or self.removed_in > version)


class RunScores(NamedTuple):
    """What one scorer said about one run: numbers, labels or both, oldest first."""

    numbers: list[float]
    labels: list[str]


class ScoredRuns(NamedTuple):
    """All runs of an experiment, and by scorer and run what was said about them."""

    runs: list[StoredRun]
    scores: dict[str, dict[str, RunScores]]


def read_scored_runs(connection: Connection, experiment_id: str, scorer_name: str | None) -> ScoredRuns:
    """The runs of an experiment in the order of item and repeat, with the scores of all scorers or the one named."""
    runs = [
        StoredRun(*row)
        for row in connection.all(
            "SELECT id, dataset_item_id, repeat_number FROM runs WHERE experiment_id = ?"
            " ORDER BY experiment_id, dataset_item_id, repeat_number",
            experiment_id,
        )
    ]
    source = "FROM scores WHERE target_id IN [?] AND target_type = 'run'"
    columns, ids = "id, target_id, scorer_name, number, label", [run.id for run in runs]
    if scorer_name is None:
        rows = connection.look_up(columns, source, ids)()
    else:
        rows = connection.look_up(columns, f"{source} AND scorer_name = ?", ids, scorer_name)()
    scores: dict[str, dict[str, RunScores]] = {}
    for _, run_id, scorer, number, label in sorted(rows, key=lambda row: row[0]):
        found = scores.setdefault(scorer, {}).setdefault(run_id, RunScores([], []))
        if number is None:
            found.labels.append(label)
        else:
            found.numbers.append(number)
    return ScoredRuns(runs, scores)


def read_items(connection: Connection, dataset_id: str) -> list[StoredItem]:
    """Every item of a dataset, in the order in which they were added; none once it is deleted."""
    return [
        StoredItem(row[0], row[1], _category(row[2]), row[3])
        for row in connection.all(
            "SELECT id, version, metadata, removed_in FROM dataset_items WHERE dataset_id = ? ORDER BY dataset_id, id",
            dataset_id,
        )
    ]


def _category(metadata: str | None) -> str | None:
    """The item's `category`, as runs on disk have it; metadata that cannot be read has none."""
    if metadata is None or '"category"' not in metadata:
        return None
    try:
        found = jsontext.decode(metadata.encode())
    except InputError:
        return None
    value = found.get("category") if isinstance(found, dict) else None
    return None if value is None else str(value)


def comparison_stamp(connection: Connection, base: Experiment, other: Experiment) -> tuple[object, ...]:
    """What a comparison of two experiments depends on, in a few rows: as long as it is the same, so is the comparison.

    New runs and scores raise counts. What lowers them is in the record of deletions, whose newest entry is part of this.
    """
    dataset = connection.one("SELECT version, updated_at FROM datasets WHERE id = ?", base.dataset_id)
    deleted = list_audit(connection, project_id=base.project_id, before=None, limit=1)
    counts = sorted(
        (key, one.score_count, one.label_count, one.total)
        for key, one in scorer_totals(connection, [base.id, other.id]).items()
    )
    return (
        base.id,
        base.run_count,
        other.id,
        other.run_count,
        dataset,
        deleted[0].id if deleted else "",
        tuple(counts),
    )
