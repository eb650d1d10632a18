"""Every acceptance criterion and edge case of the scoring specification, on both databases."""

from typing import Any

import pytest
from tests.service_harness import Client, Reply


def score(
    client: Client, target_id: str, scorer_name: str, *, target_type: str = "run", **more: Any
) -> Reply:
    body = {"target_id": target_id, "target_type": target_type, "scorer_name": scorer_name, **more}
    return client.post("/v1/scores", body)


def value(reply: Reply) -> Any:
    assert reply.status == 201, reply.raw
    return reply.body["value"]


def listed(client: Client, target_id: str, target_type: str = "run") -> list[tuple[str, Any]]:
    rows = client.get("/v1/scores", target_id=target_id, target_type=target_type).body["items"]
    return [(row["scorer_name"], row["value"]) for row in rows]


def test_exact_match_without_case(client: Client) -> None:
    """GIVEN output "Paris", expected "paris" WHEN case_sensitive=false, strip_whitespace=true THEN 1.0."""
    run = client.run("Paris", "paris")
    config = {"case_sensitive": False, "strip_whitespace": True}
    assert value(score(client, run, "exact_match", config=config)) == 1.0
    assert value(score(client, run, "exact_match")) == 0.0


def test_exact_match_strips_white_space_by_default(client: Client) -> None:
    """GIVEN output "  Paris  ", expected "Paris" WHEN strip_whitespace=true (default) THEN 1.0."""
    run = client.run("  Paris  ", "Paris")
    assert value(score(client, run, "exact_match")) == 1.0
    assert value(score(client, run, "exact_match", config={"strip_whitespace": False})) == 0.0


def test_the_specifications_own_example_of_exact_match(client: Client) -> None:
    run = client.run("  Paris  ", "paris")
    config = {"case_sensitive": False, "strip_whitespace": True}
    assert value(score(client, run, "exact_match", config=config)) == 1.0


def test_contains_finds_the_expected_output(client: Client) -> None:
    """GIVEN "The capital of France is Paris, a beautiful city" WHEN contains "Paris", case-sensitive THEN 1.0."""
    run = client.run("The capital of France is Paris, a beautiful city")
    config = {"expected_output": "Paris", "case_sensitive": True}
    assert value(score(client, run, "contains", config=config)) == 1.0


def test_contains_minds_case(client: Client) -> None:
    """GIVEN "The capital of France is paris" WHEN contains "Paris", case-sensitive THEN 0.0."""
    run = client.run("The capital of France is paris", "Paris")
    assert value(score(client, run, "contains", config={"case_sensitive": True})) == 0.0
    assert value(score(client, run, "contains", config={"case_sensitive": False})) == 1.0


def test_regex_matches_anywhere(client: Client) -> None:
    """GIVEN "Order ID: ABC-12345" WHEN pattern "[A-Z]+-\\d+" THEN 1.0."""
    run = client.run("Order ID: ABC-12345")
    assert value(score(client, run, "regex", config={"pattern": r"[A-Z]+-\d+"})) == 1.0


def test_regex_that_does_not_match(client: Client) -> None:
    """GIVEN "Order confirmed" WHEN pattern "[A-Z]+-\\d+" THEN 0.0."""
    run = client.run("Order confirmed")
    assert value(score(client, run, "regex", config={"pattern": r"[A-Z]+-\d+"})) == 0.0
    assert value(score(client, run, "regex", config={"pattern": "ORDER", "flags": "i"})) == 1.0


def test_an_invalid_pattern_is_INVALID_SCORER_CONFIG(client: Client) -> None:
    """GIVEN pattern "[invalid" THEN 400 INVALID_SCORER_CONFIG."""
    run = client.run("x")
    reply = score(client, run, "regex", config={"pattern": "[invalid"})
    assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")
    assert listed(client, run) == []


@pytest.mark.parametrize("number", [1.5, -0.1, 1.0000001, -1e-9, 2, 10**30])
def test_a_number_outside_0_to_1_is_INVALID_SCORE_VALUE(client: Client, number: float) -> None:
    """GIVEN value=1.5, or -0.1, THEN 400 INVALID_SCORE_VALUE."""
    run = client.run("x")
    reply = score(client, run, "custom", value=number)
    assert (reply.status, reply.code) == (400, "INVALID_SCORE_VALUE")
    assert listed(client, run) == []


def test_a_scored_run_lists_its_score(client: Client) -> None:
    """GIVEN a run scored by "exact_match" with 0.8 WHEN listed THEN the score is returned."""
    run = client.run("x")
    assert value(score(client, run, "exact_match", value=0.8)) == 0.8
    assert listed(client, run) == [("exact_match", 0.8)]


