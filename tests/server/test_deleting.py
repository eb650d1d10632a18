"""What is deleted is gone from every number, and recorded. On both databases."""

import json
import random
from datetime import timedelta
from typing import Any

import pytest
from tests.ab_suites import wait_for
from tests.service import ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.core.ids import new_id
from evenhand.core.timestamps import now
from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.deleting import ROWS, any_removal, delete_experiment, remove_more, retain

VALUES: list[float | str] = [0.0, 0.1, 0.5, 1.0, "good", "bad", 1e-300]


def faults(service: ServiceUnderTest) -> list[str]:
    return service.database.read_now(lambda connection: list(check(connection)))


def audit(client: Client) -> list[tuple[str, str]]:
    entries = client.pages("/v1/audit", project_id=client.project, limit=200)
    return [(entry["object_type"], entry["object_id"]) for entry in entries]


def test_after_each_deleted_score_everything_is_as_if_it_had_never_been(
    client: Client, shared_service: ServiceUnderTest
) -> None:
    """Scores with and without a version, numbers and labels, deleted in any order; a recount after every one."""
    source = random.Random(5)
    dataset, items = client.dataset([{"input": n, "expected_output": n} for n in range(3)])
    experiment = client.experiment(dataset, auto_complete=False)
    runs = client.runs(
        experiment, [{"dataset_item_id": item, "output": 1, "repeat": n} for item in items for n in range(2)]
    )
    ids = []
    for n in range(24):
        body: dict[str, Any] = {"target_id": source.choice(runs), "target_type": "run"}
        if n % 3 == 0:
            body |= {"scorer_name": "exact_match", "config": {"case_sensitive": n % 2 == 0}}
        else:
            body |= {"scorer_name": source.choice("st"), "value": source.choice(VALUES)}
        ids.append(client.made("/v1/scores", body)["id"])
    source.shuffle(ids)
    for number, score_id in enumerate(ids):
        assert client.get(f"/v1/scores/{score_id}").body["id"] == score_id
        assert client.delete(f"/v1/scores/{score_id}").body == {"deleted": True, "id": score_id}
        assert client.get(f"/v1/scores/{score_id}").code == "NOT_FOUND"
        assert client.delete(f"/v1/scores/{score_id}").code == "NOT_FOUND"
        left = list(client.pages(f"/v1/experiments/{experiment}/runs", limit=200))
        assert sum(len(run["scores"]) for run in left) == len(ids) - number - 1
        # What others of the suite make meanwhile in this database has to agree with a recount as well.
        assert [fault for fault in faults(shared_service) if experiment in fault] == []
    assert client.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"] == {}
    assert audit(client) == [("score", score_id) for score_id in ids[::-1]]
    assert faults(shared_service) == []


def test_limits_and_labels_come_from_what_is_left(client: Client) -> None:
    run = client.run("x")
    body = {"target_id": run, "target_type": "run"}
    numbers = [client.made("/v1/scores", {**body, "scorer_name": "s", "value": v})["id"] for v in (0, 0.5, 1)]
    labels = [client.made("/v1/scores", {**body, "scorer_name": "t", "value": v})["id"] for v in "abb"]
    experiment = client.get("/v1/scores", project_id=client.project).body["items"][0]["experiment_id"]

    def summary(name: str) -> Any:
        return client.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"].get(name)

    client.delete(f"/v1/scores/{numbers[0]}")
    assert [summary("s")[name] for name in ("min", "max", "mean")] == [0.5, 1, 0.75]
    client.delete(f"/v1/scores/{numbers[2]}")
    assert [summary("s")[name] for name in ("min", "max", "mean")] == [0.5, 0.5, 0.5]
    client.delete(f"/v1/scores/{labels[2]}")
    assert summary("t")["distribution"] == {"a": 1, "b": 1}
    client.delete(f"/v1/scores/{labels[1]}")
    assert summary("t")["distribution"] == {"a": 1}
    hours = client.get("/v1/scores/history", project_id=client.project).body["scorers"]
    assert sum(hour["score_count"] for one in hours for hour in one["hours"]) == 1


