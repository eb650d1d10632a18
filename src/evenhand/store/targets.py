"""What scores are attached to: runs and spans."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.scores import TargetType
from evenhand.store.connection import Connection
from evenhand.store.projects import Scope, not_found
from evenhand.store.span_blocks import spans_of_id

MOST_CANDIDATES = 20
"""How many of the spans that a name may mean are told."""


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


class TargetName(NamedTuple):
    """A target as a request names it."""

    type: TargetType
    """`run` or `span`."""
    id: str
    """Its id; that of a span is unique only within its trace."""
    scope: Scope = None
    """The only project that the caller may see."""
    trace_id: str | None = None
    """A span's trace, where the request says so."""
    project_id: str | None = None
    """Its project, where the request says so."""


class Candidate(NamedTuple):
    """A span that a name may mean."""

    project_id: str
    trace_id: str
    trace_key: str


def find_spans(connection: Connection, names: Sequence[TargetName]) -> list[Target | Refusal | None]:
    """The span that each name means, `AMBIGUOUS_TARGET` where it means several, None where there is none."""
    wanted = list(dict.fromkeys(names))
    found = dict(zip(wanted, (_candidates(connection, name) for name in wanted), strict=True))
    return [_chosen(name, found[name]) for name in names]


def _candidates(connection: Connection, name: TargetName) -> list[Candidate]:
    """One more than are told apart, at most: of a span called `root` there may be millions."""
    project = name.project_id if name.scope is None else name.scope
    if name.project_id not in (None, project):
        return []
    if name.trace_id is not None:
        own, values = ("", ()) if project is None else (" AND project_id = ?", (project,))
        traces = connection.all(
            f"SELECT project_id, id, trace_key FROM traces WHERE id = ?{own}",  # noqa: S608  constant texts
            name.trace_id,
            *values,
        )
        return [
            Candidate(*trace)
            for trace in traces
            if connection.one("SELECT 1 FROM spans WHERE trace_key = ? AND id = ?", trace[2], name.id)
        ]
    rows = spans_of_id(connection, name.id, project, limit=MOST_CANDIDATES + 1)
    if len(rows) == 1:
        # The trace's id is only needed to tell spans apart.
        return [Candidate(rows[0][0], "", rows[0][1])]
    ids: dict[str, str] = dict(
        connection.look_up(
            "trace_key, id", "FROM traces WHERE trace_key IN [?]", sorted(key for _, key in rows)
        )()
    )
    return [Candidate(project_id, ids.get(key, ""), key) for project_id, key in rows]


def _chosen(name: TargetName, found: list[Candidate]) -> Target | Refusal | None:
    if not found:
        return None
    if len(found) > 1:
        return ambiguous(name, found)
    return Target(type="span", id=name.id, project_id=found[0].project_id, trace_key=found[0].trace_key)


def ambiguous(name: TargetName, found: Sequence[Candidate]) -> Refusal:
    """The error that names the candidates; all of them are the caller's to see."""
    listed = [
        {"project_id": one.project_id, "trace_id": one.trace_id} for one in sorted(found)[:MOST_CANDIDATES]
    ]
    needed = "project_id" if name.trace_id is not None else "trace_id"
    return Refusal(
        "AMBIGUOUS_TARGET",
        f"Several spans are called '{name.id[:200]}'; say which with '{needed}'.",
        {"candidates": listed, "more": len(found) > MOST_CANDIDATES},
    )


def visible(target: Target, name: TargetName) -> bool:
    """Whether the target is in the projects that the name allows."""
    return name.scope in (None, target.project_id) and name.project_id in (None, target.project_id)


def find_targets(connection: Connection, names: Sequence[TargetName]) -> list[Target | Refusal | None]:
    """For each name its target, `AMBIGUOUS_TARGET`, or None."""
    run_ids = [name.id for name in names if name.type == "run"]
    runs = find_runs(connection, run_ids) if run_ids else {}
    spans = iter(find_spans(connection, [name for name in names if name.type == "span"]))
    found: list[Target | Refusal | None] = []
    for name in names:
        if name.type == "span":
            found.append(next(spans))
        else:
            target = runs.get(name.id)
            found.append(target if target is not None and visible(target, name) else None)
    return found


def find_target(connection: Connection, name: TargetName) -> Target:
    """The one target; `NOT_FOUND` or `AMBIGUOUS_TARGET` otherwise."""
    [target] = find_targets(connection, [name])
    if target is None:
        raise not_found(name.type, name.id)
    if isinstance(target, Refusal):
        raise target
    return target


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


def require_material(connection: Connection, names: Sequence[TargetName]) -> list[Material]:
    """What scorers look at, for each name; `NOT_FOUND` or `AMBIGUOUS_TARGET` for one that means no target."""
    targets: list[Target] = []
    for target, name in zip(find_targets(connection, names), names, strict=True):
        if target is None:
            raise not_found(name.type, name.id)
        if isinstance(target, Refusal):
            raise target
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
