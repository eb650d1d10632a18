"""Counting a deleted score out of an experiment's aggregates: sums exactly, limits and labels from what is left."""

from collections.abc import Iterator
from decimal import Decimal

from evenhand.store.connection import Connection
from evenhand.store.totals import (
    EXACT,
    UPSERT_ITEM,
    UPSERT_SCORER,
    Counted,
    ItemTotals,
    Key,
    ScorerTotals,
    ask_clusters,
    ask_items,
    decimal_of,
    item_row,
    item_with_scores,
    label_hash,
    move_clusters,
    read_items,
    scorer_totals,
)
from evenhand.store.versions import (
    UPSERT_VERSION,
    Computed,
    VersionKey,
    VersionTotals,
    version_row,
    version_totals,
    with_computed,
)

CHUNK = 2_000


def take_from_totals(
    connection: Connection,
    key: Key,
    *,
    item_id: str,
    run_id: str,
    value: float | str,
    version: tuple[str, str] | None,
) -> None:
    """The score is deleted already."""
    last_of_item = _recount_item(connection, key, item_id)
    before = scorer_totals(connection, [key[0]], [key[1]]).get(key, ScorerTotals())
    run_scored = connection.one(
        "SELECT 1 FROM scores WHERE target_id = ? AND target_type = 'run' AND scorer_name = ? LIMIT 1",
        run_id,
        key[1],
    )
    after = before._replace(run_count=before.run_count - (run_scored is None))
    if isinstance(value, str):
        after = after._replace(label_count=before.label_count - 1)
        _forget_label(connection, key, value)
    else:
        number: Decimal = decimal_of(value)
        after = after._replace(
            score_count=before.score_count - 1,
            total=EXACT.subtract(before.total, number),
            squares=EXACT.subtract(before.squares, EXACT.multiply(number, number)),
        )
        if value in (before.minimum, before.maximum):
            [(low, high)] = connection.all(
                "SELECT MIN(minimum), MAX(maximum) FROM item_totals WHERE experiment_id = ? AND scorer_name = ?",
                *key,
            )
            after = after._replace(minimum=low, maximum=high)
    if not (after.score_count or after.label_count):
        for table in ("scorer_totals", "cluster_totals"):
            connection.run(f"DELETE FROM {table} WHERE experiment_id = ? AND scorer_name = ?", *key)  # noqa: S608  constant names
    else:
        connection.run_many(
            UPSERT_SCORER,
            [
                (*key, after.score_count, str(after.total), str(after.squares), after.minimum, after.maximum,
                 after.label_count, after.run_count)
            ],
        )  # fmt: skip
    if last_of_item:
        connection.run(
            "DELETE FROM item_totals WHERE experiment_id = ? AND scorer_name = ? AND dataset_item_id = ?",
            *key,
            item_id,
        )
    if version is not None:
        _recount_version(connection, VersionKey(*key, *version), value)


def _recount_item(connection: Connection, key: Key, item_id: str) -> bool:
    """True when the item has no score of the scorer left."""
    before = read_items(ask_items(connection, key, [item_id])).get(item_id, ItemTotals())
    runs = connection.all(
        "SELECT id FROM runs WHERE experiment_id = ? AND dataset_item_id = ?", key[0], item_id
    )
    rows = connection.look_up(
        "id, number, label",
        "FROM scores WHERE target_id IN [?] AND target_type = 'run' AND scorer_name = ?",
        [row[0] for row in runs],
        key[1],
    )()
    after = item_with_scores(
        ItemTotals(), [Counted("", item_id, number, label) for _, number, label in sorted(rows)]
    )
    connection.run_many(UPSERT_ITEM, [item_row(key, item_id, after)])
    move_clusters(connection, key, [(before, after)], ask_clusters(connection, *key))
    return not rows


def _forget_label(connection: Connection, key: Key, label: str) -> None:
    connection.run(
        "UPDATE label_totals SET score_count = score_count - 1 WHERE experiment_id = ? AND scorer_name = ?"
        " AND label_hash = ?",
        *key,
        label_hash(label),
    )
    connection.run(
        "DELETE FROM label_totals WHERE experiment_id = ? AND scorer_name = ? AND label_hash = ? AND score_count = 0",
        *key,
        label_hash(label),
    )


def _recount_version(connection: Connection, key: VersionKey, value: float | str) -> None:
    kept = version_totals(connection, [key.experiment_id], [key.scorer_name]).get(key)
    if kept is None:
        return
    if isinstance(value, str):
        after = kept._replace(label_count=kept.label_count - 1)
    else:
        after = kept._replace(
            score_count=kept.score_count - 1, total=EXACT.subtract(kept.total, decimal_of(value))
        )
    if not (after.score_count or after.label_count):
        connection.run(
            "DELETE FROM version_totals WHERE experiment_id = ? AND scorer_name = ? AND canonical_name = ?"
            " AND version = ?",
            *key,
        )
        return
    if kept.options_differ or value in (kept.minimum, kept.maximum):
        after = VersionTotals()
        for computed in _computed_by(connection, key):
            after = with_computed(after, computed)
    connection.run_many(UPSERT_VERSION, [version_row(key, after)])


def _computed_by(connection: Connection, key: VersionKey) -> Iterator[list[Computed]]:
    """The scores of a version, run by run: the limits of one version are kept nowhere else."""
    last = ""
    while rows := connection.all(
        "SELECT id FROM runs WHERE (experiment_id, id) > (?, ?) AND experiment_id <= ? ORDER BY experiment_id, id"
        " LIMIT ?",
        key.experiment_id,
        last,
        key.experiment_id,
        CHUNK,
    ):
        last = rows[-1][0]
        found = connection.look_up(
            "number, label, scorer_options",
            "FROM scores WHERE target_id IN [?] AND target_type = 'run' AND scorer_name = ? AND canonical_name = ?"
            " AND COALESCE(scorer_version, '') = ?",
            [row[0] for row in rows],
            key.scorer_name,
            key.canonical_name,
            key.version,
        )()
        yield [
            Computed(label if number is None else number, options or "{}") for number, label, options in found
        ]
