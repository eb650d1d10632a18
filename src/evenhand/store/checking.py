"""Counting everything again and comparing it with what is kept."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.core.spans import MOST_PICO, PICO
from evenhand.core.terminal import preview
from evenhand.store.arrivals import facet_lines, model_line
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import oldest_first
from evenhand.store.schema import differences, expected_schema, read_schema
from evenhand.store.totals import (
    EXACT,
    ClusterTotals,
    Counted,
    ItemTotals,
    Key,
    ScorerTotals,
    cluster_totals,
    decimal_of,
    item_totals,
    item_with_scores,
    label_totals,
    scorer_totals,
)
from evenhand.store.trace_marks import LENGTH, last_unmarked, marks_of
from evenhand.store.trace_totals import STRETCH, TRACE_COLUMNS, TraceTotals, totals_of
from evenhand.store.versions import Computed, VersionKey, VersionTotals, version_totals, with_computed

CHUNK = 2_000


def check(connection: Connection) -> Iterator[str]:
    """One sentence for each thing that is not as it should be; none when all is well."""
    if connection.kind == "sqlite":
        for (finding,) in connection.all("PRAGMA integrity_check"):
            if finding != "ok":
                yield f"the file is damaged: {finding}"
    schema, expected = read_schema(connection), expected_schema()
    yield from differences(schema, expected)
    if schema.tables != expected.tables:
        return  # what the counting relies upon is not there
    yield from _check_datasets(connection)
    yield from _check_traces(connection)
    yield from _check_trace_totals(connection)
    yield from _check_blocks(connection)
    yield from _check_hours(connection)
    last = ""
    while rows := connection.all(
        "SELECT id, run_count, covered_count FROM experiments WHERE id > ? ORDER BY id LIMIT ?", last, CHUNK
    ):
        for experiment_id, run_count, covered_count in rows:
            yield from _check_experiment(connection, experiment_id, run_count, covered_count)
        last = rows[-1][0]


def _check_datasets(connection: Connection) -> Iterator[str]:
    last = ""
    while rows := connection.all(
        "SELECT id, item_count, version FROM datasets WHERE id > ? ORDER BY id LIMIT ?", last, CHUNK
    ):
        counted = {
            row[0]: row[1:]
            for row in connection.look_up(
                "dataset_id, COUNT(CASE WHEN removed_in IS NULL THEN 1 END), MAX(version),"
                " COALESCE(MAX(removed_in), 0)",
                "FROM dataset_items WHERE dataset_id IN [?] GROUP BY dataset_id",
                [row[0] for row in rows],
            )()
        }
        for dataset_id, *kept in rows:
            # A dataset starts as version 1, and every change brings or takes items of its own version.
            present, newest, removed = counted.get(dataset_id, (0, 1, 0))
            found = (present, max(newest, removed))
            yield from _compare(f"dataset {dataset_id}", ("item_count", "version"), kept, found)
            yield from _check_versions(connection, dataset_id)
        last = rows[-1][0]


def _check_hours(connection: Connection) -> Iterator[str]:
    """The hours of a project's scores. Their sums are floats, whose last digits depend on the order."""
    last = ""
    while rows := connection.all("SELECT id FROM projects WHERE id > ? ORDER BY id LIMIT ?", last, CHUNK):
        for (project_id,) in rows:
            yield from _first(_compare_hours(connection, project_id))
        last = rows[-1][0]


