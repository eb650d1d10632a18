"""Counting everything again and comparing it with what is kept."""

from collections import defaultdict
from collections.abc import Iterator

from evenhand.store.connection import Connection
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
    last = ""
    while rows := connection.all(
        "SELECT id, run_count, covered_count FROM experiments WHERE id > ? ORDER BY id LIMIT ?", last, CHUNK
    ):
        for experiment_id, run_count, covered_count in rows:
            yield from _check_experiment(connection, experiment_id, run_count, covered_count)
        last = rows[-1][0]


def _check_datasets(connection: Connection) -> Iterator[str]:
    rows = connection.all(
        "SELECT id, item_count, (SELECT COUNT(*) FROM dataset_items WHERE dataset_id = datasets.id) FROM datasets"
    )
    for dataset_id, kept, counted in rows:
        if kept != counted:
            yield f"dataset {dataset_id}: item_count is {kept}, counted {counted}"


def _check_traces(connection: Connection) -> Iterator[str]:
    last = ""
    while rows := connection.all(
        "SELECT trace_key, id, project_id, span_count, error_count, tokens FROM traces WHERE trace_key > ?"
        " ORDER BY trace_key LIMIT ?",
        last,
        CHUNK,
    ):
        counted = {
            row[0]: row[1:]
            for row in connection.all(
                "SELECT trace_key, COUNT(*), COUNT(error), SUM(COALESCE(tokens_input, 0) + COALESCE(tokens_output, 0))"
                " FROM spans WHERE trace_key IN [?] GROUP BY trace_key",
                [row[0] for row in rows],
            )
        }
        for key, trace_id, project_id, *kept in rows:
            found = counted.get(key, (0, 0, 0))
            for name, has, counts in zip(("span_count", "error_count", "tokens"), kept, found, strict=True):
                if has != counts:
                    yield f"trace {trace_id} of {project_id}: {name} is {has}, counted {counts}"
        last = rows[-1][0]


class _Recount:
    """The aggregates of one experiment, from its scores."""

    def __init__(self) -> None:
        self.runs = 0
        self.covered: set[str] = set()
        self.scorers: defaultdict[str, ScorerTotals] = defaultdict(ScorerTotals)
        self.labels: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.items: defaultdict[str, dict[str, ItemTotals]] = defaultdict(dict)

    def add(self, name: str, item_id: str, number: float | None, label: str | None, *, new_run: bool) -> None:
        totals = self.scorers[name]
        if number is None:
            totals = totals._replace(label_count=totals.label_count + 1)
            self.labels[name][label or ""] += 1
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
        "SELECT id, dataset_item_id FROM runs WHERE experiment_id = ? AND id > ? ORDER BY id LIMIT ?",
        experiment_id,
        last,
        CHUNK,
    ):
        recount.runs += len(rows)
        items: dict[str, str] = dict(rows)
        recount.covered.update(items.values())
        seen: set[tuple[str, str]] = set()
        for target_id, name, number, label in connection.all(
            "SELECT target_id, scorer_name, number, label FROM scores"
            " WHERE target_id IN [?] AND target_type = 'run' ORDER BY id",
            list(items),
        ):
            new_run = (target_id, name) not in seen
            seen.add((target_id, name))
            recount.add(name, items[target_id], number, label, new_run=new_run)
        last = rows[-1][0]
    return recount


def _check_experiment(
    connection: Connection, experiment_id: str, run_count: int, covered_count: int
) -> Iterator[str]:
    recount = _recount(connection, experiment_id)
    where = f"experiment {experiment_id}"
    if run_count != recount.runs:
        yield f"{where}: run_count is {run_count}, counted {recount.runs}"
    if covered_count != len(recount.covered):
        yield f"{where}: covered_count is {covered_count}, counted {len(recount.covered)}"
    kept: dict[Key, ScorerTotals] = scorer_totals(connection, [experiment_id])
    kept_items = item_totals(connection, experiment_id)
    kept_labels = label_totals(connection, experiment_id)
    for name in sorted({*recount.scorers, *(key[1] for key in kept)}):
        scorer = f"{where}, scorer '{name}'"
        if kept.get((experiment_id, name), ScorerTotals()) != recount.scorers[name]:
            yield f"{scorer}: the totals differ from a recount"
        if kept_labels.get(name, {}) != recount.labels[name]:
            yield f"{scorer}: the label counts differ from a recount"
        if not _same_items(kept_items.get(name, {}), recount.items[name]):
            yield f"{scorer}: the items' totals differ from a recount"
        clusters = {k: c for k, c in cluster_totals(connection, experiment_id, name).items() if c.items}
        if clusters != recount.clusters(name):
            yield f"{scorer}: the clusters differ from a recount"


def _same_items(kept: dict[str, ItemTotals], counted: dict[str, ItemTotals]) -> bool:
    # The newest label is that of the last commit; a recount goes run by run and may see another as the last.
    def comparable(items: dict[str, ItemTotals]) -> dict[str, ItemTotals]:
        return {item_id: item._replace(label=None) for item_id, item in items.items()}

    return comparable(kept) == comparable(counted)
