"""The schema is what all migrations make, whatever way a database came to it, and `db check` sees when it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.store.test_checking import experiment_with_runs

from evenhand.cli.db import command as db
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database, pick_dialect
from evenhand.store.migrations import known_migrations, migrate
from evenhand.store.projects import create_project
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


def score_as_before(connection: Connection) -> None:
    """Scores as they were stored before a score knew its scorer's version."""
    for statement in (OLD_SCORE, *OLD_TOTALS):
        connection.run(statement)


ROWS_AFTER: dict[int, Callable[[Connection], object]] = {
    1: lambda c: create_project(c, project_id="old", name="old"),
    3: lambda c: experiment_with_runs(c, items=3, repeats=2),
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