def _compare_hours(connection: Connection, project_id: str) -> Iterator[str]:
    kept = {
        row[:2]: row[2:]
        for row in connection.all(
            "SELECT scorer_name, hour, score_count, label_count, minimum, maximum, total, squares FROM score_hours"
            " WHERE project_id = ?",
            project_id,
        )
    }
    counted = {
        row[:2]: row[2:]
        for row in connection.all(
            "SELECT scorer_name, SUBSTR(created_at, 1, 13), COUNT(number), COUNT(label), MIN(number), MAX(number),"
            " COALESCE(SUM(number), 0.0), COALESCE(SUM(CASE WHEN number > 1e-150 THEN number * number END), 0.0) FROM scores WHERE project_id = ?"
            " GROUP BY scorer_name, SUBSTR(created_at, 1, 13)",
            project_id,
        )
    }
    nothing = (0, 0, None, None, 0.0, 0.0)
    for key in sorted({*kept, *counted}):
        has, counts = kept.get(key, nothing), counted.get(key, nothing)
        what = f"project {project_id}, scorer '{key[0]}', hour {key[1]}"
        yield from _compare(what, ("score_count", "label_count"), has[:2], counts[:2])
        low, high, least, greatest = *has[2:4], *counts[2:4]
        # Limits: after many deletions they may be wider than what is left.
        if least is not None and (low is None or low > least or high is None or high < greatest):
            yield f"{what}: numbers are from {low} to {high}, counted {least} to {greatest}"
        for name, one, other in zip(("total", "squares"), has[4:], counts[4:], strict=True):
            if abs(one - other) > 1e-6 * max(1.0, abs(other)):
                yield f"{what}: {name} is {one}, counted {other}"


def _check_versions(connection: Connection, dataset_id: str) -> Iterator[str]:
    """Each version against its items."""
    changes: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for place, column in enumerate(("version", "removed_in")):
        for version, count in connection.all(
            f"SELECT {column}, COUNT(*) FROM dataset_items WHERE dataset_id = ? AND {column} IS NOT NULL"  # noqa: S608  constant columns
            f" GROUP BY {column}",
            dataset_id,
        ):
            changes[version][place] = count
    kept = connection.all(
        "SELECT version, added_count, removed_count, item_count FROM dataset_versions WHERE dataset_id = ?"
        " ORDER BY version",
        dataset_id,
    )
    versions = sorted({1, *changes})
    yield from _compare(f"dataset {dataset_id}", ("versions",), ([row[0] for row in kept],), (versions,))
    count = 0
    for version, *numbers in kept:
        added, removed = changes[version]
        count += added - removed
        yield from _compare(
            f"dataset {dataset_id}, version {version}",
            ("added_count", "removed_count", "item_count"),
            numbers,
            (added, removed, count),
        )


def _compare(
    what: str, names: Sequence[str], kept: Sequence[object], counted: Sequence[object]
) -> Iterator[str]:
    for name, has, counts in zip(names, kept, counted, strict=True):
        if has != counts:
            yield f"{what}: {name} is {preview(str(has), 100)}, counted {preview(str(counts), 100)}"


def _first(faults: Iterator[str]) -> Iterator[str]:
    """The first of faults of one kind, and how many there are."""
    found = list(faults)
    if found:
        yield found[0] if len(found) == 1 else f"{found[0]} (and {len(found) - 1} more like it)"


def _check_traces(connection: Connection) -> Iterator[str]:
    last = ""
    while rows := connection.all(
        "SELECT trace_key, id, project_id, span_count, error_count, tokens, annotation_count, root_span_id, root_name,"
        " root_duration_ms, metadata, facets, models, started_us FROM traces WHERE trace_key > ? ORDER BY trace_key LIMIT ?",
        last,
        CHUNK,
    ):
        keys = [row[0] for row in rows]
        spans, annotations = _spans_of(connection, keys), _annotations_of(connection, keys)
        models, roots = _models_of(connection, keys), _roots_of(connection, keys)
        yield from _first(_missing_marks(connection, rows, models, roots))
        for (
            key,
            trace_id,
            project_id,
            count,
            errors,
            tokens,
            annotated,
            root_id,
            *facts,
            lines,
            start,
        ) in rows:
            what = f"trace {trace_id} of {project_id}"
            *counted, root_count = spans.get(key, (0, 0, 0, 0, 0))
            names = ("span_count", "error_count", "tokens", "started_us")
            yield from _compare(what, names, (count, errors, tokens, start), counted)
            own, every = annotations.get(key, (0, 0))
            if annotated not in (own, every):
                yield f"{what}: annotation_count is {annotated}, counted {own}"
            if root_id is None:
                yield from _compare(what, ("roots",), (0,), (root_count,))
            elif key not in roots:
                yield f"{what}: root_span_id is {root_id}, which is no root"
            else:
                yield from _compare(what, _ROOT_FACTS, facts, (*roots[key], facet_lines(roots[key][2])))
            named = sorted(lines.split("\n")[1:-1]) if lines else []
            yield from _compare(what, ("models",), (named,), (models.get(key, []),))
        yield from _check_costs(connection, keys)
        last = rows[-1][0]


