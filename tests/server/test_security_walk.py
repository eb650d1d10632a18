"""Deny by default: the route table itself is walked, so a new endpoint cannot be forgotten."""

import json
import re
from typing import Any

import pytest
from tests.service_harness import Client, span

from evenhand.core.ids import new_id
from evenhand.server.http.routes import Route
from evenhand.server.table import all_routes

ROUTES = [route for route in all_routes() if route.path.startswith("/v1/")]
OPEN = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"}


def label(route: Route) -> str:
    return f"{route.method} {route.path}"


def filled(path: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match.group(1), "x"), path)


def walk(client: Client, route: Route, values: dict[str, str]) -> Any:
    """The call with a body that is right in shape, as far as one is needed to get past the decoding."""
    path = filled(route.path, values)
    if route.method == "GET":
        return client.get(path, **({"project_id": values["project_id"]} if "project_id" in values else {}))
    if route.method == "DELETE":
        return client.delete(path)
    body = BODIES.get(label(route), b"{}")
    return client.request(route.method, path, body, {"Content-Type": route.media_types[0]})


BODIES: dict[str, bytes] = {}


@pytest.mark.parametrize("route", ROUTES, ids=label)
def test_case_22_without_a_token_every_endpoint_is_401(client: Client, route: Route) -> None:
    nobody = client.again(token=None)
    reply = walk(nobody, route, {})
    assert (reply.status, code_of(route, reply)) == (401, "UNAUTHORIZED")
    nobody.close()


def code_of(route: Route, reply: Any) -> str:
    """The code of the envelope; OTLP answers with a status of its own."""
    if route.render_error is not None:
        return {401: "UNAUTHORIZED", 403: "FORBIDDEN"}.get(reply.status, "")
    code: str = reply.code
    return code


@pytest.mark.parametrize("route", [route for route in ROUTES if route.role in ("write", "admin")], ids=label)
def test_case_22_a_reader_writing_is_403(client: Client, route: Route) -> None:
    reader = client.again(token=token(client, "read"))
    reply = walk(reader, route, {})
    assert (reply.status, code_of(route, reply)) == (403, "FORBIDDEN")
    reader.close()


@pytest.mark.parametrize("route", [route for route in ROUTES if route.role != "review"], ids=label)
def test_a_reviewer_sees_nothing_but_review_queues(client: Client, route: Route) -> None:
    reviewer = client.again(token=token(client, "review"))
    reply = walk(reviewer, route, {"project_id": client.project})
    assert (reply.status, code_of(route, reply)) == (403, "FORBIDDEN")
    reviewer.close()


def token(client: Client, role: str, project: str | None = None) -> str:
    body = {"name": "t", "role": role, "project_id": project or client.project}
    made: str = client.made("/v1/tokens", body)["token"]
    return made


def belongings(client: Client) -> dict[str, str]:
    """One object of each kind in the client's project, by the name of its parameter."""
    dataset, [item] = client.dataset(["q"])
    experiment = client.experiment(dataset, auto_complete=False)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "x"}])
    trace_id, span_id = client.trace(input="q")
    annotation = client.made("/v1/annotations", {"trace_id": trace_id, "annotator": "a", "label": "x"})["id"]
    rule = client.made(
        "/v1/rules",
        {"project_id": client.project, "name": new_id(), "scorer_name": "regex", "config": {"pattern": "a"}},
    )["id"]
    own_token = client.made("/v1/tokens", {"name": "t", "role": "read", "project_id": client.project})["id"]
    client.spans(span())
    [job, *_] = client.get("/v1/jobs", project_id=client.project).body["items"]
    person = client.made("/v1/people", {"name": "p", "project_id": client.project})["id"]
    queue = client.made(
        "/v1/queues", {"project_id": client.project, "name": new_id(), "reviewers_per_item": 5}
    )["id"]
    client.post(f"/v1/queues/{queue}/items", {"trace_ids": [trace_id]})
    reviewed = client.post(f"/v1/queues/{queue}/next", {"annotator": "first"}).body["item"]["id"]
    client.made(
        f"/v1/queues/{queue}/items/{reviewed}/review", {"annotator": "first", "answers": {"label": "other"}}
    )
    return {
        "project_id": client.project,
        "person_id": person,
        "queue_id": queue,
        "review_item_id": reviewed,
        "dataset_id": dataset,
        "item_id": item,
        "experiment_id": experiment,
        "other_id": experiment,
        "run_id": run,
        "trace_id": trace_id,
        "span_id": span_id,
        "annotation_id": annotation,
        "rule_id": rule,
        "token_id": own_token,
        "job_id": job["job_id"],
        "score_id": client.made(
            "/v1/scores", {"target_id": run, "target_type": "run", "scorer_name": "own", "value": 1}
        )["id"],
        "backfill_id": client.made(f"/v1/rules/{rule}/backfills", {})["id"],
    }


