"""Databases made by release 0.1.0 (commit 36b7919) open, migrate, and answer as they did.

`v0_1_0/service.db.gz` and `service.sql.gz` (a pg_dump) hold the same small project; the JSON file beside each holds
what the old service answered about it.
"""

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.postgres import PostgresServer
from tests.service import ServiceUnderTest, running_service

from evenhand.store.checking import check
from evenhand.store.database import reading

OLD = Path(__file__).parent / "v0_1_0"


class Upgraded(NamedTuple):
    """The new service over the old database, and what the old service said."""

    service: ServiceUnderTest
    url: str
    said: dict[str, Any]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upgraded]:
    said = json.loads((OLD / f"service_{request.param}.json").read_text())
    if request.param == "sqlite":
        path = tmp_path / "old.db"
        path.write_bytes(gzip.decompress((OLD / "service.db.gz").read_bytes()))
        with running_service(f"sqlite:///{path}") as service:
            yield Upgraded(service, f"sqlite:///{path}", said)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        dump = gzip.decompress((OLD / "service.sql.gz").read_bytes())
        loaded = subprocess.run(
            ["psql", "--quiet", "--set", "ON_ERROR_STOP=1", url], input=dump, capture_output=True, timeout=120
        )
        assert loaded.returncode == 0, loaded.stderr.decode()
        with running_service(url) as service:
            yield Upgraded(service, url, said)


def assert_still_says(new: Any, old: Any, place: str = "") -> None:
    """Every field of the old answer is in the new one with the same value; new fields may have been added."""
    if isinstance(old, dict):
        assert isinstance(new, dict), place
        for name, value in old.items():
            assert name in new, f"{place}.{name} is gone"
            assert_still_says(new[name], value, f"{place}.{name}")
    elif isinstance(old, list):
        assert len(new) == len(old), place
        for number, (one, other) in enumerate(zip(new, old, strict=True)):
            assert_still_says(one, other, f"{place}[{number}]")
    else:
        assert new == old, place


def test_runs_traces_queue_and_scores_read_as_before(upgraded: Upgraded) -> None:
    service, said = upgraded.service, upgraded.said
    base = said["experiments"][0]
    runs = service.get(f"/v1/experiments/{base}/runs", limit=200)
    assert_still_says(runs.body["items"], said["runs"])
    assert_still_says(service.get("/v1/traces/t3").body, said["trace"])
    assert_still_says(service.get("/v1/queue", project_id="geo").body["items"], said["queue"])
    scores = service.get("/v1/scores", target_id="s0r", target_type="span").body["items"]
    assert_still_says(scores, said["span_scores"])
    assert service.get(f"/v1/annotations/{said['annotation']}").body["annotator"] == "ana"


def test_summaries_keep_their_numbers(upgraded: Upgraded) -> None:
    contract = ("scored_run_count", "mean", "min", "max", "distribution")
    for experiment, old in zip(upgraded.said["experiments"], upgraded.said["summaries"], strict=True):
        new = upgraded.service.get(f"/v1/experiments/{experiment}/summary").body
        assert new["run_count"] == old["run_count"] == 12
        for name, scorer in old["scores_by_scorer"].items():
            found = new["scores_by_scorer"][name]
            assert {field: found[field] for field in contract} == {field: scorer[field] for field in contract}


def test_two_old_experiments_compare_with_the_same_means_and_counts(upgraded: Upgraded) -> None:
    base, candidate = upgraded.said["experiments"]
    new = upgraded.service.get(f"/v1/experiments/{base}/compare/{candidate}").body
    fields = ("base_mean", "compare_mean", "delta", "improved_count", "regressed_count", "unchanged_count")
    by_name = {row["scorer_name"]: row for row in new["scorer_comparisons"]}
    for row in upgraded.said["compare"]["scorer_comparisons"]:
        found = by_name[row["scorer_name"]]
        assert {field: found[field] for field in fields} == {field: row[field] for field in fields}


def test_old_tokens_still_open_the_door(upgraded: Upgraded) -> None:
    token = upgraded.said["token"]
    assert upgraded.service.get("/v1/datasets", project_id="geo", token=token).status == 200
    assert upgraded.service.get("/v1/datasets", project_id="other", token=token).status == 404
    assert upgraded.service.post("/v1/projects", {"id": "x", "name": "x"}, token=token).status == 403


def test_old_runs_take_new_scores_and_everything_agrees_with_a_recount(upgraded: Upgraded) -> None:
    run_id = upgraded.said["runs"][0]["id"]
    body = {"target_id": run_id, "target_type": "run", "scorer_name": "exact_match"}
    assert upgraded.service.post("/v1/scores", body).status == 201
    span = {"target_id": "s0r", "target_type": "span", "scorer_name": "helpful", "value": 0.25}
    assert upgraded.service.post("/v1/scores", span).status == 201
    with reading(upgraded.url) as connection:
        assert list(check(connection)) == []