def _check_trace_totals(connection: Connection) -> Iterator[str]:
    """What the traces of a stretch of time come to; sums of durations are floats."""
    counted: defaultdict[tuple[str, str], TraceTotals] = defaultdict(TraceTotals)
    last = ""
    while rows := connection.all(
        f"SELECT {TRACE_COLUMNS}, project_id FROM traces WHERE trace_key > ? ORDER BY trace_key LIMIT ?",  # noqa: S608  constant columns
        last,
        CHUNK,
    ):
        for *row, project_id in rows:
            place = (project_id, row[0][:STRETCH])
            counted[place] = counted[place].plus(totals_of(tuple(row)))
        last = rows[-1][0]
    names = TraceTotals._fields
    kept = {
        row[:2]: TraceTotals(*row[2:])
        for row in connection.all(
            f"SELECT project_id, stretch, {', '.join(names)} FROM trace_totals"  # noqa: S608  constant columns
        )
    }
    yield from _first(
        finding
        for place in sorted({*kept, *counted})
        for finding in _compare_totals(place, kept.get(place, TraceTotals()), counted[place])
    )


def _compare_totals(place: tuple[str, str], kept: TraceTotals, counted: TraceTotals) -> Iterator[str]:
    what = f"traces of {place[0]} from {place[1]} on"
    if abs(kept.duration_ms - counted.duration_ms) > 1e-6 * max(1.0, counted.duration_ms):
        yield f"{what}: duration_ms is {kept.duration_ms}, counted {counted.duration_ms}"
    # Dollars and picodollars mean their sum: how it is divided depends on the order of arrivals.
    exact = [
        (*(value for name, value in zip(one._fields, one, strict=True) if name in _EXACT), one.total_pico)
        for one in (kept, counted)
    ]
    yield from _compare(what, (*_EXACT, "cost"), *exact)


_EXACT = ("trace_count", "span_count", "failed_count", "timed_count", "tokens", "cost_known", "cost_unknown")


def _check_blocks(connection: Connection) -> Iterator[str]:
    """Every block that spans are in is listed, so that they are found by their ids."""
    listed: dict[int, int] = dict(connection.all("SELECT number, span_count FROM span_blocks"))
    for block, count in connection.all("SELECT block, COUNT(*) FROM spans GROUP BY block ORDER BY block"):
        if block not in listed:
            yield f"{count} spans are in block {block}, which is not listed"
        elif count > listed[block]:
            yield f"block {block}: span_count is {listed[block]}, counted {count}"


