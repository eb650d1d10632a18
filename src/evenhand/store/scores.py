"""Scores: stored together with the aggregates that count them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from msgspec import Raw, Struct
from msgspec.structs import asdict

from evenhand.core.ids import new_id
from evenhand.core.objects.scores import ListedScore, Score, Source, TargetType
from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection, Row, Value
from evenhand.store.pages import LAST, MOST_BYTES, Cut, as_cut, bounded_rows, oldest_first
from evenhand.store.projects import Scope, not_found
from evenhand.store.score_hours import HOUR, add_to_hours
from evenhand.store.targets import Target, TargetName, find_targets
from evenhand.store.totals import Counted, Key, add_to_totals
from evenhand.store.versions import Computed, VersionKey, add_to_versions

_INSERT = """INSERT INTO scores (id, project_id, target_type, target_id, trace_key, experiment_id, dataset_item_id,
    scorer_name, number, label, rationale, config, metadata, source, created_at, canonical_name, scorer_version,
    scorer_options) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_COLUMNS = (
    "id, target_id, target_type, scorer_name, number, label, rationale, config, metadata, source, created_at,"
    " canonical_name, scorer_version, scorer_options"
)

_TEXTS = ("rationale", "config", "metadata", "label", "scorer_options")
ROOM = 500
"""What a score takes beside its texts."""
_LISTED = f"{_COLUMNS}, experiment_id, dataset_item_id, trace_key"


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

    target: TargetName
    """What is scored."""
    measurement: Measurement
    """The score."""


def store_requests(connection: Connection, requests: Sequence[ScoreRequest]) -> list[Score | Exception]:
    """Store the scores of many requests at once; a target that is not there is that request's own error."""
    targets = find_targets(connection, [request.target for request in requests])
    found = [
        (target, request.measurement)
        for target, request in zip(targets, requests, strict=True)
        if isinstance(target, Target)
    ]
    made = iter(insert_scores(connection, found))
    return [
        next(made)
        if isinstance(target, Target)
        else target or not_found(request.target.type, request.target.id)
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
        add_to_hours(connection, stamp, ((row[1], row[7], row[8]) for row in rows))  # type: ignore[misc]  # as above
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
) -> list[ListedScore]:
    """Oldest first."""
    rows = bounded_rows(
        connection,
        _COLUMNS,
        _TEXTS,
        # COALESCE: the index of the target is meant, not one of the project.
        "FROM scores WHERE target_type = ? AND COALESCE(project_id, '') = ? AND (? = '' OR trace_key = ?)"
        f" AND (? = '' OR scorer_name = ?) AND {oldest_first('target_id', 'id', limited=False)}",
        [
            target.type,
            target.project_id,
            target.trace_key or "",
            target.trace_key or "",
            scorer_name or "",
            scorer_name or "",
            target.id,
            after or "",
            target.id,
        ],
        limit,
    )
    return as_cut(rows, [ListedScore(**asdict(_score(row))) for row in rows])


class ScoreFilter(Struct, frozen=True, kw_only=True):
    """Which scores of a project are listed."""

    scorer_name: str | None = None
    """Only this scorer's."""
    target_type: TargetType | None = None
    """Only those of runs, or of spans."""
    min_value: float | None = None
    """Only numbers of at least this."""
    max_value: float | None = None
    """Only numbers of at most this."""
    label: str | None = None
    """Only this label."""
    source: Source | None = None
    """Only those that this computed."""
    since: str = ""
    """Stored at this instant or later."""
    until: str = LAST
    """Stored before this instant."""

    @property
    def by_value(self) -> bool:
        return self.min_value is not None or self.max_value is not None


Place = tuple[str, str]
"""Where a list goes on: instant and id."""


def list_project_scores(
    connection: Connection, *, project_id: str, narrow: ScoreFilter, before: Place | None, limit: int
) -> list[ListedScore]:
    """Newest first. By value, only the hours that hold such numbers are looked at."""
    end = min(before or (LAST, LAST), (narrow.until, ""))
    if not narrow.by_value or narrow.scorer_name is None:
        return _scores_between(connection, project_id, narrow, narrow.since, end, limit)
    found: list[ListedScore] = []
    used = 0
    for first, last in _stretches(connection, project_id, narrow, end[0]):
        start, stop = max(first, narrow.since), min((f"{last}{LAST}", LAST), end)
        more = _scores_between(connection, project_id, narrow, start, stop, limit - len(found), used)
        found += more
        used += sum(len(text) for one in more for text in (one.rationale, one.config, one.metadata) if text)
        if isinstance(more, Cut):
            return Cut(found)
        if len(found) >= limit:
            break
    return found


def _stretches(
    connection: Connection, project_id: str, narrow: ScoreFilter, end: str
) -> Iterator[tuple[str, str]]:
    """First and last of neighbouring hours that may hold what is looked for, newest first."""
    low, high = narrow.min_value, narrow.max_value
    rows = connection.all(
        "SELECT hour, (minimum <= ? AND maximum >= ?) FROM score_hours"
        " WHERE (project_id, scorer_name, hour) >= (?, ?, ?) AND (project_id, scorer_name, hour) <= (?, ?, ?)"
        " ORDER BY project_id DESC, scorer_name DESC, hour DESC",
        1.0 if high is None else high,
        0.0 if low is None else low,
        project_id,
        narrow.scorer_name,
        narrow.since[:HOUR],
        project_id,
        narrow.scorer_name,
        end[:HOUR],
    )
    for holds, hours in groupby(rows, key=lambda row: bool(row[1])):
        if holds:
            own = [row[0] for row in hours]
            yield own[-1], own[0]


