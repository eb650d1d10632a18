"""Rules that rest and are applied to stored spans; jobs by state, tried again. On both databases."""

from typing import Any

from tests.ab_suites import wait_for
from tests.service_harness import Client, span

from evenhand.core.ids import new_id


def rule(client: Client, **more: Any) -> str:
    body = {
        "project_id": client.project,
        "name": new_id(),
        "scorer_name": "regex",
        "config": {"pattern": "x"},
        **more,
    }
    made: str = client.made("/v1/rules", body)["id"]
    return made


def jobs(client: Client, **query: Any) -> list[Any]:
    return list(client.pages("/v1/jobs", project_id=client.project, limit=200, **query))


def backfilled(client: Client, rule_id: str, **asked: Any) -> Any:
    made = client.made(f"/v1/rules/{rule_id}/backfills", asked)
    path = f"/v1/rules/{rule_id}/backfills/{made['id']}"
    wait_for(lambda: client.get(path).body["status"] == "completed", 120)
    return client.get(path).body


def test_a_rule_can_rest_and_its_share_can_change(client: Client) -> None:
    one = rule(client)
    changed = client.request("PATCH", f"/v1/rules/{one}", b'{"paused": true}', JSON)
    assert (changed.status, changed.body["paused"], changed.body["sample_rate"]) == (200, True, 1.0)
    client.spans(span(output="x"))
    assert jobs(client) == []
    changed = client.request("PATCH", f"/v1/rules/{one}", b'{"paused": false, "sample_rate": 0}', JSON)
    assert (changed.body["paused"], changed.body["sample_rate"]) == (False, 0.0)
    client.spans(span(output="x"))
    assert jobs(client) == []
    client.request("PATCH", f"/v1/rules/{one}", b'{"sample_rate": 1}', JSON)
    client.spans(span(output="x"))
    assert len(jobs(client)) == 1
    for bad in (b'{"sample_rate": 2}', b'{"paused": 1}', b"[]", b""):
        assert client.request("PATCH", f"/v1/rules/{one}", bad, JSON).code == "INVALID_REQUEST"
    assert client.request("PATCH", "/v1/rules/no-such", b"{}", JSON).code == "NOT_FOUND"


JSON = {"Content-Type": "application/json"}


def test_a_backfill_scores_each_matching_span_once(client: Client) -> None:
    spans = [span(output="x", name="a" if n % 2 else "b") for n in range(230)]
    client.spans(*spans)
    one = rule(client, filter={"name": "a"})
    client.spans(span(output="x", name="a"))
    done = backfilled(client, one)
    # The span that came after the rule has its job already.
    assert (done["trace_count"], done["job_count"]) == (231, 115)
    assert backfilled(client, one)["job_count"] == 0
    made = jobs(client)
    assert len(made) == len({job["target_id"] for job in made}) == 116
    wait_for(lambda: {job["status"] for job in jobs(client)} == {"completed"}, 120)
    assert len(list(client.pages("/v1/scores", project_id=client.project, limit=200))) == 116


def test_a_backfill_is_for_traces_of_a_time_and_can_be_stopped(client: Client) -> None:
    client.spans(span(output="x"))
    one = rule(client)
    assert backfilled(client, one, before="2020-01-01T00:00:00Z")["job_count"] == 0
    assert backfilled(client, one, after="2099-01-01T00:00:00Z")["job_count"] == 0
    bad = client.post(f"/v1/rules/{one}/backfills", {"after": "soon"})
    assert bad.code == "INVALID_REQUEST"
    made = client.made(f"/v1/rules/{one}/backfills", {})["id"]
    path = f"/v1/rules/{one}/backfills/{made}"
    assert client.delete(path).body["status"] in ("cancelled", "completed")
    assert client.get(f"/v1/rules/{rule(client)}/backfills/{made}").code == "NOT_FOUND"
    client.delete(f"/v1/rules/{one}")
    assert client.get(path).code == "NOT_FOUND"


def test_jobs_are_listed_by_state_and_failed_ones_tried_again(client: Client) -> None:
    client.spans(span(output="x"))
    fine = rule(client)
    backfilled(client, fine)
    # Its only span has no output to compare with what is expected: not scored, and so it will be again.
    bad = rule(client, scorer_name="exact_match", config={})
    backfilled(client, bad)
    wait_for(lambda: {job["status"] for job in jobs(client)} == {"completed", "failed"}, 120)
    [failed] = jobs(client, status="failed")
    assert (failed["rule_id"], failed["outcome"]) == (bad, "unscored")
    [completed] = jobs(client, status="completed")
    refused = client.post(f"/v1/jobs/{completed['job_id']}/retry")
    assert (refused.status, refused.code) == (409, "CONFLICT")
    again = client.post(f"/v1/jobs/{failed['job_id']}/retry")
    assert (again.status, again.body["status"], again.body["attempts"]) == (200, "pending", 0)
    assert again.body["error"] is None
    path = f"/v1/jobs/{failed['job_id']}"
    wait_for(lambda: client.get(path).body["status"] == "failed", 120)
    nobody = client.post("/v1/jobs/retry", {"project_id": client.project, "rule_id": fine}).body
    assert nobody == {"retried_count": 0, "more": False}
    many = client.post("/v1/jobs/retry", {"project_id": client.project, "rule_id": bad}).body
    assert many == {"retried_count": 1, "more": False}
    wait_for(lambda: client.get(path).body["status"] == "failed", 120)
    assert client.post("/v1/jobs/retry", {"project_id": "no-such"}).code == "NOT_FOUND"
