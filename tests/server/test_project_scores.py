"""Scores of a project by scorer, value and time; over time; and which span a score is for. On both databases."""

from typing import Any

import pytest
from tests.server.test_security_walk import token
from tests.service_harness import Client, span

from evenhand.core.ids import new_id


def scored(client: Client, values: list[Any], scorer: str = "s") -> list[str]:
    run = client.run("x")
    body = {"target_id": run, "target_type": "run", "scorer_name": scorer}
    return [client.made("/v1/scores", {**body, "value": value})["id"] for value in values]


def listed(client: Client, **query: Any) -> list[str]:
    pages = client.pages("/v1/scores", project_id=client.project, limit=2, **query)
    return [score["id"] for score in pages]


def test_scores_are_listed_by_scorer_value_and_time(client: Client) -> None:
    numbers = scored(client, [0.0, 0.25, 0.5, 1.0])
    labels = scored(client, ["good", "bad"], "tone")
    trace_id, span_id = client.trace()
    body = {"target_id": span_id, "target_type": "span", "scorer_name": "s", "value": 0.4, "source": "human"}
    of_span = client.made("/v1/scores", body)["id"]
    everything = [*numbers, *labels, of_span]
    assert listed(client) == everything[::-1]
    assert listed(client, scorer_name="s") == [of_span, *numbers[::-1]]
    assert listed(client, scorer_name="s", min_value=0.25, max_value=0.5) == [of_span, numbers[2], numbers[1]]
    assert listed(client, scorer_name="s", min_value=0.6) == [numbers[3]]
    assert listed(client, scorer_name="s", min_value=0.6, max_value=0.9) == []
    assert listed(client, scorer_name="nobody", min_value=0) == []
    assert listed(client, label="good") == [labels[0]]
    assert listed(client, target_type="span") == listed(client, source="human") == [of_span]
    whole = client.get("/v1/scores", project_id=client.project).body["items"]
    assert whole[0]["trace_id"] == trace_id
    assert "experiment_id" not in whole[0]
    assert whole[-1]["experiment_id"]
    stamps = [score["created_at"] for score in whole]
    assert listed(client, before=stamps[-1]) == []
    assert len(listed(client, after=stamps[-1])) == sum(stamp > stamps[-1] for stamp in stamps)
    assert listed(client, after="2099-01-01T00:00:00Z") == []
    assert len(listed(client, after="2020-01-01T00:00:00+05:00", before="2099-01-01T00:00:00Z")) == 7


def test_what_cannot_be_asked_is_400(client: Client) -> None:
    assert client.get("/v1/scores").code == "INVALID_REQUEST"
    assert client.get("/v1/scores", project_id=client.project, min_value=0.5).code == "INVALID_REQUEST"
    assert client.get("/v1/scores", project_id=client.project, after="soon").code == "INVALID_REQUEST"
    for query in ({"min_value": "2"}, {"source": "x"}, {"target_type": "trace"}):
        assert client.get("/v1/scores", project_id=client.project, scorer_name="s", **query).status == 400


def test_hours_have_counts_means_and_spread(client: Client) -> None:
    scored(client, [0.0, 1.0])
    scored(client, ["good"], "tone")
    path = "/v1/scores/history"
    both = client.get(path, project_id=client.project).body["scorers"]
    assert [one["scorer_name"] for one in both] == ["s", "tone"]
    hours = both[0]["hours"]
    assert sum(hour["score_count"] for hour in hours) == 2
    if len(hours) == 1:  # the two scores may lie on both sides of a full hour
        assert (hours[0]["mean"], hours[0]["min"], hours[0]["max"]) == (0.5, 0.0, 1.0)
        assert hours[0]["std"] == pytest.approx(0.5**0.5)
    assert sum(hour["label_count"] for hour in both[1]["hours"]) == 1
    assert both[1]["hours"][0]["mean"] is None
    only = client.get(path, project_id=client.project, scorer_name="tone").body["scorers"]
    assert [one["scorer_name"] for one in only] == ["tone"]
    assert client.get(path, project_id=client.project, before="2020-01-01T00:00:00Z").body["scorers"] == []
    assert client.get(path).code == "PROJECT_REQUIRED"


def twins(client: Client) -> tuple[str, str, str]:
    """The ids of two traces of one project, each with a span of the same id, and that id."""
    name = f"dup-{new_id()}"
    first, second = span(id=name), span(id=name)
    assert client.spans(first).status == client.spans(second).status == 201
    return first["trace_id"], second["trace_id"], name