def _scores_between(
    connection: Connection,
    project_id: str,
    narrow: ScoreFilter,
    since: str,
    end: Place,
    limit: int,
    used: int = 0,
) -> list[ListedScore]:
    owner, values = "project_id", [project_id]
    if narrow.scorer_name is not None:
        owner, values = "project_id, scorer_name", [project_id, narrow.scorer_name]
    marks = ", ".join("?" * len(values))
    conditions: list[str] = []
    more: list[Value] = []
    for condition, value in (
        ("number >= ?", narrow.min_value),
        ("number <= ?", narrow.max_value),
        ("label = ?", narrow.label),
        ("target_type = ?", narrow.target_type),
        ("source = ?", narrow.source),
    ):
        if value is not None:
            conditions.append(f" AND {condition}")
            more.append(value)
    order = ", ".join(f"{column} DESC" for column in (*owner.split(", "), "created_at", "id"))
    rows = bounded_rows(
        connection,
        _LISTED,
        _TEXTS,
        f"FROM scores WHERE ({owner}, created_at, id) < ({marks}, ?, ?) AND ({owner}, created_at) >= ({marks}, ?)"
        f"{''.join(conditions)} ORDER BY {order}",
        [*values, *end, *values, since, *more],
        limit,
        used=used,
    )
    return as_cut(rows, _listed(connection, rows))


def _listed(connection: Connection, rows: list[Row]) -> list[ListedScore]:
    keys = sorted({row[16] for row in rows if row[16] is not None})
    traces: dict[str, str] = {}
    if keys:
        traces = dict(connection.look_up("trace_key, id", "FROM traces WHERE trace_key IN [?]", keys)())
    return [
        ListedScore(
            **asdict(_score(row)),
            experiment_id=row[14],
            dataset_item_id=row[15],
            trace_id=traces.get(row[16]),
        )
        for row in rows
    ]


def get_score(connection: Connection, score_id: str, *, scope: Scope) -> Score:
    row = connection.one(f"SELECT {_COLUMNS}, project_id FROM scores WHERE id = ?", score_id)  # noqa: S608  constant columns
    if row is None or scope not in (None, row[14]):
        raise not_found("score", score_id)
    return _score(row)


class ScoresOf(NamedTuple):
    """The scores of some targets, as far as an answer has room for them."""

    scores: dict[str, list[Score]]
    """By target, oldest first."""
    left_out: dict[str, int]
    """How many there are beside, where a single target has more than `MOST_BYTES` of them."""


_LENGTHS = f"COUNT(*), SUM({' + '.join(f'COALESCE(LENGTH({text}), 0)' for text in _TEXTS)} + {ROOM})"


def lengths_of_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """How many scores each run has, and how long they are together; runs without any are absent."""
    source = "FROM scores WHERE target_id IN [?] AND target_type = 'run' GROUP BY target_id"
    found = connection.look_up(f"target_id, {_LENGTHS}", source, run_ids)() if run_ids else []
    return {run_id: (count, int(length)) for run_id, count, length in found}


def lengths_of_spans(
    connection: Connection, trace_key: str, span_id: str | None = None
) -> dict[str, tuple[int, int]]:
    """The same for the spans of a trace, or for one of them."""
    found = connection.all(
        # COALESCE: the index of the trace is meant, not the order of the targets.
        f"SELECT COALESCE(target_id, ''), {_LENGTHS} FROM scores WHERE trace_key = ?"  # noqa: S608  constant texts
        f"{'' if span_id is None else ' AND target_id = ?'} GROUP BY COALESCE(target_id, '')",
        trace_key,
        *([] if span_id is None else [span_id]),
    )
    return {found_id: (count, int(length)) for found_id, count, length in found}


def scores_of_targets(
    connection: Connection, lengths: Mapping[str, tuple[int, int]], trace_key: str | None
) -> ScoresOf:
    """The scores of runs, or of a trace's spans, that have some. Of a target that has too many alone, the oldest are read."""
    few = [target_id for target_id, (_, length) in lengths.items() if length <= MOST_BYTES]
    # COALESCE: the index of the trace is meant; many traces have spans of the same id.
    source, values = "target_type = 'run' AND target_id", []
    if trace_key is not None:
        source, values = "trace_key = ? AND COALESCE(target_id, '')", [trace_key]
    rows: list[Row] = []
    if few and trace_key is None:
        rows = connection.look_up(_COLUMNS, f"FROM scores WHERE {source} IN [?]", few)()
    elif few:
        rows = connection.all(f"SELECT {_COLUMNS} FROM scores WHERE {source} IN [?]", *values, few)  # noqa: S608  constant texts
    for target_id in lengths.keys() - few:
        one = f"FROM scores WHERE {source} = ? ORDER BY id"
        rows += bounded_rows(connection, _COLUMNS, _TEXTS, one, [*values, target_id], MOST_BYTES // ROOM)
    scores = _by_target(rows)
    left_out = {target_id: lengths[target_id][0] - len(found) for target_id, found in scores.items()}
    return ScoresOf(scores, {target_id: count for target_id, count in left_out.items() if count > 0})


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
