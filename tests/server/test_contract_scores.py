"""Section 6 of the contract: scores. One test per line, on both databases."""

from typing import Any

import pytest
from tests.service_harness import Client, span


def body(target_id: str, **more: Any) -> dict[str, Any]:
    return {"target_id": target_id, "target_type": "run", "scorer_name": "s", **more}


def test_a_score_is_answered_whole(client: Client) -> None:
    run = client.run("x")
    reply = client.post("/v1/scores", body(run, value=0.5, rationale="why", config={"k": [1]}))
    assert reply.status == 201
    made = reply.body
    assert (made["target_id"], made["target_type"], made["scorer_name"]) == (run, "run", "s")
    assert (made["value"], made["rationale"], made["config"]) == (0.5, "why", {"k": [1]})
    assert made["created_at"].endswith("Z")
    assert client.get("/v1/scores", target_id=run).body["items"] == [made]


def test_a_given_value_is_stored_whatever_the_scorer_is_called(client: Client) -> None:
    run = client.run("x", "y")
    reply = client.post("/v1/scores", body(run, scorer_name="exact_match", value="label"))
    assert (reply.status, reply.body["value"]) == (201, "label")


def test_no_value_and_an_unknown_scorer_is_INVALID_REQUEST(client: Client) -> None:
    run = client.run("x", "y")
    for more in ({}, {"value": None}):
        reply = client.post("/v1/scores", body(run, **more))
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_config_expected_output_overrides_the_items(client: Client) -> None:
    run = client.run("x", "y")
    reply = client.post("/v1/scores", body(run, scorer_name="exact_match", config={"expected_output": "x"}))
    assert reply.body["value"] == 1.0


def test_a_spans_output_is_scored_against_the_configs_expected_output(client: Client) -> None:
    _, span_id = client.trace(output="Paris")
    asked = {"target_id": span_id, "target_type": "span", "scorer_name": "exact_match"}
    assert client.post("/v1/scores", asked).body == {"score": None, "reason": "no_expected_output"}
    reply = client.post("/v1/scores", {**asked, "config": {"expected_output": "Paris"}})
    assert (reply.status, reply.body["value"], reply.body["source"]) == (201, 1.0, "rule")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "1" * 5000])
def test_a_number_that_is_none_is_400_and_not_stored(client: Client, text: str) -> None:
    run = client.run("x")
    raw = f'{{"target_id": "{run}", "target_type": "run", "scorer_name": "s", "value": {text}}}'
    reply = client.post_raw("/v1/scores", raw.encode())
    assert reply.status == 400
    assert reply.code == "INVALID_SCORE_VALUE", text
    assert client.get("/v1/scores", target_id=run).body["items"] == []


@pytest.mark.parametrize("wrong", [True, False, [0.5], {"v": 1}])
def test_a_value_of_another_type_is_INVALID_SCORE_VALUE(client: Client, wrong: Any) -> None:
    run = client.run("x")
    reply = client.post("/v1/scores", body(run, value=wrong))
    assert (reply.status, reply.code) == (400, "INVALID_SCORE_VALUE")


@pytest.mark.parametrize(
    ("scorer", "config"),
    [
        ("regex", {}),
        ("regex", {"pattern": 5}),
        ("regex", {"pattern": "("}),
        ("regex", {"pattern": "((a{1000}){1000}){1000}"}),
        ("regex", {"pattern": "a", "flags": "q"}),
        ("exact_match", {"case_sensitive": "no"}),
        ("exact_match", {"no_such_parameter": 1}),
        ("contains", {"case_sensitive": None}),
    ],
)
def test_a_bad_parameter_is_INVALID_SCORER_CONFIG(client: Client, scorer: str, config: Any) -> None:
    run = client.run("x", "y")
    reply = client.post("/v1/scores", body(run, scorer_name=scorer, config=config))
    assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")


@pytest.mark.parametrize("edge", [0, 1, 0.0, 1.0, 1e-320, 0.1])
def test_the_ends_of_the_range_are_in_it(client: Client, edge: float) -> None:
    run = client.run("x")
    reply = client.post("/v1/scores", body(run, value=edge))
    assert (reply.status, reply.body["value"]) == (201, edge)


def test_scores_are_listed_by_scorer_and_in_pages(client: Client) -> None:
    run = client.run("x")
    for number in range(5):
        client.made("/v1/scores", body(run, value=number / 10))
    client.made("/v1/scores", body(run, scorer_name="other", value="label"))
    rows = list(client.pages("/v1/scores", target_id=run, target_type="run", scorer_name="s", limit=2))
    assert [row["value"] for row in rows] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert len(list(client.pages("/v1/scores", target_id=run, limit=2))) == 6


def test_a_list_without_a_target_is_INVALID_REQUEST(client: Client) -> None:
    for query in ({}, {"scorer_name": "s"}, {"target_id": ""}):
        reply = client.get("/v1/scores", **query)
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_a_batch_is_all_or_nothing(client: Client) -> None:
    run = client.run("x", "x")
    good = [body(run, value=n / 10) for n in range(3)]
    reply = client.post("/v1/scores/batch", {"scores": [*good, body(run, scorer_name="exact_match")]})
    assert (reply.status, reply.body["accepted"]) == (201, 4)
    assert len(reply.body["score_ids"]) == 4
    for bad, code in (
        (body(run, value=2), "INVALID_SCORE_VALUE"),
        (body("no-such", value=1), "NOT_FOUND"),
        (body(run, value=""), "INVALID_REQUEST"),
    ):
        assert client.post("/v1/scores/batch", {"scores": [*good, bad]}).code == code
    assert len(client.get("/v1/scores", target_id=run).body["items"]) == 4
    assert client.post("/v1/scores/batch", {"scores": []}).code == "INVALID_REQUEST"


