"""The kept aggregates equal a recount, and `db check` sees when they do not, on both databases."""

import asyncio
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

from click.testing import CliRunner
from tests.service import running_service
from tests.service_harness import span

from evenhand.cli.db import command as db
from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import create_experiment
from evenhand.store.projects import create_project
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.scores import Measurement, ScoreRequest, store_requests
from evenhand.store.summaries import read_scorer

VALUES: list[float | str] = [0.0, 1.0, 0.1, 0.7, 1e-300, 5e-324, 0.30000000000000004, 1 / 3, "good", "bad"]


def experiment_with_runs(connection: Connection, items: int, repeats: int) -> tuple[str, list[str]]:
    create_project(connection, project_id="p", name="p")
    dataset = create_dataset(connection, project_id="p", name="d", description=None)
    add_items(connection, dataset.id, (ItemText(input="1") for _ in range(items)), scope=None)
    listed = list_items(connection, dataset.id, scope=None, after=None, limit=items)
    experiment = create_experiment(
        connection, project_id="p", name="e", dataset_id=dataset.id, metadata=None, auto_complete=False
    )
    runs = [
        NewRun(dataset_item_id=item.id, repeat=repeat, output="1", trace_id=None, measurements=[])
        for item in listed
        for repeat in range(repeats)
    ]
    accepted, _ = add_runs(connection, experiment.id, runs, scope=None)
    return experiment.id, accepted.run_ids


async def score_at_random(database: Database, runs: list[str], count: int) -> None:
    rng = random.Random(7)

    def request() -> ScoreRequest:
        measurement = Measurement(scorer_name=rng.choice(["s", "t"]), value=rng.choice(VALUES))
        return ScoreRequest(
            target_type="run", target_id=rng.choice(runs), scope=None, measurement=measurement
        )

    for _ in range(4):
        await asyncio.gather(*(database.write_item(store_requests, request()) for _ in range(count // 4)))


def test_aggregates_equal_a_recount_whatever_the_numbers(database_url: str) -> None:
    database = open_database(database_url)
    try:
        experiment, runs = database.write_now(lambda c: experiment_with_runs(c, items=12, repeats=3))
        asyncio.run(score_at_random(database, runs, 400))
        assert database.read_now(lambda c: list(check(c))) == []
        kept = database.read_now(lambda c: read_scorer(c, experiment, "s", scope=None))
        rows: list[Any] = database.read_now(
            lambda c: c.all("SELECT number FROM scores WHERE scorer_name = 's' AND number IS NOT NULL")
        )
        # Fractions of decimals: no rounding anywhere.
        assert Fraction(kept.total) == sum(Fraction(Decimal(repr(row[0]))) for row in rows)
        assert kept.score_count == len(rows)
    finally:
        database.close()


def test_a_wrong_total_is_found(database_url: str) -> None:
    database = open_database(database_url)
    _, runs = database.write_now(lambda c: experiment_with_runs(c, items=3, repeats=1))
    asyncio.run(score_at_random(database, runs, 40))
    database.close()
    fine = CliRunner().invoke(db, ["check", "--database", database_url])
    assert (fine.exit_code, fine.output) == (0, "Everything agrees with a recount.\n")
    database = open_database(database_url)
    database.write_now(lambda c: c.run("UPDATE scorer_totals SET total = '9' WHERE scorer_name = 's'"))
    database.write_now(lambda c: c.run("UPDATE experiments SET run_count = 7"))
    database.close()
    wrong = CliRunner().invoke(db, ["check", "--database", database_url])
    assert wrong.exit_code == 1
    assert "run_count is 7, counted 3" in wrong.output
    assert "scorer 's': the totals differ" in wrong.output


def test_a_wrong_count_of_a_trace_is_found(database_url: str) -> None:
    with running_service(database_url) as service:
        for count in (1, 3):
            spans = [
                span(trace_id=f"trace-{count}", id=f"{n}", parent_span_id="0" if n else None, tokens_input=2,
                     tokens_output=3, error={"message": "x"} if n else None)
                for n in range(count)
            ]  # fmt: skip
            assert service.post("/v1/traces/ingest", {"spans": spans}).status == 201
    fine = CliRunner().invoke(db, ["check", "--database", database_url])
    assert (fine.exit_code, fine.output) == (0, "Everything agrees with a recount.\n")
    database = open_database(database_url)
    database.write_now(lambda c: c.run("UPDATE traces SET span_count = 9, tokens = 1 WHERE id = 'trace-3'"))
    database.write_now(lambda c: c.run("UPDATE traces SET error_count = 2 WHERE id = 'trace-1'"))
    database.close()
    wrong = CliRunner().invoke(db, ["check", "--database", database_url])
    assert wrong.output.splitlines() == [
        "trace trace-1 of default: error_count is 2, counted 0",
        "trace trace-3 of default: span_count is 9, counted 3",
        "trace trace-3 of default: tokens is 1, counted 15",
        "3 faults.",
    ]
