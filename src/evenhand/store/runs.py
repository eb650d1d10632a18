"""Runs of experiments."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.objects.experiments import Experiment, Run, RunsAccepted
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Kind, Row, Value
from evenhand.store.experiments import count_runs, get_experiment, open_experiment
from evenhand.store.inline import InlineResult, ScoreResult, attach
from evenhand.store.pages import LAST, as_cut, bounded_rows, fitting, oldest_first
from evenhand.store.projects import Scope
from evenhand.store.scores import ScoresOf, lengths_of_runs, scores_of_targets
from evenhand.store.targets import Target

_INSERT = """INSERT INTO runs (id, project_id, experiment_id, dataset_item_id, repeat_number, output, trace_id,
    created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_COLUMNS = "runs.id, runs.experiment_id, runs.dataset_item_id, runs.repeat_number, runs.output, runs.trace_id, runs.created_at"
# The newest score of a scorer stands for the run; an older one is out of date. PostgreSQL would at times join with the
# scores of every experiment, so there each run's own is looked up, which the embedded database has no words for.
_SCORED: dict[Kind, str] = {
    "postgresql": "FROM runs CROSS JOIN LATERAL (SELECT number FROM scores"  # noqa: S608  constant texts
    f" WHERE (target_id, id) < (runs.id, '{LAST}') AND target_id >= runs.id AND scorer_name = ?"
    " AND target_type = 'run' ORDER BY target_id DESC, id DESC LIMIT 1) AS s WHERE",
    "sqlite": "FROM runs JOIN scores s ON s.target_id = runs.id AND s.scorer_name = ?"
    " AND s.target_type = 'run' AND NOT EXISTS (SELECT 1 FROM scores newer WHERE newer.target_id = s.target_id"
    " AND newer.target_type = 'run' AND newer.scorer_name = s.scorer_name AND newer.id > s.id) WHERE",
}


class NewRun(Struct, frozen=True, kw_only=True):
    """A run to be stored."""

    dataset_item_id: str
    """The item that was run."""
    repeat: int
    """Which repetition."""
    output: str
    """JSON text."""
    trace_id: str | None
    """The trace of how it came about."""
    scores: list[tuple[str, ScoreResult]]
    """Its inline scores in the order they came: the scorer's name, and what came of it."""


def add_runs(
    connection: Connection, experiment_id: str, runs: Sequence[NewRun], *, scope: Scope
) -> RunsAccepted:
    """Store all runs with their scores and jobs, or none."""
    experiment = open_experiment(connection, experiment_id, scope=scope)
    _check_items(connection, experiment, runs)
    covered = _check_duplicates(connection, experiment_id, runs)
    stamp = format_instant(now())
    rows: list[tuple[Value, ...]] = []
    targets: list[Target] = []
    for run in runs:
        target = Target(
            type="run",
            id=new_id(),
            project_id=experiment.project_id,
            experiment_id=experiment_id,
            dataset_item_id=run.dataset_item_id,
        )
        rows.append(
            (target.id, experiment.project_id, experiment_id, run.dataset_item_id, run.repeat, run.output,
             run.trace_id, stamp)
        )  # fmt: skip
        targets.append(target)
    connection.run_many(_INSERT, rows)
    results = [
        InlineResult(index, score_index, name, result)
        for index, run in enumerate(runs)
        for score_index, (name, result) in enumerate(run.scores)
    ]
    skipped, jobs = attach(connection, results, targets.__getitem__)
    newly_covered = len({run.dataset_item_id for run in runs} - covered)
    count_runs(connection, experiment, added=len(runs), newly_covered=newly_covered)
    run_ids = [target.id for target in targets]
    return RunsAccepted(accepted=len(runs), run_ids=run_ids, skipped=skipped, jobs=jobs)


def _check_items(connection: Connection, experiment: Experiment, runs: Sequence[NewRun]) -> None:
    wanted = sorted({run.dataset_item_id for run in runs})
    rows = connection.ask_texts(
        "id",
        "FROM dataset_items WHERE id IN [?] AND dataset_id = ? AND (removed_in IS NULL OR removed_in > ?)",
        wanted,
        experiment.dataset_id,
        experiment.dataset_version,
    )()
    foreign = sorted(set(wanted) - {row[0] for row in rows})
    if foreign:
        raise Refusal(
            "INVALID_DATASET_ITEM",
            f"{len(foreign)} of the items are not in the experiment's dataset.",
            {"dataset_item_ids": foreign[:100]},
        )


def _check_duplicates(connection: Connection, experiment_id: str, runs: Sequence[NewRun]) -> set[str]:
    """`DUPLICATE_RUN` for an item and repeat that is there already; the items that have runs otherwise."""
    stored = set(
        connection.ask_texts(
            "dataset_item_id, repeat_number",
            "FROM runs WHERE experiment_id = ? AND dataset_item_id IN [?]",
            experiment_id,
            sorted({run.dataset_item_id for run in runs}),
        )()
    )
    covered = {item_id for item_id, _ in stored}
    doubled: list[dict[str, str | int]] = []
    for run in runs:
        place = (run.dataset_item_id, run.repeat)
        if place in stored:
            doubled.append({"dataset_item_id": run.dataset_item_id, "repeat": run.repeat})
        stored.add(place)
    if doubled:
        raise Refusal(
            "DUPLICATE_RUN", "An item can be run once per repeat in an experiment.", {"runs": doubled[:100]}
        )
    return covered


class RunFilter(Struct, frozen=True, kw_only=True):
    """Which runs are listed, and in which order."""

    scorer_name: str | None = None
    """Only runs that this scorer has scored."""
    min_value: float | None = None
    """Its newest number is at least this."""
    max_value: float | None = None
    """Its newest number is at most this."""
    by_value: bool = False
    """In the order of its newest numbers instead of that of the runs."""
    descending: bool = False
    """The greatest number first."""


def list_runs(
    connection: Connection,
    experiment_id: str,
    *,
    scope: Scope,
    wanted: RunFilter,
    after: tuple[str, ...] | None,
    limit: int,
) -> list[tuple[Run, float | None]]:
    """Runs with their scores, and the number that they are sorted by."""
    get_experiment(connection, experiment_id, scope=scope)
    if wanted.scorer_name is None:
        rows = bounded_rows(
            connection,
            f"{_COLUMNS}, NULL",
            ("output",),
            f"FROM runs WHERE {oldest_first('experiment_id', 'id', limited=False)}",
            (experiment_id, after[0] if after else "", experiment_id),
            limit,
        )
    else:
        rows = _scored_rows(connection, experiment_id, wanted, after, limit)
    rows, scores = with_scores(connection, rows, output=4)
    return as_cut(rows, [(_run(row, scores), row[7]) for row in rows])


def with_scores(connection: Connection, rows: list[Row], *, output: int) -> tuple[list[Row], ScoresOf]:
    """The first of the rows of runs, as many as fit on a page with their scores, and these scores. `output`: the place
    of the output in a row, whose first column is the run's id."""
    found = lengths_of_runs(connection, [row[0] for row in rows])
    lengths = {row[0]: len(row[output]) + found.get(row[0], (0, 0))[1] for row in rows}
    fit = fitting(rows, lengths, lambda row: str(row[0]))
    wanted = {row[0]: found[row[0]] for row in fit if row[0] in found}
    return fit, scores_of_targets(connection, wanted, None)


def read_runs(connection: Connection, run_ids: Sequence[str], *, scope: Scope) -> dict[str, Run]:
    """Runs by id, with their scores; what the caller may not see is left out."""
    if not run_ids:
        return {}
    rows = connection.all(
        f"SELECT {_COLUMNS}, project_id FROM runs WHERE id IN [?]",  # noqa: S608  constant columns
        sorted(set(run_ids)),
    )
    seen = [row for row in rows if scope is None or row[7] == scope]
    scores = scores_of_targets(connection, lengths_of_runs(connection, [row[0] for row in seen]), None)
    return {row[0]: _run(row, scores) for row in seen}


def _scored_rows(
    connection: Connection, experiment_id: str, wanted: RunFilter, after: tuple[str, ...] | None, limit: int
) -> list[Row]:
    """May read every run of the experiment: an index by number would cost every score more than this costs here."""
    start = after[0] if after and not wanted.by_value else ""
    values: list[Value] = [wanted.scorer_name, experiment_id, start, experiment_id]
    conditions = "(runs.experiment_id, runs.id) > (?, ?) AND runs.experiment_id <= ?"
    for condition, value in (("s.number >= ?", wanted.min_value), ("s.number <= ?", wanted.max_value)):
        if value is not None:
            conditions += f" AND {condition}"
            values.append(value)
    order = "runs.experiment_id, runs.id"
    if wanted.by_value:
        conditions += " AND s.number IS NOT NULL"
        order = "s.number DESC, runs.id DESC" if wanted.descending else "s.number, runs.id"
        if after:
            conditions += f" AND (s.number, runs.id) {'<' if wanted.descending else '>'} (?, ?)"
            values += [float(after[0]), after[1]]
    source = f"{_SCORED[connection.kind]} {conditions} ORDER BY {order}"
    return bounded_rows(connection, f"{_COLUMNS}, s.number", ("runs.output",), source, values, limit)


def _run(row: Row, scores: ScoresOf) -> Run:
    return Run(
        id=row[0],
        experiment_id=row[1],
        dataset_item_id=row[2],
        repeat=row[3],
        output=Raw(row[4].encode()),
        trace_id=row[5],
        scores=scores.scores.get(row[0], []),
        scores_left_out=scores.left_out.get(row[0], 0),
        created_at=row[6],
    )
