"""The aggregates of scores, kept in the score's own transaction.

Sums are exact: a score is the decimal that a person reads (the shortest text of its float), and decimals of at most
341 places are added and squared without rounding, in 1,000 digits of which 700 suffice.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, Inexact
from typing import Any, NamedTuple

from evenhand.store.connection import Connection, Row

EXACT = Context(prec=1_000, Emin=-999_999, Emax=999_999, traps=[Inexact])
ZERO = Decimal(0)

UPSERT_SCORER = """INSERT INTO scorer_totals (experiment_id, scorer_name, score_count, total, squares, minimum,
    maximum, label_count, run_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (experiment_id, scorer_name) DO UPDATE SET score_count = excluded.score_count,
    total = excluded.total, squares = excluded.squares, minimum = excluded.minimum, maximum = excluded.maximum,
    label_count = excluded.label_count, run_count = excluded.run_count"""
_UPSERT_LABEL = """INSERT INTO label_totals (experiment_id, scorer_name, label_hash, label, score_count)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (experiment_id, scorer_name, label_hash)
    DO UPDATE SET score_count = label_totals.score_count + excluded.score_count"""
UPSERT_ITEM = """INSERT INTO item_totals (experiment_id, scorer_name, dataset_item_id, score_count, passes, total,
    label_count, label, minimum, maximum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (experiment_id, scorer_name, dataset_item_id) DO UPDATE SET score_count = excluded.score_count,
    passes = excluded.passes, total = excluded.total, label_count = excluded.label_count, label = excluded.label,
    minimum = excluded.minimum, maximum = excluded.maximum"""
_UPSERT_CLUSTER = """INSERT INTO cluster_totals (experiment_id, scorer_name, score_count, passes, items, total,
    squares) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (experiment_id, scorer_name, score_count, passes) DO UPDATE SET items = excluded.items,
    total = excluded.total, squares = excluded.squares"""

Key = tuple[str, str]
"""An experiment and a scorer's name."""
Ask = Callable[[], list[Row]]
"""A question that is on its way."""


class Counted(NamedTuple):
    """What the aggregates need of one new score."""

    run_id: str
    item_id: str
    number: float | None
    label: str | None


class ScorerTotals(NamedTuple):
    """All scores of one scorer in one experiment."""

    score_count: int = 0
    total: Decimal = ZERO
    squares: Decimal = ZERO
    minimum: float | None = None
    maximum: float | None = None
    label_count: int = 0
    run_count: int = 0


class ItemTotals(NamedTuple):
    """The same for one item."""

    score_count: int = 0
    passes: int = 0
    total: Decimal = ZERO
    label_count: int = 0
    label: str | None = None
    minimum: float | None = None
    maximum: float | None = None


class ClusterTotals(NamedTuple):
    """The items with the same number of scores and of passes."""

    items: int = 0
    total: Decimal = ZERO
    squares: Decimal = ZERO


_NO_SCORES = ItemTotals()


def decimal_of(number: float) -> Decimal:
    """The decimal that a person reads."""
    return Decimal(repr(number))


def add_to_totals(connection: Connection, scores: dict[Key, list[Counted]]) -> None:
    """Count new scores in; called before they are stored."""
    keys = sorted(scores)
    asked = _ask_scorers(connection, sorted({key[0] for key in keys}), sorted({key[1] for key in keys}))
    asked_items = {
        key: ask_items(connection, key, sorted({score.item_id for score in scores[key]})) for key in keys
    }
    asked_clusters = {key: ask_clusters(connection, *key) for key in keys}
    stored = _read_scorers(asked)
    items = {key: read_items(ask) for key, ask in asked_items.items()}
    new_runs = _new_runs(connection, scores, items)
    scorer_rows: list[tuple[str | int | float | None, ...]] = []
    label_rows: list[tuple[str | int, ...]] = []
    for key in keys:
        before = stored.get(key, ScorerTotals())
        after = with_scores(before, scores[key], new_runs[key])
        scorer_rows.append(
            (*key, after.score_count, str(after.total), str(after.squares), after.minimum, after.maximum,
             after.label_count, after.run_count)
        )  # fmt: skip
        if after.label_count != before.label_count:
            label_rows += _label_rows(key, scores[key])
        _add_items(connection, key, scores[key], items[key], asked_clusters[key])
    connection.run_many(UPSERT_SCORER, scorer_rows)
    if label_rows:
        connection.run_many(_UPSERT_LABEL, label_rows)


def _new_runs(
    connection: Connection, scores: dict[Key, list[Counted]], items: dict[Key, dict[str, ItemTotals]]
) -> dict[Key, int]:
    """How many of the runs had no score of that scorer before. Only an item that has scores leaves a doubt."""
    runs = {key: {score.run_id for score in own} for key, own in scores.items()}
    doubtful = {score.run_id for key, own in scores.items() for score in own if score.item_id in items[key]}
    scored: set[tuple[str, str]] = set()
    if doubtful:
        ask = connection.ask_texts(
            "target_id, scorer_name",
            "FROM (SELECT DISTINCT target_id, scorer_name FROM scores WHERE target_id IN [?]"
            " AND target_type = 'run') AS scored",
            sorted(doubtful),
        )
        scored = {(row[0], row[1]) for row in ask()}
    return {key: sum((run_id, key[1]) not in scored for run_id in own) for key, own in runs.items()}


def with_scores(before: ScorerTotals, scores: Iterable[Counted], new_runs: int) -> ScorerTotals:
    count, total, squares, low, high, labels, runs = before
    for score in scores:
        if score.number is None:
            labels += 1
            continue
        value = decimal_of(score.number)
        count += 1
        total = EXACT.add(total, value)
        squares = EXACT.add(squares, EXACT.multiply(value, value))
        low = score.number if low is None or score.number < low else low
        high = score.number if high is None or score.number > high else high
    return ScorerTotals(count, total, squares, low, high, labels, runs + new_runs)


def _label_rows(key: Key, scores: Iterable[Counted]) -> list[tuple[str | int, ...]]:
    counts: defaultdict[str, int] = defaultdict(int)
    for score in scores:
        if score.label is not None:
            counts[score.label] += 1
    return [(*key, label_hash(label), label, count) for label, count in sorted(counts.items())]


def label_hash(label: str) -> str:
    """Labels can be long; an index entry cannot."""
    return hashlib.sha256(label.encode()).hexdigest()


def _add_items(
    connection: Connection, key: Key, scores: Sequence[Counted], stored: dict[str, ItemTotals], clusters: Ask
) -> None:
    by_item: defaultdict[str, list[Counted]] = defaultdict(list)
    for score in scores:
        by_item[score.item_id].append(score)
    moves: list[tuple[ItemTotals, ItemTotals]] = []
    rows: list[tuple[str | int | float | None, ...]] = []
    for item_id in sorted(by_item):
        before = stored.get(item_id, _NO_SCORES)
        after = item_with_scores(before, by_item[item_id])
        moves.append((before, after))
        rows.append(item_row(key, item_id, after))
    connection.run_many(UPSERT_ITEM, rows)
    move_clusters(connection, key, moves, clusters)


def item_row(key: Key, item_id: str, totals: ItemTotals) -> tuple[str | int | float | None, ...]:
    return (
        *key, item_id, totals.score_count, totals.passes, str(totals.total), totals.label_count, totals.label,
        totals.minimum, totals.maximum,
    )  # fmt: skip


def item_with_scores(before: ItemTotals, scores: Iterable[Counted]) -> ItemTotals:
    count, passes, total, labels, label, low, high = before
    for score in scores:
        number = score.number
        if number is None:
            labels, label = labels + 1, score.label
        else:
            count, total = count + 1, EXACT.add(total, decimal_of(number))
            passes += number == 1.0
            low = number if low is None or number < low else low
            high = number if high is None or number > high else high
    return ItemTotals(count, passes, total, labels, label, low, high)


def move_clusters(
    connection: Connection, key: Key, moves: Sequence[tuple[ItemTotals, ItemTotals]], clusters: Ask
) -> None:
    """Items go from the cluster of their old counts to that of their new ones."""
    changes: dict[tuple[int, int], list[Any]] = {}
    for pair in moves:
        for item, sign in zip(pair, (-1, 1), strict=True):
            if not item.score_count:
                continue
            change = changes.setdefault((item.score_count, item.passes), [0, ZERO, ZERO])
            change[0] += sign
            square = EXACT.multiply(item.total, item.total)
            # Not the minus sign: that would round to the thread's own precision.
            step = EXACT.add if sign > 0 else EXACT.subtract
            change[1], change[2] = step(change[1], item.total), step(change[2], square)
    # A group can move an item out of a cluster and another of the same total in: nothing to write then.
    places = sorted(place for place, change in changes.items() if any(change))
    if not places:
        return
    stored = _read_clusters(clusters)
    rows: list[tuple[str | int, ...]] = []
    for place in places:
        old, (items, total, squares) = stored.get(place, ClusterTotals()), changes[place]
        rows.append(
            (*key, *place, old.items + items, str(EXACT.add(old.total, total)),
             str(EXACT.add(old.squares, squares)))
        )  # fmt: skip
    connection.run_many(_UPSERT_CLUSTER, rows)


def scorer_totals(
    connection: Connection, experiment_ids: Sequence[str], scorer_names: Sequence[str] | None = None
) -> dict[Key, ScorerTotals]:
    """The totals of every scorer (or of those named) in the experiments."""
    return _read_scorers(_ask_scorers(connection, experiment_ids, scorer_names))


def _ask_scorers(
    connection: Connection, experiment_ids: Sequence[str], scorer_names: Sequence[str] | None
) -> Ask:
    columns = (
        "experiment_id, scorer_name, score_count, total, squares, minimum, maximum, label_count, run_count"
    )
    select = f"SELECT {columns} FROM scorer_totals WHERE experiment_id IN [?]"  # noqa: S608  constant columns
    if scorer_names is None:
        return connection.ask(select, experiment_ids)
    return connection.ask(f"{select} AND scorer_name IN [?]", experiment_ids, scorer_names)


def _read_scorers(ask: Ask) -> dict[Key, ScorerTotals]:
    return {
        (row[0], row[1]): ScorerTotals(row[2], Decimal(row[3]), Decimal(row[4]), *row[5:]) for row in ask()
    }


def cluster_totals(
    connection: Connection, experiment_id: str, scorer_name: str
) -> dict[tuple[int, int], ClusterTotals]:
    """By number of scores and of passes; clusters that lost all their items are still there, with a count of 0."""
    return _read_clusters(ask_clusters(connection, experiment_id, scorer_name))


def ask_clusters(connection: Connection, experiment_id: str, scorer_name: str) -> Ask:
    return connection.ask_texts(
        "score_count, passes, items, total, squares",
        "FROM cluster_totals WHERE experiment_id = ? AND scorer_name = ?",
        experiment_id,
        scorer_name,
    )


def _read_clusters(ask: Ask) -> dict[tuple[int, int], ClusterTotals]:
    return {(row[0], row[1]): ClusterTotals(row[2], Decimal(row[3]), Decimal(row[4])) for row in ask()}


def label_totals(connection: Connection, experiment_id: str) -> dict[str, dict[str, int]]:
    """How often each label was given, by scorer."""
    found: dict[str, dict[str, int]] = {}
    for scorer_name, label, count in connection.all(
        "SELECT scorer_name, label, score_count FROM label_totals WHERE experiment_id = ?"
        " ORDER BY scorer_name, label_hash",
        experiment_id,
    ):
        found.setdefault(scorer_name, {})[label] = count
    return found


def ask_items(connection: Connection, key: Key, ids: Sequence[str]) -> Ask:
    return connection.look_up(
        "dataset_item_id, score_count, passes, total, label_count, label, minimum, maximum",
        "FROM item_totals WHERE experiment_id = ? AND scorer_name = ? AND dataset_item_id IN [?]",
        *key,
        ids,
    )


def read_items(ask: Ask) -> dict[str, ItemTotals]:
    return {row[0]: ItemTotals(row[1], row[2], Decimal(row[3]), *row[4:]) for row in ask()}


def item_totals(
    connection: Connection, experiment_id: str, scorer_name: str | None = None
) -> dict[str, dict[str, ItemTotals]]:
    """By scorer (all, or the one named), then by item."""
    found: dict[str, dict[str, ItemTotals]] = {}
    for row in connection.all(
        "SELECT scorer_name, dataset_item_id, score_count, passes, total, label_count, label, minimum, maximum"
        " FROM item_totals"
        " WHERE experiment_id = ? AND (? = '' OR scorer_name = ?)",
        experiment_id,
        scorer_name or "",
        scorer_name or "",
    ):
        found.setdefault(row[0], {})[row[1]] = ItemTotals(row[2], row[3], Decimal(row[4]), *row[5:])
    return found