def test_a_score_of_a_span_can_be_deleted(client: Client) -> None:
    trace_id, span_id = client.trace()
    body = {"target_id": span_id, "target_type": "span", "scorer_name": "s", "value": 1}
    score = client.made("/v1/scores", body)["id"]
    client.delete(f"/v1/scores/{score}")
    [one] = client.get(f"/v1/traces/{trace_id}").body["spans"]
    assert one["scores"] == []


def test_an_experiment_goes_with_its_runs_and_scores(
    client: Client, shared_service: ServiceUnderTest
) -> None:
    dataset, [item] = client.dataset("a")
    scores = [{"scorer_name": "s", "value": 1}]
    made, kept = (client.experiment(dataset, auto_complete=False) for _ in range(2))
    [run], _ = (
        client.runs(one, [{"dataset_item_id": item, "output": 1, "scores": scores}]) for one in (made, kept)
    )
    assert client.delete(f"/v1/experiments/{made}").body == {"deleted": True, "id": made}
    for path in (
        f"/v1/experiments/{made}",
        f"/v1/experiments/{made}/runs",
        f"/v1/experiments/{made}/summary",
        f"/v1/experiments/{kept}/compare/{made}",
        f"/v1/scores?target_id={run}",
    ):
        assert client.request("GET", path).code == "NOT_FOUND", path
    assert client.delete(f"/v1/experiments/{made}").code == "NOT_FOUND"
    left = client.get("/v1/scores", project_id=client.project).body["items"]
    assert [score["experiment_id"] for score in left] == [kept]
    assert [
        run["experiment_id"] for run in client.get(f"/v1/datasets/{dataset}/items/{item}/runs").body["items"]
    ] == [kept]
    assert ("experiment", made) in audit(client)
    assert faults(shared_service) == []


def rows_of(connection: Connection, table: str, column: str, value: str) -> int:
    [(count,)] = connection.all(f"SELECT COUNT(*) FROM {table} WHERE {column} = ?", value)
    return int(count)


def test_a_large_experiment_goes_in_small_steps(client: Client, shared_service: ServiceUnderTest) -> None:
    dataset, [item] = client.dataset("a")
    experiment = client.experiment(dataset, auto_complete=False)
    count = 14 * ROWS
    scores = [{"scorer_name": "s", "value": 1}]
    runs = [{"dataset_item_id": item, "output": 1, "repeat": n, "scores": scores} for n in range(count)]
    client.runs(experiment, runs)
    database = shared_service.database

    # Not by a request: the server's own background work would go on at once.
    def delete(connection: Connection) -> int:
        delete_experiment(connection, experiment, scope=None, actor="test")
        return rows_of(connection, "runs", "experiment_id", experiment)

    assert 0 < database.write_now(delete) < count
    while database.read_now(any_removal):
        database.write_now(remove_more)
    for table in ("runs", "scores", "scorer_totals", "item_totals", "cluster_totals"):
        left = database.read_now(
            lambda connection, table=table: rows_of(connection, table, "experiment_id", experiment)  # type: ignore[misc]
        )
        assert left == 0, table
    assert client.get("/v1/scores/history", project_id=client.project).body["scorers"] == []


