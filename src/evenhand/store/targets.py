"""What scores are attached to: runs and spans."""

from collections.abc import Iterable, Sequence
from operator import itemgetter

from msgspec import Struct

from evenhand.core.objects.scores import TargetType
from evenhand.store.connection import Connection
from evenhand.store.projects import Scope, not_found


class Target(Struct, frozen=True, kw_only=True):
    """A run or a span that exists and that the caller may see."""

    type: TargetType
    """`run` or `span`."""
    id: str
    """Its id."""
    project_id: str
    """Its project."""
    experiment_id: str | None = None
    """A run's experiment."""
    dataset_item_id: str | None = None
    """A run's item."""
    trace_key: str | None = None
    """A span's trace."""


class Material(Struct, frozen=True, kw_only=True):
    """What a scorer looks at, as JSON text."""

    target: Target
    """The run or span."""
    output: str | None
    """What came out."""
    input: str | None
    """What went in."""
    expected_output: str | None
    """What was expected; spans have none."""
    metadata: str | None = None
    """The item's, or the span's own."""


def find_runs(connection: Connection, ids: Iterable[str]) -> dict[str, Target]:
    """The runs that exist, in any project."""
    ask = connection.ask_texts(
        "id, project_id, experiment_id, dataset_item_id", "FROM runs WHERE id IN [?]", sorted(set(ids))
    )
    return {
        row[0]: Target(type="run", id=row[0], project_id=row[1], experiment_id=row[2], dataset_item_id=row[3])
        for row in ask()
    }


def find_spans(connection: Connection, ids: Iterable[str], *, scope: Scope) -> dict[str, Target]:
    """The spans that exist; of those with one id (they are unique only within a trace) that of the newest trace."""
    own, values = ("", ()) if scope is None else (" AND project_id = ?", (scope,))
    rows = connection.look_up(
        "id, project_id, MAX(trace_key)",
        f"FROM spans WHERE id IN [?]{own} GROUP BY id, project_id",
        sorted(set(ids)),
        *values,
    )()
    return {
        row[0]: Target(type="span", id=row[0], project_id=row[1], trace_key=row[2])
        for row in sorted(rows, key=itemgetter(2))
    }


def visible(target: Target, scope: Scope) -> bool:
    return scope is None or target.project_id == scope


def find_targets(
    connection: Connection, wanted: Sequence[tuple[TargetType, str, Scope]]
) -> list[Target | None]:
    """One target, or None, for each (type, id, scope)."""
    run_ids = [target_id for kind, target_id, _ in wanted if kind == "run"]
    span_ids: dict[Scope, list[str]] = {}
    for kind, target_id, scope in wanted:
        if kind == "span":
            span_ids.setdefault(scope, []).append(target_id)
    runs = find_runs(connection, run_ids) if run_ids else {}
    spans = {scope: find_spans(connection, ids, scope=scope) for scope, ids in span_ids.items()}
    found: list[Target | None] = []
    for kind, target_id, scope in wanted:
        if kind == "run":
            target = runs.get(target_id)
            found.append(target if target is not None and visible(target, scope) else None)
        else:
            found.append(spans[scope].get(target_id))
    return found


def read_material(connection: Connection, targets: Sequence[Target]) -> list[Material]:
    """What scorers look at, for each target in order."""
    runs = _materials_of_runs(connection, [target for target in targets if target.type == "run"])
    return [
        runs.get(target.id, _nothing(target)) if target.type == "run" else _span_material(connection, target)
        for target in targets
    ]


def _nothing(target: Target) -> Material:
    """Of a target that is gone."""
    return Material(target=target, output=None, input=None, expected_output=None)


def require_material(
    connection: Connection, wanted: Sequence[tuple[TargetType, str, Scope]]
) -> list[Material]:
    """What scorers look at, for each (type, id, scope); `NOT_FOUND` for a target that does not exist."""
    targets: list[Target] = []
    for target, (kind, target_id, _) in zip(find_targets(connection, wanted), wanted, strict=True):
        if target is None:
            raise not_found(kind, target_id)
        targets.append(target)
    return read_material(connection, targets)


def _materials_of_runs(connection: Connection, runs: Sequence[Target]) -> dict[str, Material]:
    """By id: a batch of thousands asks once."""
    targets = {run.id: run for run in runs}
    if not targets:
        return {}
    rows = connection.look_up(
        "runs.id, runs.output, dataset_items.input, dataset_items.expected_output, dataset_items.metadata",
        "FROM runs LEFT JOIN dataset_items ON dataset_items.id = runs.dataset_item_id WHERE runs.id IN [?]",
        sorted(targets),
    )()
    return {
        row[0]: Material(
            target=targets[row[0]], output=row[1], input=row[2], expected_output=row[3], metadata=row[4]
        )
        for row in rows
    }


def _span_material(connection: Connection, target: Target) -> Material:
    row = connection.one(
        "SELECT output, input, metadata FROM spans WHERE trace_key = ? AND id = ?",
        target.trace_key,
        target.id,
    )
    output, given, metadata = row if row is not None else (None, None, None)
    return Material(target=target, output=output, input=given, expected_output=None, metadata=metadata)
