"""Scores: stored together with the aggregates that count them."""

from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter

from msgspec import Raw, Struct

from evenhand.core.ids import new_id
from evenhand.core.objects.scores import Score, Source, TargetType
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row, Value
from evenhand.store.pages import oldest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.targets import Target, find_targets
from evenhand.store.totals import Counted, Key, add_to_totals
from evenhand.store.versions import Computed, VersionKey, add_to_versions

_INSERT = """INSERT INTO scores (id, project_id, target_type, target_id, trace_key, experiment_id, dataset_item_id,
    scorer_name, number, label, rationale, config, metadata, source, created_at, canonical_name, scorer_version,
    scorer_options) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_COLUMNS = (
    "id, target_id, target_type, scorer_name, number, label, rationale, config, metadata, source, created_at,"
    " canonical_name, scorer_version, scorer_options"
)


class Measurement(Struct, frozen=True, kw_only=True):
    """A score's content, without what it is attached to."""

    scorer_name: str
    """Who or what measured."""
    value: float | str
    """A number from 0 to 1, or a label."""
    rationale: str | None = None
    """Why."""
    config: str | None = None
    """The scorer's parameters: JSON text."""
    metadata: str | None = None
    """A JSON object as text."""
    source: Source = "custom"
    """Who computed it."""
    canonical_name: str | None = None
    """The scorer that the service ran, by its one name; None for a submitted value."""
    version: str | None = None
    """Its version."""
    options: str | None = None
    """The options it ran with, defaults included: JSON text."""


class ScoreRequest(Struct, frozen=True, kw_only=True):
    """A score for a target that is yet to be found."""

    target_type: TargetType
    """`run` or `span`."""
    target_id: str
    """Its id."""
    scope: Scope
    """The project in which the target must be."""
    measurement: Measurement
    """The score."""


def store_requests(connection: Connection, requests: Sequence[ScoreRequest]) -> list[Score | Exception]:
    """Store the scores of many requests at once; a target that is not there is that request's own error."""
    targets = find_targets(connection, [(r.target_type, r.target_id, r.scope) for r in requests])
    found = [
        (target, request.measurement)
        for target, request in zip(targets, requests, strict=True)
        if target is not None
    ]
    made = iter(insert_scores(connection, found))
    return [
        next(made) if target is not None else not_found(request.target_type, request.target_id)
        for target, request in zip(targets, requests, strict=True)
    ]


def insert_scores(connection: Connection, scores: Sequence[tuple[Target, Measurement]]) -> list[Score]:
    """Store scores of targets that are known to exist, and count them in the aggregates."""
    if not scores:
        return []
    stamp = format_instant(now())
    rows: list[tuple[Value, ...]] = []
    made: list[Score] = []
    for target, measurement in scores:
        score = _made(target, measurement, stamp)
        number = measurement.value if isinstance(measurement.value, float) else None
        label = measurement.value if isinstance(measurement.value, str) else None
        rows.append(
            (score.id, target.project_id, target.type, target.id, target.trace_key, target.experiment_id,
             target.dataset_item_id, measurement.scorer_name, number, label, measurement.rationale,
             measurement.config, measurement.metadata, measurement.source, stamp, measurement.canonical_name,
             measurement.version, measurement.options)
        )  # fmt: skip
        made.append(score)
    with connection.pipelined():
        _count(connection, scores)
        connection.run_many(_INSERT, rows)
    return made


def _made(target: Target, measurement: Measurement, stamp: str) -> Score:
    return Score(
        id=new_id(),
        target_id=target.id,
        target_type=target.type,
        scorer_name=measurement.scorer_name,
        value=measurement.value,
        rationale=measurement.rationale,
        config=_raw(measurement.config),
        metadata=_raw(measurement.metadata),
        source=measurement.source,
        created_at=stamp,
        canonical_name=measurement.canonical_name,
        scorer_version=measurement.version,
        scorer_options=_raw(measurement.options),
    )


def _count(connection: Connection, scores: Sequence[tuple[Target, Measurement]]) -> None:
    counted: defaultdict[Key, list[Counted]] = defaultdict(list)
    computed: defaultdict[VersionKey, list[Computed]] = defaultdict(list)
    for target, measurement in scores:
        if target.experiment_id is None or target.dataset_item_id is None:
            continue
        value = measurement.value
        number, label = (None, value) if isinstance(value, str) else (value, None)
        key = (target.experiment_id, measurement.scorer_name)
        counted[key].append(Counted(target.id, target.dataset_item_id, number, label))
        if measurement.canonical_name is not None:
            version = VersionKey(*key, measurement.canonical_name, measurement.version or "")
            computed[version].append(Computed(value, measurement.options or "{}"))
    if counted:
        add_to_totals(connection, counted)
    if computed:
        add_to_versions(connection, computed)


def list_scores(
    connection: Connection,
    *,
    target: Target,
    scorer_name: str | None,
    after: str | None,
    limit: int,
) -> list[Score]:
    """Oldest first."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM scores WHERE target_type = ? AND project_id = ? AND (? = '' OR scorer_name = ?)"  # noqa: S608  constant texts
        f" AND {oldest_first('target_id', 'id')}",
        target.type,
        target.project_id,
        scorer_name or "",
        scorer_name or "",
        target.id,
        after or "",
        target.id,
        limit,
    )
    return [_score(row) for row in rows]


def get_score(connection: Connection, score_id: str) -> Score:
    """One score; the caller has checked that it may be seen."""
    row = connection.one(f"SELECT {_COLUMNS} FROM scores WHERE id = ?", score_id)  # noqa: S608  constant columns
    if row is None:
        raise not_found("score", score_id)
    return _score(row)


def scores_of_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[Score]]:
    """By run, oldest first."""
    rows = connection.look_up(
        _COLUMNS, "FROM scores WHERE target_id IN [?] AND target_type = 'run'", run_ids
    )()
    return _by_target(rows)


def scores_of_trace(connection: Connection, trace_key: str) -> dict[str, list[Score]]:
    """By span, oldest first."""
    return _by_target(connection.all(f"SELECT {_COLUMNS} FROM scores WHERE trace_key = ?", trace_key))  # noqa: S608  constant columns


def scores_of_span(connection: Connection, trace_key: str, span_id: str) -> list[Score]:
    """The scores of one span, oldest first."""
    rows = connection.all(
        f"SELECT {_COLUMNS} FROM scores WHERE target_id = ? AND trace_key = ?",  # noqa: S608  constant columns
        span_id,
        trace_key,
    )
    return _by_target(rows).get(span_id, [])


def _by_target(rows: list[Row]) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for row in sorted(rows, key=itemgetter(0)):
        found.setdefault(row[1], []).append(_score(row))
    return found


def _score(row: Row) -> Score:
    return Score(
        id=row[0],
        target_id=row[1],
        target_type=row[2],
        scorer_name=row[3],
        value=row[5] if row[4] is None else row[4],
        rationale=row[6],
        config=_raw(row[7]),
        metadata=_raw(row[8]),
        source=row[9],
        created_at=row[10],
        canonical_name=row[11],
        scorer_version=row[12],
        scorer_options=_raw(row[13]),
    )


def _raw(text: str | None) -> Raw | None:
    return None if text is None else Raw(text.encode())