def bodies(values: dict[str, str]) -> dict[str, Any]:
    """For each endpoint with a body: one that names the foreign objects."""
    score = {"target_id": values["run_id"], "target_type": "run", "scorer_name": "s", "value": 1}
    project = values["project_id"]
    return {
        "POST /v1/datasets": {"project_id": project, "name": "n"},
        "POST /v1/datasets/{dataset_id}/items": {"input": 1},
        "POST /v1/experiments": {"project_id": project, "name": "n", "dataset_id": values["dataset_id"]},
        "POST /v1/experiments/{experiment_id}/runs": {
            "runs": [{"dataset_item_id": values["item_id"], "output": 1, "repeat": 5}]
        },
        "POST /v1/experiments/{experiment_id}/threshold": {
            "scorer_name": "s",
            "metric": "mean",
            "threshold": 0.5,
            "comparison": "gte",
        },
        "POST /v1/scores": score,
        "POST /v1/scores/batch": {"scores": [score]},
        "POST /v1/traces/ingest": {"spans": [span()], "project_id": project},
        "POST /v1/annotations": {"trace_id": values["trace_id"], "annotator": "a", "label": "x"},
        "POST /v1/annotations/{annotation_id}/to-dataset-item": {"dataset_id": values["dataset_id"]},
        "POST /v1/rules": {
            "project_id": project,
            "name": "n",
            "scorer_name": "regex",
            "config": {"pattern": "a"},
        },
        "PATCH /v1/rules/{rule_id}": {"paused": True},
        "PATCH /v1/projects/{project_id}": {"name": "n", "retain_days": 1},
        "POST /v1/jobs/retry": {"project_id": project},
        "POST /v1/datasets/{dataset_id}/items/from-span": {"trace_id": values["trace_id"]},
        "POST /v1/projects": {"id": f"new-{new_id()}", "name": "n"},
        "POST /v1/tokens": {"name": "n", "role": "read", "project_id": project},
        "POST /v1/people": {"name": "n", "project_id": project},
        "POST /v1/queues": {"name": "n", "project_id": project},
        "PATCH /v1/queues/{queue_id}": {"closed": True},
        "POST /v1/queues/{queue_id}/items": {"trace_ids": [values["trace_id"]]},
        "POST /v1/queues/{queue_id}/next": {"annotator": "a"},
        "POST /v1/queues/{queue_id}/items/{review_item_id}/review": {
            "annotator": "a",
            "answers": {"label": "correct"},
        },
        "POST /v1/queues/{queue_id}/items/{review_item_id}/skip": {"annotator": "a"},
        "POST /v1/queues/{queue_id}/items/{review_item_id}/flag": {"annotator": "a"},
        "POST /v1/queues/{queue_id}/items/{review_item_id}/adjudicate": {
            "annotator": "a",
            "answers": {"label": "correct"},
        },
    }


# These show only what the caller's own token sees, or what belongs to no project: the server's scorers.
WITHOUT_FOREIGN_OBJECTS = {"GET /v1/projects", "GET /v1/tokens", "GET /v1/scorers"}


def test_cases_22_and_23_a_foreign_project_is_404_everywhere_and_nothing_is_written(client: Client) -> None:
    values = belongings(client)
    stranger_project = f"stranger-{new_id()}"
    client.made("/v1/projects", {"id": stranger_project, "name": "s"})
    stranger = client.again(token=token(client, "admin", stranger_project))
    given = bodies(values)
    before = state(client, values)
    for route in ROUTES:
        if label(route) in WITHOUT_FOREIGN_OBJECTS:
            continue
        reply = call(stranger, route, values, given)
        denied = reply.status == 404 and reply.code == "NOT_FOUND"
        assert denied or is_empty_list(route, reply), f"{label(route)}: {reply.status} {reply.raw[:200]!r}"
    assert state(client, values) == before
    stranger.close()