def _check_costs(connection: Connection, keys: Sequence[str]) -> Iterator[str]:
    """Sums of costs, numbers of model calls, and that sessions and users are those of a span."""
    call = "(model IS NOT NULL OR tokens_input IS NOT NULL OR tokens_output IS NOT NULL OR cost_pico IS NOT NULL)"
    counted = {
        row[0]: row[1:]
        for row in connection.look_up(
            f"trace_key, SUM(cost_pico / {PICO}), SUM(cost_pico % {PICO}), COUNT(cost_pico),"
            f" COUNT(CASE WHEN cost_pico IS NULL AND {call} THEN 1 END)",
            "FROM spans WHERE trace_key IN [?] AND is_total = 0 GROUP BY trace_key",
            keys,
        )()
    }
    named: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)
    for column in ("session_id", "user_id"):
        for key, value in connection.look_up(
            f"trace_key, {column}",
            f"FROM spans WHERE trace_key IN [?] AND {column} IS NOT NULL GROUP BY trace_key, {column}",
            keys,
        )():
            named[key].add((column, value))
    rows = connection.look_up(
        "traces.trace_key, traces.id, traces.project_id, cost_pico, cost_known, cost_unknown, session_id, user_id,"
        " sessions.id",
        "FROM traces LEFT JOIN sessions ON sessions.project_id = traces.project_id AND sessions.id = session_id"
        " WHERE traces.trace_key IN [?]",
        keys,
    )()
    for key, trace_id, project_id, *kept, session_id, user_id, listed in rows:
        what = f"trace {trace_id} of {project_id}"
        whole, rest, known, unknown = counted.get(key, (None, None, 0, 0))
        cost = None if whole is None else min(int(whole) * PICO + int(rest), MOST_PICO)
        yield from _compare(what, ("cost_pico", "cost_known", "cost_unknown"), kept, (cost, known, unknown))
        for column, value in (("session_id", session_id), ("user_id", user_id)):
            of_spans = {text for of, text in named[key] if of == column}
            if value not in (of_spans or {None}):
                yield f"{what}: {column} is {preview(str(value), 100)}, which no span of it names"
        if session_id != listed:
            yield f"{what}: its session {preview(str(session_id), 100)} is not listed"


def _missing_marks(
    connection: Connection,
    rows: Sequence[Row],
    models: dict[str, list[str]],
    roots: Mapping[str, Sequence[Any]],
) -> Iterator[str]:
    """Traces that a filter would not find."""
    start = last_unmarked(connection)
    wanted: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for key, _, project_id, *_ in rows:
        if key > start:
            name, duration, metadata = roots.get(key, (None, None, "{}"))[:3]
            for mark in marks_of(name, duration, facet_lines(metadata), models.get(key, [])):
                wanted[(project_id, mark)].add(key[:LENGTH])
    for (project_id, mark), named in sorted(wanted.items()):
        found = connection.ask_texts(
            "stretch",
            "FROM trace_marks WHERE project_id = ? AND mark = ? AND stretch IN [?]",
            project_id,
            mark,
            sorted(named),
        )()
        for stretch in sorted(named - {row[0] for row in found}):
            yield f"traces of {project_id} from {stretch} on lack a mark that filters look for"


_ROOT_FACTS = ("root_name", "root_duration_ms", "metadata", "facets")


def _spans_of(connection: Connection, keys: Sequence[str]) -> dict[str, Sequence[int]]:
    """Spans, errors, tokens, the first start and roots, by trace."""
    rows = connection.look_up(
        "trace_key, COUNT(*), COUNT(error),"
        " SUM(CASE WHEN is_total = 0 THEN COALESCE(tokens_input, 0) + COALESCE(tokens_output, 0) ELSE 0 END), MIN(start_us),"
        " COUNT(CASE WHEN parent_span_id IS NULL THEN 1 END)",
        "FROM spans WHERE trace_key IN [?] GROUP BY trace_key",
        keys,
    )()
    return {row[0]: row[1:] for row in rows}