def test_a_span_is_scored_and_lists_its_score(client: Client) -> None:
    """GIVEN a span in an existing trace WHEN a score is submitted THEN it is attached and returned."""
    _, span_id = client.trace()
    reply = score(client, span_id, "relevance", target_type="span", value=0.5, rationale="near")
    assert reply.status == 201
    assert (reply.body["target_id"], reply.body["target_type"]) == (span_id, "span")
    assert listed(client, span_id, "span") == [("relevance", 0.5)]


def test_no_expected_output_makes_no_score_and_no_error(client: Client) -> None:
    """GIVEN no expected_output WHEN exact_match is submitted THEN no score is created and no error returned."""
    run = client.run("France")
    for scorer in ("exact_match", "contains"):
        reply = score(client, run, scorer)
        assert (reply.status, reply.body["score"]) == (200, None)
        assert reply.body["reason"] == "no_expected_output"
    assert listed(client, run) == []


def test_scores_of_several_scorers_are_all_listed_and_summed_up_apart(client: Client) -> None:
    """GIVEN output "France" WHEN several scorers submit THEN all are listed and each is in scores_by_scorer."""
    dataset, [item] = client.dataset([{"input": "q", "expected_output": "France"}])
    experiment = client.experiment(dataset)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "France"}])
    score(client, run, "one", value=0.25)
    score(client, run, "two", value="good")
    score(client, run, "exact_match")
    assert listed(client, run) == [("one", 0.25), ("two", "good"), ("exact_match", 1.0)]
    summary = client.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]
    assert summary["one"]["mean"] == 0.25
    assert summary["two"]["distribution"] == {"good": 1}
    assert summary["exact_match"]["mean"] == 1.0


def test_edge_a_target_that_does_not_exist_is_404(client: Client) -> None:
    for kind in ("run", "span"):
        reply = score(client, "no-such", "s", target_type=kind, value=1)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize("kind", ["trace", "", "RUN", None, 5])
def test_edge_another_target_type_is_INVALID_REQUEST(client: Client, kind: Any) -> None:
    reply = client.post("/v1/scores", {"target_id": "x", "target_type": kind, "scorer_name": "s", "value": 1})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_edge_two_scores_of_one_scorer_are_both_kept_and_counted(client: Client) -> None:
    dataset, [item] = client.dataset(["q"])
    experiment = client.experiment(dataset)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "x"}])
    score(client, run, "s", value=0.0)
    score(client, run, "s", value=1.0)
    assert listed(client, run) == [("s", 0.0), ("s", 1.0)]
    row = client.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]["s"]
    assert (row["mean"], row["min"], row["max"]) == (0.5, 0.0, 1.0)
    assert row["scored_run_count"] == 1


def test_edge_a_label_against_a_threshold_is_UNSUPPORTED_THRESHOLD_TYPE(client: Client) -> None:
    dataset, [item] = client.dataset(["q"])
    experiment = client.experiment(dataset)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "x"}])
    score(client, run, "s", value="pass")
    body = {"scorer_name": "s", "metric": "mean", "threshold": 0.5, "comparison": "gte"}
    reply = client.post(f"/v1/experiments/{experiment}/threshold", body)
    assert (reply.status, reply.code) == (422, "UNSUPPORTED_THRESHOLD_TYPE")


def test_edge_an_empty_label_is_INVALID_REQUEST(client: Client) -> None:
    run = client.run("x")
    reply = score(client, run, "s", value="")
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_edge_an_output_that_is_an_object_is_compared_as_JSON(client: Client) -> None:
    run = client.run({"b": [1, 2.0], "a": "x"}, {"a": "x", "b": [1, 2]})
    assert value(score(client, run, "exact_match")) == 1.0
    other = client.run({"a": "x"}, {"a": "y"})
    assert value(score(client, other, "exact_match")) == 0.0


def test_inline_scores_of_runs_and_spans_are_the_same_objects(client: Client) -> None:
    """All three ways of attaching a score produce identical Score objects."""
    inline = [{"scorer_name": "s", "value": 0.75, "rationale": "why"}]
    run = client.run("x", scores=inline)
    _, span_id = client.trace(scores=inline)
    later = client.run("x")
    score(client, later, "s", value=0.75, rationale="why")
    shapes = []
    for target, kind in ((run, "run"), (span_id, "span"), (later, "run")):
        [row] = client.get("/v1/scores", target_id=target, target_type=kind).body["items"]
        assert (row["target_id"], row["target_type"]) == (target, kind)
        shapes.append(
            {k: v for k, v in row.items() if k not in ("id", "created_at", "target_id", "target_type")}
        )
    assert shapes[0] == shapes[1] == shapes[2]


def test_human_and_custom_scores_are_stored_as_submitted(client: Client) -> None:
    run = client.run("x")
    assert value(score(client, run, "human_review", value="hallucination")) == "hallucination"
    assert value(score(client, run, "custom_toxicity_check", value=0)) == 0
    # a caller-executed judge keeps its name and its value
    assert value(score(client, run, "llm_judge", value=0.9, rationale="9 of 10")) == 0.9