def test_a_project_goes_with_everything_and_its_tokens_stop(
    client: Client, shared_service: ServiceUnderTest
) -> None:
    own = f"doomed-{new_id()}"
    client.made("/v1/projects", {"id": own, "name": "doomed"})
    doomed = client.again(project=own)
    trace_id, span_id = doomed.trace(input="q")
    run = doomed.run("x", "x", scores=[{"scorer_name": "s", "value": 1}])
    doomed.made("/v1/annotations", {"trace_id": trace_id, "annotator": "a", "label": "l"})
    doomed.made("/v1/scores", {"target_id": span_id, "target_type": "span", "scorer_name": "s", "value": 1})
    doomed.made(
        "/v1/rules", {"project_id": own, "name": "r", "scorer_name": "regex", "config": {"pattern": "a"}}
    )
    queue = doomed.made("/v1/queues", {"project_id": own, "name": "q"})["id"]
    doomed.post(f"/v1/queues/{queue}/items", {"trace_ids": [trace_id]})
    token = doomed.made("/v1/tokens", {"name": "t", "role": "admin", "project_id": own})["token"]
    assert doomed.delete(f"/v1/projects/{own}").body == {"deleted": True, "id": own}
    holder = client.again(token=token)
    assert holder.get("/v1/projects").code == "UNAUTHORIZED"
    holder.close()
    assert doomed.get(f"/v1/projects/{own}").code == "NOT_FOUND"
    late = doomed.spans(span())
    # Until all of it is gone nothing goes into it; afterwards it is made anew.
    assert (late.status, late.code) in ((409, "CONFLICT"), (201, None))
    database = shared_service.database
    wait_for(lambda: not database.read_now(any_removal), 120)
    if late.status == 409:
        for path in ("traces", "datasets", "experiments", "scores", "rules", "queues"):
            assert doomed.get(f"/v1/{path}", project_id=own).body["items"] == [], path
        assert doomed.get("/v1/scores", target_id=run).code == "NOT_FOUND"
    entries = list(client.pages("/v1/audit", project_id=own, limit=200))
    assert [(entry["object_type"], entry["object_id"]) for entry in entries] == [("project", own)]
    assert entries[0]["actor"] == "environment"
    doomed.close()
    assert faults(shared_service) == []


def test_a_reader_of_the_audit_log_is_an_administrator(client: Client) -> None:
    writer = client.again(
        token=client.made("/v1/tokens", {"name": "w", "role": "write", "project_id": client.project})["token"]
    )
    dataset, _ = client.dataset()
    assert writer.delete(f"/v1/datasets/{dataset}").status == 200
    assert writer.get("/v1/audit", project_id=client.project).code == "FORBIDDEN"
    [entry] = client.get("/v1/audit", project_id=client.project).body["items"]
    assert (entry["object_type"], entry["action"], entry["details"]["item_count"]) == ("dataset", "delete", 0)
    assert entry["actor"] not in ("environment", "")
    writer.close()


@pytest.mark.parametrize("bad", [{"retain_days": -1}, {"retain_days": 40_000}, {"name": " "}, {"name": 5}])
def test_a_project_says_how_long_it_keeps_traces(client: Client, bad: dict[str, Any]) -> None:
    path = f"/v1/projects/{client.project}"
    assert client.get(path).body["retain_days"] is None
    assert patch(client, path, {"retain_days": 30}).body["retain_days"] == 30
    assert patch(client, path, {"name": "new"}).body == {
        **client.get(path).body,
        "name": "new",
        "retain_days": 30,
    }
    assert patch(client, path, bad).code == "INVALID_REQUEST"
    assert patch(client, path, {"retain_days": 0}).body["retain_days"] is None


def patch(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.request("PATCH", path, json.dumps(body).encode(), {"Content-Type": "application/json"})


def test_old_traces_go_and_young_ones_stay(client: Client, shared_service: ServiceUnderTest) -> None:
    old, old_span = client.trace(input="q", metadata={"k": 1})
    client.made("/v1/scores", {"target_id": old_span, "target_type": "span", "scorer_name": "s", "value": 1})
    client.made("/v1/annotations", {"trace_id": old, "annotator": "a", "notes": "n"})
    database = shared_service.database
    # No clock of the tests goes back: the day is moved instead.
    later = now() + timedelta(days=31)

    def step(connection: Connection) -> bool:
        return retain(connection, client.project, 30, later)

    assert not database.write_now(lambda connection: retain(connection, client.project, 30))
    assert client.get(f"/v1/traces/{old}").status == 200
    assert database.write_now(step)
    assert not database.write_now(step)
    assert client.get(f"/v1/traces/{old}").code == "NOT_FOUND"
    assert client.get("/v1/scores", project_id=client.project).body["items"] == []
    # What a person said stays.
    assert len(client.get("/v1/annotations", trace_id=old, project_id=client.project).body["items"]) == 1
    again, _ = client.trace()
    assert database.write_now(step)
    assert client.get(f"/v1/traces/{again}").code == "NOT_FOUND"
    [entry] = client.get("/v1/audit", project_id=client.project).body["items"]
    assert (entry["actor"], entry["object_type"]) == ("retention", "traces")
    assert entry["details"] == {"trace_count": 2, "job_count": 0}
    assert faults(shared_service) == []
