"""The kept aggregates equal a recount, and `db check` sees when they do not, on both databases."""

import asyncio
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from click.testing import CliRunner
from tests.service import ServiceUnderTest, running_service
from tests.service_harness import span

from evenhand.cli.db import command as db
from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import create_experiment
from evenhand.store.projects import create_project
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.schema import expected_schema
from evenhand.store.scores import Measurement, ScoreRequest, store_requests
from evenhand.store.summaries import read_scorer
from evenhand.store.targets import TargetName
from evenhand.store.versions import version_totals

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
        NewRun(dataset_item_id=item.id, repeat=repeat, output="1", trace_id=None, scores=[])
        for item in listed
        for repeat in range(repeats)
    ]
    accepted = add_runs(connection, experiment.id, runs, scope=None)
    return experiment.id, accepted.run_ids


async def score_at_random(database: Database, runs: list[str], count: int) -> None:
    rng = random.Random(7)

    def request() -> ScoreRequest:
        computed = rng.choice([(None, None, None), ("c", "1", "{}"), ("c", "1", '{"a":1}'), ("c", "2", "{}")])
        measurement = Measurement(
            scorer_name=rng.choice(["s", "t"]),
            value=rng.choice(VALUES),
            canonical_name=computed[0],
            version=computed[1],
            options=computed[2],
        )
        return ScoreRequest(target=TargetName("run", rng.choice(runs)), measurement=measurement)

    for _ in range(4):
        await asyncio.gather(*(database.write_item(store_requests, request()) for _ in range(count // 4)))


def test_aggregates_equal_a_recount_whatever_the_numbers(database_url: str) -> None:
    database = open_database(database_url)
    try:
        experiment, runs = database.write_now(lambda c: experiment_with_runs(c, items=12, repeats=3))
        asyncio.run(score_at_random(database, runs, 400))
        assert database.read_now(lambda c: list(check(c))) == []
        kept, versions = database.read_now(lambda c: read_scorer(c, experiment, "s", scope=None))
        assert [(key.canonical_name, key.version) for key in versions] == [("c", "1"), ("c", "2")]
        rows: list[Any] = database.read_now(
            lambda c: c.all("SELECT number FROM scores WHERE scorer_name = 's' AND number IS NOT NULL")
        )
        # Fractions of decimals: no rounding anywhere.
        assert Fraction(kept.total) == sum(Fraction(Decimal(repr(row[0]))) for row in rows)
        assert kept.score_count == len(rows)
    finally:
        database.close()


def test_versions_are_kept_apart_as_exact_sums(database_url: str) -> None:
    database = open_database(database_url)
    try:
        experiment, runs = database.write_now(lambda c: experiment_with_runs(c, items=3, repeats=1))
        asyncio.run(score_at_random(database, runs, 200))
        kept = database.read_now(lambda c: version_totals(c, [experiment], ["s"]))
        for key, totals in kept.items():
            rows: list[Any] = database.read_now(
                lambda c, key=key: c.all(  # type: ignore[misc]  # bound early on purpose
                    "SELECT number, scorer_options FROM scores WHERE scorer_name = 's' AND canonical_name = ?"
                    " AND scorer_version = ?",
                    key.canonical_name,
                    key.version,
                )
            )
            numbers = [row[0] for row in rows if row[0] is not None]
            assert Fraction(totals.total) == sum(Fraction(Decimal(repr(number))) for number in numbers)
            assert (totals.score_count, totals.label_count) == (len(numbers), len(rows) - len(numbers))
            assert (totals.minimum, totals.maximum) == (min(numbers), max(numbers))
            assert totals.options_differ == (len({row[1] for row in rows}) > 1)
        assert [bool(totals.options_differ) for totals in kept.values()] == [True, False]
        database.write_now(lambda c: c.run("UPDATE version_totals SET label_count = label_count + 1"))
        faults = database.read_now(lambda c: list(check(c)))
        assert len(faults) == 4
        assert "scorer 's', c version 1: label_count is" in faults[0]
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
    assert "scorer 's': total is 9, counted " in wrong.output


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
    *found, totals, last = wrong.output.splitlines()
    assert found == [
        "trace trace-1 of default: error_count is 2, counted 0",
        "trace trace-3 of default: span_count is 9, counted 3",
        "trace trace-3 of default: tokens is 1, counted 15",
    ]
    assert totals.startswith("traces of default from ")
    assert last == "4 faults."


DAMAGES = {
    "datasets SET item_count = 9": "dataset D: item_count is 9, counted 2",
    "datasets SET version = 9": "dataset D: version is 9, counted 2",
    "experiments SET run_count = 9": "experiment E: run_count is 9, counted 2",
    "experiments SET covered_count = 9": "experiment E: covered_count is 9, counted 2",
    "scorer_totals SET score_count = 9": "experiment E, scorer 's': score_count is 9, counted 3",
    "scorer_totals SET total = '9'": "experiment E, scorer 's': total is 9, counted 1.75",
    "scorer_totals SET squares = '9'": "experiment E, scorer 's': squares is 9, counted 1.3125",
    "scorer_totals SET minimum = 0": "experiment E, scorer 's': minimum is 0.0, counted 0.25",
    "scorer_totals SET maximum = 0": "experiment E, scorer 's': maximum is 0.0, counted 1.0",
    "scorer_totals SET label_count = 9": "experiment E, scorer 's': label_count is 9, counted 1",
    "scorer_totals SET run_count = 9": "experiment E, scorer 's': run_count is 9, counted 2",
    "label_totals SET score_count = 9": "experiment E, scorer 's', label 'good': score_count is 9, counted 1",
    "item_totals SET score_count = 9 WHERE passes = 1": (
        "experiment E, scorer 's', item I: score_count is 9, counted 2"
    ),
    "item_totals SET passes = 9 WHERE passes = 1": (
        "experiment E, scorer 's', item I: passes is 9, counted 1"
    ),
    "item_totals SET total = '9' WHERE passes = 1": (
        "experiment E, scorer 's', item I: total is 9, counted 1.5"
    ),
    "item_totals SET minimum = 0 WHERE passes = 1": (
        "experiment E, scorer 's', item I: minimum is 0.0, counted 0.5"
    ),
    "item_totals SET maximum = 0 WHERE passes = 1": (
        "experiment E, scorer 's', item I: maximum is 0.0, counted 1.0"
    ),
    "dataset_versions SET added_count = 9 WHERE version = 2": (
        "dataset D, version 2: added_count is 9, counted 2"
    ),
    "dataset_versions SET removed_count = 9 WHERE version = 2": (
        "dataset D, version 2: removed_count is 9, counted 0"
    ),
    "dataset_versions SET item_count = 9 WHERE version = 2": (
        "dataset D, version 2: item_count is 9, counted 2"
    ),
    "score_hours SET score_count = 9": "project default, scorer 's', hour H: score_count is 9, counted 3",
    "score_hours SET label_count = 9": "project default, scorer 's', hour H: label_count is 9, counted 1",
    "score_hours SET total = 9": "project default, scorer 's', hour H: total is 9.0, counted 1.75",
    "score_hours SET squares = 9": "project default, scorer 's', hour H: squares is 9.0, counted 1.3125",
    "score_hours SET minimum = 0.5": (
        "project default, scorer 's', hour H: numbers are from 0.5 to 1.0, counted 0.25 to 1.0"
    ),
    "score_hours SET maximum = 0.5": (
        "project default, scorer 's', hour H: numbers are from 0.25 to 0.5, counted 0.25 to 1.0"
    ),
    "item_totals SET label_count = 9 WHERE label IS NOT NULL": (
        "experiment E, scorer 's', item J: label_count is 9, counted 1"
    ),
    "item_totals SET label = 'bad' WHERE label IS NOT NULL": (
        "experiment E, scorer 's', item J: label is bad, counted good"
    ),
    "cluster_totals SET items = 9 WHERE passes = 1": (
        "experiment E, scorer 's', items with 2 scores and 1 passes: items is 9, counted 1"
    ),
    "cluster_totals SET total = '9' WHERE passes = 1": (
        "experiment E, scorer 's', items with 2 scores and 1 passes: total is 9, counted 1.5"
    ),
    "cluster_totals SET squares = '9' WHERE passes = 1": (
        "experiment E, scorer 's', items with 2 scores and 1 passes: squares is 9, counted 2.25"
    ),
    "traces SET span_count = 9": "trace t of default: span_count is 9, counted 2",
    "traces SET error_count = 9": "trace t of default: error_count is 9, counted 1",
    "traces SET tokens = 9": "trace t of default: tokens is 9, counted 10",
    "traces SET annotation_count = 9": "trace t of default: annotation_count is 9, counted 1",
    "traces SET root_duration_ms = 9": "trace t of default: root_duration_ms is 9.0, counted 1000.0",
    "traces SET root_name = 'x'": "trace t of default: root_name is x, counted n",
    "traces SET root_span_id = '1'": "trace t of default: root_span_id is 1, which is no root",
    "traces SET root_span_id = NULL": "trace t of default: roots is 0, counted 1",
    "traces SET metadata = '{}'": """trace t of default: metadata is {}, counted {"k": 1}""",
    "traces SET facets = ''": """trace t of default: facets is , counted ["k","1"]""",
    "traces SET models = ''": """trace t of default: models is [], counted ['"m"']""",
    "traces SET cost_pico = 1": "trace t of default: cost_pico is 1, counted 500000000000",
    "traces SET cost_known = 2": "trace t of default: cost_known is 2, counted 1",
    "traces SET cost_unknown = 2": "trace t of default: cost_unknown is 2, counted 1",
    "traces SET started_us = 9": "trace t of default: started_us is 9, counted 1771711200000000",
    "traces SET user_id = 'x'": "trace t of default: user_id is x, which no span of it names",
    "sessions SET id = 'x'": "trace t of default: its session c is not listed",
    "trace_totals SET trace_count = 9": "traces of default from S on: trace_count is 9, counted 1",
    "trace_totals SET span_count = 9": "traces of default from S on: span_count is 9, counted 2",
    "trace_totals SET failed_count = 9": "traces of default from S on: failed_count is 9, counted 1",
    "trace_totals SET timed_count = 9": "traces of default from S on: timed_count is 9, counted 1",
    "trace_totals SET duration_ms = 9": "traces of default from S on: duration_ms is 9.0, counted 1000.0",
    "trace_totals SET tokens = 9": "traces of default from S on: tokens is 9, counted 10",
    "trace_totals SET cost_usd = 9": (
        "traces of default from S on: cost is 9500000000000, counted 500000000000"
    ),
    "trace_totals SET cost_pico = 9": "traces of default from S on: cost is 9, counted 500000000000",
    "trace_totals SET cost_known = 9": "traces of default from S on: cost_known is 9, counted 1",
    "trace_totals SET cost_unknown = 9": "traces of default from S on: cost_unknown is 9, counted 1",
    "span_blocks SET span_count = 1": "block 0: span_count is 1, counted 2",
}
"""What can go wrong, and the one sentence that says so."""


def fill(service: ServiceUnderTest) -> dict[str, str]:
    """One of everything that is counted; the names in `DAMAGES` by the ids that they stand for."""
    dataset = service.post("/v1/datasets", {"project_id": "default", "name": "d"}).body["id"]
    lines = b'{"input": 1}\n{"input": 2}\n'
    kind = {"Content-Type": "application/x-ndjson"}
    assert service.raw("POST", f"/v1/datasets/{dataset}/items/import", lines, kind).status == 200
    first, second = (row["id"] for row in service.get(f"/v1/datasets/{dataset}/items").body["items"])
    made = {"project_id": "default", "name": "e", "dataset_id": dataset}
    experiment = service.post("/v1/experiments", made).body["id"]
    values: dict[str, list[float | str]] = {first: [1, 0.5], second: [0.25, "good"]}
    runs = [
        {"dataset_item_id": item, "output": 1, "scores": [{"scorer_name": "s", "value": v} for v in own]}
        for item, own in values.items()
    ]
    assert service.post(f"/v1/experiments/{experiment}/runs", {"runs": runs}).status == 201
    tokens = {"tokens_input": 2, "tokens_output": 3}
    root = span(
        trace_id="t",
        id="0",
        name="n",
        end_time="2026-02-21T22:00:01.000Z",
        metadata={"k": 1},
        model="m",
        session_id="c",
        user_id="u",
        cost_usd=0.5,
        **tokens,
    )
    child = span(trace_id="t", id="1", parent_span_id="0", error={"message": "x"}, **tokens)
    annotation = {"trace_id": "t", "annotator": "a", "label": "x"}
    # What was said about an earlier trace of the same id is not counted for this one.
    for _ in range(2):
        assert service.delete("/v1/traces/t").status in (200, 404)
        assert service.post("/v1/traces/ingest", {"spans": [root, child]}).status == 201
        assert service.post("/v1/annotations", annotation).status == 201
    return {dataset: "D", experiment: "E", first: "I", second: "J"}


def test_every_number_that_is_kept_is_counted_again(database_url: str) -> None:
    with running_service(database_url) as service:
        names = fill(service)
    database = open_database(database_url)
    found: dict[str, list[str]] = {}

    def damaged(connection: Connection) -> None:
        for damage in DAMAGES:
            connection.run("SAVEPOINT undamaged")
            assert connection.run(f"UPDATE {damage}") == 1
            # Totals of traces disagree with a damaged trace too.
            found[damage] = [
                renamed(fault)
                for fault in check(connection)
                if damage.startswith("trace_totals") or not fault.startswith("traces of ")
            ]
            connection.run("ROLLBACK TO SAVEPOINT undamaged")

    def renamed(fault: str) -> str:
        fault = re.sub(r"hour \S+:", "hour H:", fault)
        fault = re.sub(r"from \w{8} on:", "from S on:", fault)
        for own_id, name in names.items():
            fault = fault.replace(own_id, name)
        return fault

    try:
        database.write_now(damaged)
        assert found == {damage: [said] for damage, said in DAMAGES.items()}
        assert database.read_now(lambda connection: list(check(connection))) == []
    finally:
        database.close()


def test_no_number_is_kept_that_nothing_counts_again() -> None:
    given = {"experiments.dataset_version", "experiments.auto_complete"}
    kept = {
        f"{name}.{column}"
        for name, table in expected_schema().tables.items()
        if name in {damage.split()[0] for damage in DAMAGES}
        for column, about in table.items()
        if about.type != "TEXT" and not about.key
    }
    damaged = {f"{damage.split()[0]}.{damage.split()[2]}" for damage in DAMAGES}
    assert kept - damaged == given