def values(client: Client, trace_id: str, **query: Any) -> list[Any]:
    [one] = client.get(f"/v1/traces/{trace_id}", **query).body["spans"]
    return [score["value"] for score in one["scores"]]


def test_the_trace_decides_which_span_a_score_is_for(client: Client) -> None:
    first, second, name = twins(client)
    body = {"target_id": name, "target_type": "span", "scorer_name": "s"}
    refused = client.post("/v1/scores", {**body, "value": 1})
    assert (refused.status, refused.code) == (409, "AMBIGUOUS_TARGET")
    found = {one["trace_id"] for one in refused.body["error"]["details"]["candidates"]}
    assert found == {first, second}
    client.made("/v1/scores", {**body, "trace_id": first, "value": 1})
    client.made("/v1/scores/batch", {"scores": [{**body, "trace_id": second, "value": 0}]})
    regex = {"scorer_name": "regex", "config": {"pattern": "x"}, "trace_id": second}
    assert client.post("/v1/scores", {**body, **regex}).body["reason"] == "no_response"
    assert (values(client, first), values(client, second)) == ([1], [0])
    for trace_id, value in ((first, 1), (second, 0)):
        [score] = client.get("/v1/scores", target_id=name, trace_id=trace_id).body["items"]
        assert score["value"] == value
    assert client.get("/v1/scores", target_id=name).code == "AMBIGUOUS_TARGET"
    assert client.post("/v1/scores", {**body, "trace_id": "no-such", "value": 1}).code == "NOT_FOUND"


@pytest.mark.parametrize("value", [1, None])
def test_an_ambiguous_target_stores_nothing_of_a_batch(client: Client, value: int | None) -> None:
    first, second, name = twins(client)
    run = {"target_id": client.run("x"), "target_type": "run", "scorer_name": "s", "value": 1}
    config = {} if value else {"scorer_name": "regex", "config": {"pattern": "x"}}
    bad = {"target_id": name, "target_type": "span", "scorer_name": "s", "value": value, **config}
    reply = client.post("/v1/scores/batch", {"scores": [run, bad]})
    assert (reply.status, reply.code) == (409, "AMBIGUOUS_TARGET")
    assert client.get("/v1/scores", target_id=run["target_id"]).body["items"] == []
    assert (values(client, first), values(client, second)) == ([], [])


def test_a_token_of_one_project_meets_no_twin_of_another(client: Client) -> None:
    """The span of the seed: its id is unique in what the caller sees, and nothing is told of the rest."""
    name = f"dup-{new_id()}"
    foreign, own = span(id=name), span(id=name)
    elsewhere = f"elsewhere-{new_id()}"
    client.made("/v1/projects", {"id": elsewhere, "name": "e"})
    client.post("/v1/traces/ingest", {"spans": [foreign], "project_id": elsewhere})
    client.spans(own)
    narrow = client.again(token=token(client, "write"))
    body = {"target_id": name, "target_type": "span", "scorer_name": "s", "value": 1}
    narrow.made("/v1/scores", body)
    assert values(client, own["trace_id"]) == [1]
    assert values(client, foreign["trace_id"], project_id=elsewhere) == []
    assert narrow.post("/v1/scores", {**body, "trace_id": foreign["trace_id"]}).code == "NOT_FOUND"
    narrow.close()
    seen = client.post("/v1/scores", body).body["error"]["details"]["candidates"]
    assert {one["project_id"] for one in seen} == {elsewhere, client.project}
    client.made("/v1/scores", {**body, "project_id": elsewhere})
    assert values(client, foreign["trace_id"], project_id=elsewhere) == [1]


def test_a_trace_of_two_projects_needs_the_project_too(client: Client) -> None:
    one = span()
    elsewhere = f"elsewhere-{new_id()}"
    client.made("/v1/projects", {"id": elsewhere, "name": "e"})
    for project in (client.project, elsewhere):
        client.post("/v1/traces/ingest", {"spans": [one], "project_id": project})
    body = {"target_id": one["id"], "target_type": "span", "scorer_name": "s", "value": 1}
    assert client.post("/v1/scores", {**body, "trace_id": one["trace_id"]}).code == "AMBIGUOUS_TARGET"
    client.made("/v1/scores", {**body, "trace_id": one["trace_id"], "project_id": elsewhere})
    assert values(client, one["trace_id"], project_id=elsewhere) == [1]
    assert values(client, one["trace_id"], project_id=client.project) == []