def _annotations_of(connection: Connection, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By trace: those made since it came, and all of its id.

    Annotations outlive their trace; one that comes again under its old id starts with none. Where servers' clocks
    differ, an annotation may look older than its trace: then all of them are its own.
    """
    rows = connection.look_up(
        "traces.trace_key, COUNT(CASE WHEN annotations.id > traces.trace_key THEN 1 END), COUNT(*)",
        "FROM traces JOIN annotations ON annotations.trace_id = traces.id"
        " AND annotations.project_id = traces.project_id WHERE traces.trace_key IN [?] GROUP BY traces.trace_key",
        keys,
    )()
    return {row[0]: (row[1], row[2]) for row in rows}


def _models_of(connection: Connection, keys: Sequence[str]) -> dict[str, list[str]]:
    """The lines of the models that a trace's spans name, sorted."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for key, model in connection.look_up(
        "trace_key, model", "FROM spans WHERE trace_key IN [?] AND model IS NOT NULL", keys
    )():
        found[key].add(model_line(model))
    return {key: sorted(lines) for key, lines in found.items()}


def _roots_of(connection: Connection, keys: Sequence[str]) -> dict[str, tuple[str, float | None, str]]:
    """The name, duration and metadata of the span that a trace takes for its root."""
    rows = connection.look_up(
        "traces.trace_key, spans.name, spans.duration_ms, spans.metadata",
        "FROM traces JOIN spans ON spans.trace_key = traces.trace_key AND spans.id = traces.root_span_id"
        " AND spans.parent_span_id IS NULL WHERE traces.trace_key IN [?]",
        keys,
    )()
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


class _Recount:
    """The aggregates of one experiment, from its scores."""

    def __init__(self) -> None:
        self.runs = 0
        self.covered: set[str] = set()
        self.scorers: defaultdict[str, ScorerTotals] = defaultdict(ScorerTotals)
        self.labels: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.items: defaultdict[str, dict[str, ItemTotals]] = defaultdict(dict)
        self.item_labels: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.versions: defaultdict[VersionKey, VersionTotals] = defaultdict(VersionTotals)
        self.options: defaultdict[VersionKey, set[str]] = defaultdict(set)

    def add(self, name: str, item_id: str, number: float | None, label: str | None, *, new_run: bool) -> None:
        totals = self.scorers[name]
        if number is None:
            totals = totals._replace(label_count=totals.label_count + 1)
            self.labels[name][label or ""] += 1
            self.item_labels[(name, item_id)].add(label or "")
        else:
            value = decimal_of(number)
            totals = totals._replace(
                score_count=totals.score_count + 1,
                total=EXACT.add(totals.total, value),
                squares=EXACT.add(totals.squares, EXACT.multiply(value, value)),
                minimum=number if totals.minimum is None else min(number, totals.minimum),
                maximum=number if totals.maximum is None else max(number, totals.maximum),
            )
        self.scorers[name] = totals._replace(run_count=totals.run_count + new_run)
        own = self.items[name]
        own[item_id] = item_with_scores(own.get(item_id, ItemTotals()), [Counted("", item_id, number, label)])

    def add_version(self, key: VersionKey, value: float | str, options: str) -> None:
        self.versions[key] = with_computed(self.versions[key], [Computed(value, options)])
        self.options[key].add(options)

    def clusters(self, name: str) -> dict[tuple[int, int], ClusterTotals]:
        found: dict[tuple[int, int], ClusterTotals] = {}
        for item in self.items[name].values():
            if item.score_count:
                old = found.get((item.score_count, item.passes), ClusterTotals())
                found[(item.score_count, item.passes)] = ClusterTotals(
                    old.items + 1,
                    EXACT.add(old.total, item.total),
                    EXACT.add(old.squares, EXACT.multiply(item.total, item.total)),
                )
        return found


