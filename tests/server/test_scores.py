"""Scores over HTTP: the acceptance criteria and edge cases of the contract, on both databases."""

from typing import Any

import pytest
from tests.server.test_experiments import Bench
from tests.service import Reply, ServiceUnderTest


@pytest.fixture
def bench(service: ServiceUnderTest) -> Bench:
    return Bench(service, ["paris", "Paris", "confirmed", None, {"b": 1, "a": 2}, "spare"])


def rule(bench: Bench, item: int, output: Any, name: str, **config: Any) -> Reply:
    """What a rule says about an output for an item."""
    run = bench.run(bench.experiment(), item, output).body["run_ids"][0]
    reply: Reply = bench.score(run, name, config=config)
    return reply


def test_exact_match_ignores_case_when_asked_to(bench: Bench) -> None:
    reply = rule(bench, 0, "Paris", "exact_match", case_sensitive=False, strip_whitespace=True)
    assert (reply.status, reply.body["value"], reply.body["source"]) == (201, 1.0, "rule")


def test_exact_match_strips_white_space_by_default(bench: Bench) -> None:
    assert rule(bench, 1, "  Paris  ", "exact_match").body["value"] == 1.0
    assert rule(bench, 1, "  Paris  ", "exact_match", strip_whitespace=False).body["value"] == 0.0


def test_exact_match_minds_case_by_default(bench: Bench) -> None:
    assert rule(bench, 1, "paris", "exact_match").body["value"] == 0.0


def test_exact_match_compares_objects_as_canonical_json(bench: Bench) -> None:
    assert rule(bench, 4, {"a": 2, "b": 1}, "exact_match").body["value"] == 1.0


def test_contains(bench: Bench) -> None:
    assert rule(bench, 2, "Order confirmed today", "contains").body["value"] == 1.0
    assert rule(bench, 2, "Order CONFIRMED", "contains").body["value"] == 0.0
    assert rule(bench, 2, "Order CONFIRMED", "contains", case_sensitive=False).body["value"] == 1.0


def test_regex(bench: Bench) -> None:
    assert rule(bench, 2, "Order ID: ABC-12345", "regex", pattern=r"[A-Z]+-\d+").body["value"] == 1.0
    assert rule(bench, 2, "Order confirmed", "regex", pattern=r"[A-Z]+-\d+").body["value"] == 0.0
    assert rule(bench, 3, "abc", "regex", pattern="B", flags="i").body["value"] == 1.0


@pytest.mark.parametrize(
    "config", [{"pattern": "[invalid"}, {}, {"pattern": 7}, {"pattern": "a", "flags": "q"}]
)
def test_a_bad_scorer_config_is_refused(bench: Bench, config: dict[str, Any]) -> None:
    reply = rule(bench, 2, "x", "regex", **config)
    assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")


def test_without_an_expected_output_nothing_is_stored_and_nothing_is_wrong(bench: Bench) -> None:
    run = bench.run(bench.experiment(), 3).body["run_ids"][0]
    reply = bench.score(run, "exact_match")
    assert (reply.status, reply.body) == (200, {"score": None, "reason": "no_expected_output"})
    assert bench.service.get("/v1/scores", target_id=run).body["items"] == []
    given = bench.score(run, "exact_match", config={"expected_output": "x"})
    assert given.body["value"] == 1.0


@pytest.mark.parametrize("value", [1.5, -0.1, True, [], {}, 10**30])
def test_a_value_that_is_no_score_is_refused(bench: Bench, value: Any) -> None:
    run = bench.run(bench.experiment(), 0).body["run_ids"][0]
    reply = bench.score(run, "s", value)
    assert (reply.status, reply.code) == (400, "INVALID_SCORE_VALUE")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
def test_a_value_that_is_no_json_number_is_refused(bench: Bench, text: str) -> None:
    run = bench.run(bench.experiment(), 0).body["run_ids"][0]
    body = f'{{"target_id": "{run}", "target_type": "run", "scorer_name": "s", "value": {text}}}'
    reply = bench.service.raw("POST", "/v1/scores", body.encode())
    assert (reply.status, reply.code) == (400, "INVALID_SCORE_VALUE")