def test_inline_scores_of_a_span_follow_the_same_rules(client: Client) -> None:
    good = {"scorer_name": "s", "value": "ok"}
    for bad, code in (
        ({"scorer_name": "s", "value": 1.5}, "INVALID_SCORE_VALUE"),
        ({"scorer_name": "s", "value": True}, "INVALID_SCORE_VALUE"),
        ({"scorer_name": "s", "value": ""}, "INVALID_REQUEST"),
        ({"scorer_name": "unknown"}, "INVALID_REQUEST"),
        ({"scorer_name": "regex", "config": {"pattern": "["}}, "INVALID_SCORER_CONFIG"),
    ):
        one = span(scores=[good, bad])
        reply = client.spans(one)
        assert (reply.status, reply.code) == (400, code), bad
        assert client.get(f"/v1/traces/{one['trace_id']}").status == 404


def test_inline_rules_of_a_span_are_worked_out(client: Client) -> None:
    scores = [
        {"scorer_name": "regex", "config": {"pattern": "^Par"}},
        {"scorer_name": "exact_match", "config": {"expected_output": "paris", "case_sensitive": False}},
        {"scorer_name": "exact_match"},
    ]
    trace_id, span_id = client.trace(output="Paris", scores=scores)
    rows = client.get("/v1/scores", target_id=span_id, target_type="span").body["items"]
    assert [(row["scorer_name"], row["value"], row["source"]) for row in rows] == [
        ("regex", 1.0, "rule"),
        ("exact_match", 1.0, "rule"),
    ]
    [got] = client.get(f"/v1/traces/{trace_id}").body["spans"]
    assert [row["id"] for row in got["scores"]] == [row["id"] for row in rows]


def test_inline_scores_are_listed_in_the_order_they_were_given(client: Client) -> None:
    """Given values and rules mixed: what the service works out keeps its place."""
    expected = {"expected_output": "Paris"}
    scores: list[dict[str, Any]] = [
        {"scorer_name": "contains", "config": expected},
        {"scorer_name": "b", "value": 0.5},
        {"scorer_name": "exact_match", "config": expected},
        {"scorer_name": "a", "value": "fine"},
        {"scorer_name": "regex", "config": {"pattern": "s$"}},
        {"scorer_name": "b", "value": 0.25},
    ]
    names = [score["scorer_name"] for score in scores]
    run = client.run("Paris", scores=scores)
    _, span_id = client.trace(output="Paris", scores=scores)
    for target in (run, span_id):
        listed = client.pages("/v1/scores", target_id=target, limit=2)
        assert [score["scorer_name"] for score in listed] == names
    dataset, items = client.dataset(["x", "y"])
    experiment = client.experiment(dataset)
    client.runs(
        experiment, [{"dataset_item_id": item, "output": "Paris", "scores": scores} for item in items]
    )
    for row in client.pages(f"/v1/experiments/{experiment}/runs"):
        assert [score["scorer_name"] for score in row["scores"]] == names


def test_scores_of_spans_with_the_same_id_stay_apart(client: Client) -> None:
    first = span(scores=[{"scorer_name": "s", "value": 0.1}])
    second = span(id=first["id"], scores=[{"scorer_name": "s", "value": 0.2}])
    client.spans(first, second)
    for one, expected in ((first, 0.1), (second, 0.2)):
        [got] = client.get(f"/v1/traces/{one['trace_id']}").body["spans"]
        assert [row["value"] for row in got["scores"]] == [expected]


def test_scores_of_a_deleted_trace_are_gone(client: Client) -> None:
    trace_id, span_id = client.trace(scores=[{"scorer_name": "s", "value": 1}])
    client.delete(f"/v1/traces/{trace_id}")
    assert client.get("/v1/scores", target_id=span_id, target_type="span").status == 404


def test_many_patterns_at_once_are_worked_out_or_refused_like_one(client: Client) -> None:
    def score(number: int, pattern: str = "") -> dict[str, Any]:
        return {"scorer_name": "regex", "config": {"pattern": pattern or f"x{{{number}}}$"}}

    run = client.run("x" * 20)
    target = {"target_id": run, "target_type": "run"}
    many = [score(number) for number in range(1, 31)]
    bad = [*many, score(0, "[")]
    made = client.made("/v1/scores/batch", {"scores": [{**target, **one} for one in many]})
    assert made["accepted"] == 30
    reply = client.post("/v1/scores/batch", {"scores": [{**target, **one} for one in bad]})
    assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")
    assert reply.body["error"]["details"]["index"] == 30
    one = span(output="x" * 20, scores=many)
    assert client.spans(one).status == 201
    assert client.spans(span(output="x", scores=bad)).code == "INVALID_SCORER_CONFIG"
    dataset, items = client.dataset(["a", "b"])
    experiment = client.experiment(dataset)
    runs = [{"dataset_item_id": item, "output": "x" * 20, "scores": many} for item in items]
    assert client.post(f"/v1/experiments/{experiment}/runs", {"runs": [{**runs[0], "scores": bad}]}).code == (
        "INVALID_SCORER_CONFIG"
    )
    client.runs(experiment, runs)
    expected = [1.0] * 20 + [0.0] * 10
    for listed in (
        client.get("/v1/scores", target_id=run),
        client.get("/v1/scores", target_id=one["id"], target_type="span"),
    ):
        assert [row["value"] for row in listed.body["items"]] == expected
    for row in client.get(f"/v1/experiments/{experiment}/runs").body["items"]:
        assert [found["value"] for found in row["scores"]] == expected