def is_empty_list(route: Route, reply: Any) -> bool:
    """A list by target shows nothing of another project."""
    return route.path == "/v1/annotations" and reply.status == 200 and reply.body["items"] == []


def call(client: Client, route: Route, values: dict[str, str], given: dict[str, Any]) -> Any:
    path = filled(route.path, values)
    if route.method == "GET":
        query = {"project_id": values["project_id"]}
        if route.path == "/v1/scores":
            query = {"target_id": values["run_id"], "target_type": "run"}
        elif route.path == "/v1/annotations":
            query = {"trace_id": values["trace_id"]}
        return client.get(path, **query)
    if route.method == "DELETE":
        return client.delete(path)
    if label(route) in ("POST /v1/logs", "POST /v1/metrics"):
        reply = client.post_raw(path, b"{}", "application/json", X_Project_Id=values["project_id"])
        assert reply.status == 404
        return reply._replace(raw=b'{"error": {"code": "NOT_FOUND"}}')
    if label(route) == "POST /v1/traces":
        body = (
            b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"'
            + b"a" * 32
            + b'","spanId":"'
            + b"b" * 16
        )
        reply = client.post_raw(
            path, body + b'"}]}]}]}', "application/json", X_Project_Id=values["project_id"]
        )
        assert reply.status == 404
        return reply._replace(raw=b'{"error": {"code": "NOT_FOUND"}}')
    if route.path.endswith("/import"):
        return client.post_raw(path, b'{"input": 1}\n', "application/x-ndjson")
    body = json.dumps(given.get(label(route), {})).encode()
    return client.request(route.method, path, body, {"Content-Type": "application/json"})


def state(client: Client, values: dict[str, str]) -> Any:
    """Everything that a stranger might have changed."""
    project = values["project_id"]
    paths = [
        f"/v1/datasets?project_id={project}",
        f"/v1/datasets/{values['dataset_id']}/items",
        f"/v1/experiments?project_id={project}",
        f"/v1/experiments/{values['experiment_id']}/runs",
        f"/v1/experiments/{values['experiment_id']}/summary",
        f"/v1/traces?project_id={project}",
        f"/v1/scores?target_id={values['run_id']}",
        f"/v1/annotations?trace_id={values['trace_id']}",
        f"/v1/rules?project_id={project}",
        f"/v1/queue?project_id={project}",
    ]
    return [client.get(path).body for path in paths]


def test_case_21_there_is_no_default_credential(client: Client) -> None:
    for guess in ("", "admin", "password", "evenhand", "default", "token", "null", "undefined"):
        nobody = client.again(token=guess)
        assert nobody.get("/v1/projects").code == "UNAUTHORIZED"
        nobody.close()


def test_case_25_another_host_name_is_refused_on_loopback(client: Client) -> None:
    reply = client.request("GET", "/v1/projects", headers={"Host": "evil.example"})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_case_25_there_is_no_CORS(client: Client) -> None:
    reply = client.request("GET", "/v1/projects", headers={"Origin": "https://evil.example"})
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert client.request("OPTIONS", "/v1/projects", headers={"Origin": "https://evil.example"}).status in (
        404,
        405,
    )


def test_case_26_every_answer_carries_the_strict_headers(client: Client) -> None:
    for path in ("/v1/projects", "/v1/no-such", "/healthz", "/docs"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "text", ["' OR '1'='1", '"; DROP TABLE scores; --', "%' OR 1=1", "\\", "x' UNION SELECT 1"]
)
def test_case_29_SQL_in_values_is_only_text(client: Client, text: str) -> None:
    trace_id, _ = client.trace(name=text, metadata={text: text}, model=text)
    for query in ({"name": text}, {"model": text}, {f"metadata.{text}": text}):
        rows = client.get("/v1/traces", project_id=client.project, **query).body["items"]
        assert [row["id"] for row in rows] == [trace_id]
    assert client.get("/v1/traces", project_id=text).body["items"] == []
    assert client.get("/v1/scores", target_id=text).status == 404
    assert client.get(f"/v1/traces/{trace_id}").status == 200