def test_edge_cases_of_the_request(bench: Bench) -> None:
    run = bench.run(bench.experiment(), 0).body["run_ids"][0]
    post = bench.service.post
    whole = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 0.8}
    assert post("/v1/scores", whole | {"value": ""}).code == "INVALID_REQUEST"
    assert post("/v1/scores", whole | {"target_type": "trace"}).code == "INVALID_REQUEST"
    assert post("/v1/scores", whole | {"target_id": "nobody"}).code == "NOT_FOUND"
    assert post("/v1/scores", whole | {"value": None}).code == "INVALID_REQUEST"
    assert post("/v1/scores", whole | {"scorer_name": ""}).code == "INVALID_REQUEST"
    assert post("/v1/scores", whole | {"config": 3}).code == "INVALID_SCORER_CONFIG"
    assert bench.service.get("/v1/scores").code == "INVALID_REQUEST"
    assert bench.service.get("/v1/scores", target_id="nobody", target_type="run").code == "NOT_FOUND"
    stored = post("/v1/scores", whole | {"scorer_name": "exact_match", "rationale": "why", "unknown": 1})
    assert (stored.status, stored.body["value"], stored.body["rationale"]) == (201, 0.8, "why")
    listed = bench.service.get("/v1/scores", target_id=run, target_type="run", scorer_name="exact_match").body
    assert [score["value"] for score in listed["items"]] == [0.8]


def test_several_scorers_appear_side_by_side(bench: Bench) -> None:
    experiment = bench.experiment()
    run = bench.run(experiment, 0, "France").body["run_ids"][0]
    for name, value in [("a", 0.5), ("b", "fine"), ("human", 1)]:
        assert bench.score(run, name, value).status == 201
    listed = bench.service.get("/v1/scores", target_id=run).body["items"]
    assert [(s["scorer_name"], s["value"], s["source"]) for s in listed] == [
        ("a", 0.5, "custom"),
        ("b", "fine", "custom"),
        ("human", 1.0, "human"),
    ]
    summary = bench.service.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]
    assert sorted(summary) == ["a", "b", "human"]


def test_a_batch_is_stored_whole_or_not_at_all(bench: Bench) -> None:
    experiment = bench.experiment()
    run = bench.run(experiment, 0, "paris").body["run_ids"][0]
    one = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 0.5}
    bad = bench.service.post("/v1/scores/batch", {"scores": [one, one | {"value": 7}]})
    assert (bad.code, bad.body["error"]["details"]["index"]) == ("INVALID_SCORE_VALUE", 1)
    lost = bench.service.post("/v1/scores/batch", {"scores": [one, one | {"target_id": "x"}]})
    assert lost.code == "NOT_FOUND"
    computed = {"target_id": run, "target_type": "run", "scorer_name": "exact_match"}
    nothing = computed | {"config": {"expected_output": None}}
    good = bench.service.post("/v1/scores/batch", {"scores": [one, computed, nothing]})
    assert (good.status, good.body["accepted"]) == (201, 2)
    assert good.body["score_ids"][2] is None
    assert good.body["skipped"] == [{"index": 2, "reason": "no_expected_output"}]
    assert len(bench.service.get("/v1/scores", target_id=run).body["items"]) == 2


def test_rules_run_inline_with_a_submitted_run(bench: Bench) -> None:
    experiment = bench.experiment()
    scores = [
        {"scorer_name": "exact_match", "config": {"case_sensitive": False}},
        {"scorer_name": "s", "value": "l"},
    ]
    bench.run(experiment, 0, "PARIS", scores=scores)
    bench.run(experiment, 3, "x", scores=[{"scorer_name": "exact_match"}])
    runs = bench.service.get(f"/v1/experiments/{experiment}/runs").body["items"]
    assert sorted((s["scorer_name"], s["value"]) for s in runs[0]["scores"]) == [
        ("exact_match", 1.0),
        ("s", "l"),
    ]
    assert runs[1]["scores"] == []
    assert runs[0]["scores"][0]["target_type"] == "run"
    assert runs[0]["scores"][0]["target_id"] == runs[0]["id"]
