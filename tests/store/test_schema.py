"""The schema is what all migrations make, whatever way a database came to it, and `db check` sees when it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from evenhand.cli.db import command as db
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database, pick_dialect
from evenhand.store.dataset_versions import list_versions
from evenhand.store.migrations import known_migrations, migrate
from evenhand.store.schema import differences, expected_schema, read_schema
from evenhand.store.sqlite import statements

OLD_SCORE = """INSERT INTO scores (id, project_id, target_type, target_id, experiment_id, dataset_item_id, scorer_name,
    number, config, source, created_at) SELECT 'score-' || id, project_id, 'run', id, experiment_id, dataset_item_id,
    'exact_match', 1.0, '{}', 'rule', created_at FROM runs WHERE repeat_number = 0"""
OLD_TOTALS = (
    "INSERT INTO scorer_totals SELECT experiment_id, 'exact_match', 3, '3.0', '3.00', 1.0, 1.0, 0, 3 FROM runs LIMIT 1",
    """INSERT INTO item_totals SELECT experiment_id, 'exact_match', dataset_item_id, 1, 1, '1.0', 0, NULL FROM runs
    WHERE repeat_number = 0""",
    "INSERT INTO cluster_totals SELECT experiment_id, 'exact_match', 1, 1, 3, '3.0', '3.00' FROM runs LIMIT 1",
)


def datasets_as_before(connection: Connection) -> None:
    """Six runs on a dataset that knew only how many items it has: two versions, the second with three items."""
    for statement in (
        "INSERT INTO projects (id, name, created_at) VALUES ('p', 'p', 't0')",
        (
            "INSERT INTO datasets (id, project_id, name, version, item_count, created_at, updated_at)"
            " VALUES ('d', 'p', 'd', 2, 3, 't1', 't2')"
        ),
        (
            "INSERT INTO experiments (id, project_id, name, dataset_id, dataset_version, status, auto_complete, run_count,"
            " covered_count, created_at) VALUES ('e', 'p', 'e', 'd', 2, 'running', 0, 6, 3, 't3')"
        ),
    ):
        connection.run(statement)
    for item in "abc":
        connection.run(
            "INSERT INTO dataset_items (id, dataset_id, version, input, created_at) VALUES (?, 'd', 2, '1', 't2')",
            item,
        )
        for repeat in range(2):
            connection.run(
                "INSERT INTO runs (id, project_id, experiment_id, dataset_item_id, repeat_number, output, created_at)"
                " VALUES (?, 'p', 'e', ?, ?, '1', 't4')",
                f"run-{item}-{repeat}",
                item,
                repeat,
            )


def score_as_before(connection: Connection) -> None:
    """Scores as they were stored before a score knew its scorer's version."""
    for statement in (OLD_SCORE, *OLD_TOTALS):
        connection.run(statement)


ROWS_AFTER: dict[int, Callable[[Connection], object]] = {
    1: lambda c: c.run("INSERT INTO projects (id, name, created_at) VALUES ('old', 'old', 't0')"),
    3: datasets_as_before,
    13: score_as_before,
}
"""Data that is there before the migrations after the number."""


def step_by_step(url: str) -> None:
    dialect = pick_dialect(url)
    connection = dialect.open_writer()
    try:
        migrations = known_migrations()
        for count, migration in enumerate(migrations, 1):
            assert migrate(connection, migrations[:count]) == [migration.name]
            if migration.number in ROWS_AFTER:
                connection.begin()
                ROWS_AFTER[migration.number](connection)
                connection.commit()
    finally:
        connection.close()
        dialect.close()


def test_a_fresh_database_has_the_schema_of_all_migrations(database_url: str) -> None:
    database = open_database(database_url)
    try:
        found = database.read_now(read_schema)
    finally:
        database.close()
    assert list(differences(found, expected_schema())) == []
    assert found == expected_schema()
    # and the reference is no empty one
    assert {"scores", "runs", "traces", "schema_migrations"} <= set(found.tables)
    assert found.tables["scorer_totals"]["scorer_name"] == ("TEXT", True, 2)
    assert found.indexes["traces_with_errors"] == (
        "traces",
        ("project_id", "trace_key"),
        False,
        "error_count > 0",
    )


def test_a_database_migrated_step_by_step_with_data_in_it_has_the_same(database_url: str) -> None:
    step_by_step(database_url)
    database = open_database(database_url)
    try:
        assert database.migrated == []
        assert database.read_now(read_schema) == expected_schema()
        assert database.read_now(lambda c: c.one("SELECT COUNT(*) FROM runs")) == (6,)
        assert database.read_now(lambda c: c.one("SELECT COUNT(*) FROM projects")) == (2,)
        old = database.read_now(
            lambda c: c.all("SELECT canonical_name, scorer_version, scorer_options FROM scores")
        )
        assert old == [(None, None, None)] * 3
        versions = database.read_now(lambda c: list_versions(c, "d", scope=None, before=None, limit=9))
        assert [(one.version, one.added_count, one.item_count) for one in versions] == [(2, 3, 3), (1, 0, 0)]
    finally:
        database.close()
    fine = CliRunner().invoke(db, ["check", "--database", database_url])
    assert (fine.exit_code, fine.output) == (0, "Everything agrees with a recount.\n")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DROP INDEX scores_by_target", "the index scores_by_target is missing"),
        ("CREATE INDEX mine ON scores (number)", "the index mine is none of ours"),
        ("ALTER TABLE scores ADD COLUMN extra TEXT", "the column scores.extra is none of ours"),
        ("ALTER TABLE scores RENAME COLUMN rationale TO why", "the column scores.rationale is missing"),
        ("DROP TABLE jobs", "the table jobs is missing"),
        ("CREATE TABLE notes (id TEXT)", "the table notes is none of ours"),
        (
            "DROP INDEX datasets_by_name;\nCREATE INDEX datasets_by_name ON datasets (project_id, name);\n",
            "the index datasets_by_name is Index(",
        ),
        (
            "DROP INDEX jobs_open;\nCREATE INDEX jobs_open ON jobs (open_at, id);\n",
            "the index jobs_open is Index(",
        ),
    ],
)
def test_check_names_what_was_changed_by_hand(database_url: str, change: str, fault: str) -> None:
    database = open_database(database_url)
    _change(database, change)
    database.close()
    wrong = CliRunner().invoke(db, ["check", "--database", database_url])
    assert wrong.exit_code == 1, wrong.output
    assert fault in wrong.output


def _change(database: Database, change: str) -> None:
    def work(connection: Connection) -> None:
        for statement in statements(change):
            connection.run(statement.rstrip(";\n"))

    database.write_now(work)


def test_check_of_a_file_that_is_no_database_of_ours(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"")
    wrong = CliRunner().invoke(db, ["check", "--database", str(tmp_path / "x.db")])
    assert wrong.exit_code == 1
    assert "the table scores is missing" in wrong.output
