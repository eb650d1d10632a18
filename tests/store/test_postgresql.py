"""What the PostgreSQL dialect makes of statements, and that the planner has no choice to get wrong."""

from decimal import Decimal

import psycopg
import pytest
from tests.postgres import PostgresServer

from evenhand.store.database import open_database
from evenhand.store.postgresql import MANY_ROWS, as_recordset, one_by_one, translated

pytestmark = pytest.mark.xdist_group("postgresql")

_ITEMS = "FROM item_totals WHERE experiment_id = ? AND scorer_name = ? AND dataset_item_id IN [?]"
_ITEM = """INSERT INTO item_totals (experiment_id, scorer_name, dataset_item_id, score_count, passes, total,
    label_count, label) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (experiment_id, scorer_name, dataset_item_id) DO UPDATE SET total = excluded.total"""


def rows(count: int, total: str) -> list[tuple[str | int | None, ...]]:
    return [
        ("e", "s", f"item {n}", 1, 0, total, 0, None if n % 2 else 'a "label"\n\\ é') for n in range(count)
    ]


def test_a_list_becomes_a_look_up_of_each_value() -> None:
    sql, place = one_by_one("id, name", "FROM things WHERE kind = ? AND id IN [?] AND size = ?")
    assert place == 1
    assert sql == (
        "SELECT found.* FROM unnest(?::text[]) AS wanted(value) CROSS JOIN LATERAL "
        "(SELECT id, name FROM things WHERE kind = ? AND id = wanted.value AND size = ? OFFSET 0) AS found"
    )
    assert one_by_one("id", "FROM things WHERE kind = ?") == ("SELECT id FROM things WHERE kind = ?", None)


def test_only_plain_inserts_become_recordsets() -> None:
    statement, columns = as_recordset("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO NOTHING")
    assert columns == ("a", "b")
    assert statement == (
        "INSERT INTO t (a, b) SELECT a, b FROM json_populate_recordset(NULL::t, %s::json)  ON CONFLICT (a) DO NOTHING"
    )
    assert as_recordset("UPDATE t SET a = ? WHERE b = ?") == (None, ())
    assert as_recordset("INSERT INTO t (a, b) VALUES (?, 1)") == (None, ())


def test_a_new_table_is_not_read_whole_for_a_few_of_its_rows(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        database = open_database(url)
        try:
            database.write_now(lambda connection: connection.run_many(_ITEM, rows(3_000, "0.5")))
            wanted = [f"item {n}" for n in range(0, 3_000, 100)]
            ask = database.read_now(
                lambda connection: connection.ask_texts("dataset_item_id, total", _ITEMS, "e", "s", wanted)()
            )
            assert sorted(ask) == sorted((name, "0.5") for name in wanted)
            sql, _ = one_by_one("dataset_item_id, total", _ITEMS)
            with psycopg.connect(url) as plain:
                # As the planner sees a table of which nothing is known yet.
                plain.execute("DELETE FROM pg_statistic WHERE starelid = 'item_totals'::regclass")
                found = plain.execute(f"EXPLAIN (FORMAT JSON) {translated(sql)}", (wanted, "e", "s"))
                plan = str(found.fetchone())
            assert "dataset_item_id = wanted.value" in plan.split("Index Cond")[1].split("}")[0]
            assert "Filter" not in plan
        finally:
            database.close()


def test_many_rows_are_stored_as_they_are_and_conflicts_are_merged(postgres_server: PostgresServer) -> None:
    count = MANY_ROWS * 2 + 7
    with postgres_server.database() as url:
        database = open_database(url)
        try:
            for total in ("0.10", "0.3000000000000000444"):
                database.write_now(lambda connection, t=total: connection.run_many(_ITEM, rows(count, t)))  # type: ignore[misc]
            stored = database.read_now(
                lambda connection: connection.all(
                    "SELECT experiment_id, scorer_name, dataset_item_id, score_count, passes, total, label_count, label"
                    " FROM item_totals"
                )
            )
        finally:
            database.close()
    assert sorted(stored, key=str) == sorted(rows(count, "0.3000000000000000444"), key=str)
    assert {Decimal(row[5]) for row in stored} == {Decimal("0.3000000000000000444")}