def _recount(connection: Connection, experiment_id: str) -> _Recount:
    recount = _Recount()
    last = ""
    while rows := connection.all(
        f"SELECT id, dataset_item_id FROM runs WHERE {oldest_first('experiment_id', 'id')}",  # noqa: S608  constant texts
        experiment_id,
        last,
        experiment_id,
        CHUNK,
    ):
        recount.runs += len(rows)
        items: dict[str, str] = dict(rows)
        recount.covered.update(items.values())
        seen: set[tuple[str, str]] = set()
        for target_id, name, number, label, canonical_name, version, options in connection.look_up(
            "target_id, scorer_name, number, label, canonical_name, scorer_version, scorer_options",
            "FROM scores WHERE target_id IN [?] AND target_type = 'run'",
            list(items),
        )():
            new_run = (target_id, name) not in seen
            seen.add((target_id, name))
            recount.add(name, items[target_id], number, label, new_run=new_run)
            if canonical_name is not None:
                key = VersionKey(experiment_id, name, canonical_name, version or "")
                recount.add_version(key, label if number is None else number, options or "{}")
        last = rows[-1][0]
    return recount


def _check_experiment(
    connection: Connection, experiment_id: str, run_count: int, covered_count: int
) -> Iterator[str]:
    recount = _recount(connection, experiment_id)
    where = f"experiment {experiment_id}"
    counted = (recount.runs, len(recount.covered))
    yield from _compare(where, ("run_count", "covered_count"), (run_count, covered_count), counted)
    kept: dict[Key, ScorerTotals] = scorer_totals(connection, [experiment_id])
    kept_items = item_totals(connection, experiment_id)
    kept_labels = label_totals(connection, experiment_id)
    for name in sorted({*recount.scorers, *kept_items, *kept_labels, *(key[1] for key in kept)}):
        scorer = f"{where}, scorer '{name}'"
        totals = kept.get((experiment_id, name), ScorerTotals())
        yield from _compare(scorer, ScorerTotals._fields, totals, recount.scorers[name])
        yield from _first(_compare_labels(scorer, kept_labels.get(name, {}), recount.labels[name]))
        yield from _first(_compare_items(scorer, kept_items.get(name, {}), recount, name))
        clusters = cluster_totals(connection, experiment_id, name)
        yield from _first(_compare_clusters(scorer, clusters, recount.clusters(name)))
    yield from _compare_versions(where, version_totals(connection, [experiment_id]), recount)


def _compare_versions(where: str, kept: dict[VersionKey, VersionTotals], recount: _Recount) -> Iterator[str]:
    for key in sorted({*kept, *recount.versions}):
        has, counts = kept.get(key, VersionTotals()), recount.versions[key]
        # The options are those of any one score.
        if has.options in recount.options[key]:
            counts = counts._replace(options=has.options)
        what = f"{where}, scorer '{key.scorer_name}', {key.canonical_name} version {key.version}"
        yield from _compare(what, VersionTotals._fields, has, counts)


def _compare_labels(scorer: str, kept: dict[str, int], counted: dict[str, int]) -> Iterator[str]:
    for label in sorted({*kept, *counted}):
        pair = (kept.get(label, 0),), (counted.get(label, 0),)
        yield from _compare(f"{scorer}, label '{label}'", ("score_count",), *pair)


def _compare_items(scorer: str, kept: dict[str, ItemTotals], recount: _Recount, name: str) -> Iterator[str]:
    counted = recount.items[name]
    for item_id in sorted({*kept, *counted}):
        has, counts = kept.get(item_id, ItemTotals()), counted.get(item_id, ItemTotals())
        # The newest label is that of the last commit, which a recount cannot tell; it is one of the item's, though.
        if has.label in recount.item_labels[(name, item_id)]:
            counts = counts._replace(label=has.label)
        yield from _compare(f"{scorer}, item {item_id}", ItemTotals._fields, has, counts)


def _compare_clusters(
    scorer: str, kept: dict[tuple[int, int], ClusterTotals], counted: dict[tuple[int, int], ClusterTotals]
) -> Iterator[str]:
    for place in sorted({*kept, *counted}):
        what = f"{scorer}, items with {place[0]} scores and {place[1]} passes"
        pair = kept.get(place, ClusterTotals()), counted.get(place, ClusterTotals())
        yield from _compare(what, ClusterTotals._fields, *pair)
