"""What section 1 of the contract says of every POST, for every POST there is, on both databases."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client, Reply, span

from evenhand.core.ids import new_id
from evenhand.server.table import all_routes

JSON = "application/json"
LINES = "application/x-ndjson"
JUDGE = {"model": "small", "prompt_template": "{{input}} {{output}}"}


class Asked(NamedTuple):
    """A good request."""

    path: str
    body: Any
    """JSON; text for anything else; None for no body."""
    nulls: tuple[str, ...] = ()
    """The optional fields of the body."""
    content_type: str = JSON


def score(client: Client) -> Asked:
    body = {"target_id": client.run("x"), "target_type": "run", "scorer_name": "s", "value": 1}
    return Asked("/v1/scores", body, ("rationale", "config", "metadata", "source"))


def unscored(client: Client) -> Asked:
    body = {"target_id": client.run("x"), "target_type": "run", "scorer_name": "exact_match"}
    return Asked("/v1/scores", body, ("value", "rationale", "config", "metadata", "source"))


def judged(client: Client) -> Asked:
    body = {"target_id": client.run("x"), "target_type": "run", "scorer_name": "llm_judge", "config": JUDGE}
    return Asked("/v1/scores", body, ("value", "rationale", "metadata", "source"))


def batch(client: Client) -> Asked:
    return Asked("/v1/scores/batch", {"scores": [score(client).body]})


def run(client: Client) -> Asked:
    dataset, [item, _] = client.dataset(["a", "b"])
    one = {"dataset_item_id": item, "output": 1, "trace_id": None, "repeat": None, "scores": None}
    return Asked(f"/v1/experiments/{client.experiment(dataset)}/runs", {"runs": [one]})


def experiment(client: Client) -> Asked:
    body = {"project_id": client.project, "name": new_id(), "dataset_id": client.dataset()[0]}
    return Asked("/v1/experiments", body, ("metadata", "auto_complete"))


def threshold(client: Client) -> Asked:
    body = {"scorer_name": "s", "metric": "mean", "threshold": 0.5, "comparison": "gte"}
    path = f"/v1/experiments/{client.experiment(client.dataset()[0])}/threshold"
    return Asked(path, body, ("comparison",))


def ingest(client: Client) -> Asked:
    empty = dict.fromkeys(
        ("parent_span_id", "input", "output", "end_time", "duration_ms", "tokens_input", "tokens_output",
         "model", "metadata", "error", "scores")
    )  # fmt: skip
    return Asked("/v1/traces/ingest", {"spans": [span(**empty)]}, ("project_id",))


def otlp(client: Client) -> Asked:
    one = {
        "traceId": new_id().replace("-", ""),
        "spanId": "00f067aa0ba902b7",
        "name": "n",
        "startTimeUnixNano": "1",
    }
    return Asked("/v1/traces", {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]})


def langfuse(client: Client) -> Asked:
    return otlp(client)._replace(path="/api/public/otel/v1/traces")


def logs(client: Client) -> Asked:
    one = {
        "traceId": new_id().replace("-", ""),
        "spanId": "00f067aa0ba902b7",
        "eventName": "gen_ai.user.message",
    }
    return Asked("/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [one]}]}]})


def metrics(client: Client) -> Asked:
    return Asked("/v1/metrics", {"resourceMetrics": []})


OTLP = ("/v1/traces", "/v1/logs", "/v1/metrics", "/api/public/otel/v1/traces")


def annotation(client: Client) -> Asked:
    trace_id, _ = client.trace(input="q")
    body = {"trace_id": trace_id, "annotator": "ada", "notes": "n"}
    return Asked("/v1/annotations", body, ("span_id", "label", "correction", "project_id"))


def to_item(client: Client) -> Asked:
    made = client.made("/v1/annotations", annotation(client).body)["id"]
    return Asked(f"/v1/annotations/{made}/to-dataset-item", {"dataset_id": client.dataset()[0]})


def rule(client: Client) -> Asked:
    body = {
        "project_id": client.project,
        "name": new_id(),
        "scorer_name": "regex",
        "config": {"pattern": "x"},
    }
    return Asked("/v1/rules", body, ("filter", "sample_rate"))


def dataset(client: Client) -> Asked:
    return Asked("/v1/datasets", {"project_id": client.project, "name": new_id()}, ("description",))


def from_span(client: Client) -> Asked:
    trace_id, _ = client.trace(input="q", output="a")
    nulls = ("span_id", "use_output", "expected_output", "metadata", "project_id")
    return Asked(f"/v1/datasets/{client.dataset()[0]}/items/from-span", {"trace_id": trace_id}, nulls)


def failed_job(client: Client) -> str:
    """A job that can never succeed: its target is gone."""
    trace_id, span_id = client.trace(output="x")
    config = {"embed": "char_ngrams", "expected_output": "x"}
    body = {
        "target_id": span_id,
        "target_type": "span",
        "scorer_name": "embedding_similarity",
        "config": config,
    }
    made = client.post("/v1/scores", body)
    assert made.status == 202, made.raw
    path = f"/v1/jobs/{made.body['job_id']}"
    if client.delete(f"/v1/traces/{trace_id}?project_id={client.project}").status == 200:
        wait_for(lambda: client.get(path).body["status"] in ("failed", "completed"), 120)
    return path


def retry(client: Client) -> Asked:
    """A job that ended before its target was gone is no failed one: then another is made."""
    while True:
        path = failed_job(client)
        if client.get(path).body["status"] == "failed":
            return Asked(f"{path}/retry", None)


def backfill(client: Client) -> Asked:
    made = client.made("/v1/rules", rule(client).body)["id"]
    return Asked(f"/v1/rules/{made}/backfills", {}, ("after", "before"))


def review_item(client: Client, action: str, body: dict[str, Any], *, reviewed: bool = False) -> Asked:
    asked = {"project_id": client.project, "name": new_id(), "reviewers_per_item": 3}
    queue = client.made("/v1/queues", asked)["id"]
    client.post(f"/v1/queues/{queue}/items", {"trace_ids": [client.trace()[0]]})
    item = client.get(f"/v1/queues/{queue}/items").body["items"][0]["id"]
    if reviewed:
        client.made(f"/v1/queues/{queue}/items/{item}/review", {"annotator": "b", "notes": "n"})
    return Asked(f"/v1/queues/{queue}/items/{item}/{action}", {"annotator": "a", **body})


def review_queue(client: Client, action: str, body: dict[str, Any]) -> Asked:
    queue = client.made("/v1/queues", {"project_id": client.project, "name": new_id()})["id"]
    return Asked(f"/v1/queues/{queue}/{action}", body)


POSTS: dict[str, list[Callable[[Client], Asked]]] = {
    "/v1/projects": [lambda _: Asked("/v1/projects", {"name": "p"}, ("id",))],
    "/v1/tokens": [lambda _: Asked("/v1/tokens", {"name": "t", "role": "admin"}, ("project_id",))],
    "/v1/people": [lambda client: Asked("/v1/people", {"name": new_id(), "project_id": client.project})],
    "/v1/people/{person_id}/login-link": [
        lambda client: Asked(
            f"/v1/people/{client.made('/v1/people', {'name': 'p', 'project_id': client.project})['id']}/login-link",
            None,
        )
    ],
    "/v1/queues": [
        lambda client: Asked(
            "/v1/queues",
            {"project_id": client.project, "name": new_id()},
            ("description", "form", "judge_scorer"),
        )
    ],
    "/v1/queues/{queue_id}/items": [
        lambda client: review_queue(client, "items", {"trace_ids": [client.trace()[0]]})
    ],
    "/v1/queues/{queue_id}/next": [lambda client: review_queue(client, "next", {"annotator": "a"})],
    "/v1/queues/{queue_id}/items/{review_item_id}/review": [
        lambda client: review_item(client, "review", {"answers": {"label": "correct"}, "notes": None})
    ],
    "/v1/queues/{queue_id}/items/{review_item_id}/skip": [lambda client: review_item(client, "skip", {})],
    "/v1/queues/{queue_id}/items/{review_item_id}/flag": [lambda client: review_item(client, "flag", {})],
    "/v1/queues/{queue_id}/items/{review_item_id}/adjudicate": [
        lambda client: review_item(client, "adjudicate", {"notes": "settled"}, reviewed=True)
    ],
    "/v1/datasets": [dataset],
    "/v1/datasets/{dataset_id}/items": [
        lambda client: Asked(
            f"/v1/datasets/{client.dataset()[0]}/items", {"input": ""}, ("expected_output", "metadata")
        )
    ],
    "/v1/datasets/{dataset_id}/items/import": [
        lambda client: Asked(
            f"/v1/datasets/{client.dataset()[0]}/items/import",
            '{"input": 1, "expected_output": null, "metadata": null, "unknown": 1}\n',
            content_type=LINES,
        )
    ],
    "/v1/experiments": [experiment],
    "/v1/experiments/{experiment_id}/runs": [run],
    "/v1/experiments/{experiment_id}/complete": [
        lambda client: Asked(f"/v1/experiments/{client.experiment(client.dataset()[0])}/complete", None)
    ],
    "/v1/experiments/{experiment_id}/threshold": [threshold],
    "/v1/scores": [score, unscored, judged],
    "/v1/scores/batch": [batch],
    "/v1/datasets/{dataset_id}/items/from-span": [from_span],
    "/v1/jobs/{job_id}/retry": [retry],
    "/v1/jobs/retry": [
        lambda client: Asked("/v1/jobs/retry", {"project_id": client.project}, ("scorer_name", "rule_id"))
    ],
    "/v1/rules/{rule_id}/backfills": [backfill],
    "/v1/rules": [rule],
    "/v1/traces/ingest": [ingest],
    "/v1/traces": [otlp],
    "/v1/logs": [logs],
    "/v1/metrics": [metrics],
    "/api/public/otel/v1/traces": [langfuse],
    "/v1/traces/{trace_id}/queue": [lambda client: Asked(f"/v1/traces/{client.trace()[0]}/queue", None)],
    "/v1/annotations": [annotation],
    "/v1/annotations/{annotation_id}/to-dataset-item": [to_item],
}
EACH = [
    pytest.param(make, id=f"{path} {n}") for path, makers in POSTS.items() for n, make in enumerate(makers)
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", marks=pytest.mark.xdist_group("sqlite")),
        pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql")),
    ],
)
def judging_service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceUnderTest]:
    """A server that knows a judge model; nobody answers at its address."""
    folder: Path = tmp_path_factory.mktemp("posts")
    models = '[models.small]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "x"\nallow_private = true\n'
    with ExitStack() as stack:
        url = f"sqlite:///{folder / 'e.db'}"
        if request.param == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = stack.enter_context(server.database())
        yield stack.enter_context(running_service(url, models=models))


@pytest.fixture
def client(judging_service: ServiceUnderTest) -> Iterator[Client]:
    one = Client(judging_service.url, ADMIN, f"project-{new_id()}")
    one.made("/v1/projects", {"id": one.project, "name": "test"})
    yield one
    one.close()


def send(client: Client, asked: Asked, **headers: str) -> Reply:
    body = asked.body
    if body is None:
        return client.request("POST", asked.path, b"", headers)
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return client.request("POST", asked.path, data, {"Content-Type": asked.content_type, **headers})


def test_every_POST_there_is_is_here() -> None:
    paths = {route.path for route in all_routes() if route.method == "POST"}
    assert set(POSTS) == {path for path in paths if path.startswith(("/v1/", "/api/"))}


@pytest.mark.parametrize("make", EACH)
def test_unknown_fields_are_ignored_and_optional_ones_may_be_null(
    client: Client, make: Callable[[Client], Asked]
) -> None:
    asked = make(client)
    if isinstance(asked.body, dict):
        more = dict.fromkeys(asked.nulls) | {"no_such_field": {"deep": [1]}}
        asked = asked._replace(body={**asked.body, **more})
    reply = send(client, asked)
    assert reply.status in (200, 201, 202), reply.raw


@pytest.mark.parametrize("make", EACH)
def test_the_same_key_repeats_the_first_answer_and_another_body_is_CONFLICT(
    client: Client, make: Callable[[Client], Asked]
) -> None:
    asked, key = make(client), new_id()
    first = send(client, asked, **{"Idempotency-Key": key})
    again = send(client, asked, **{"Idempotency-Key": key})
    assert first.status in (200, 201, 202), first.raw
    assert again.status == first.status
    if asked.path == "/v1/tokens":
        # The one secret that is not kept.
        assert again.body == {**first.body, "token": ""}
    elif "/people" in asked.path:
        assert again.body == {**first.body, "login_path": ""}
    else:
        assert again.raw == first.raw
    if asked.path not in OTLP:  # OTLP's answers are the same for a span that is sent again
        assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    changed = make(client)
    assert changed != asked or isinstance(asked.body, dict)
    if changed == asked:
        changed = asked._replace(body={**asked.body, "name": "another"})
    refused = send(client, changed, **{"Idempotency-Key": key})
    if asked.path in OTLP:
        assert (refused.status, refused.body["code"]) == (409, 6)
    else:
        assert (refused.status, refused.code) == (409, "CONFLICT")


def rule_of_span(client: Client) -> tuple[Asked, str]:
    trace_id, span_id = client.trace(output="Paris")
    body = {"target_id": span_id, "target_type": "span", "scorer_name": "regex", "config": {"pattern": "P"}}
    return Asked("/v1/scores", body), f"/v1/traces/{trace_id}?project_id={client.project}"


def annotated(client: Client) -> tuple[Asked, str]:
    trace_id, _ = client.trace(input="q")
    body = {"trace_id": trace_id, "annotator": "ada", "notes": "n"}
    return Asked("/v1/annotations", body), f"/v1/traces/{trace_id}?project_id={client.project}"


def imported(client: Client) -> tuple[Asked, str]:
    dataset_id = client.dataset()[0]
    lines = Asked(f"/v1/datasets/{dataset_id}/items/import", '{"input": 1}\n', content_type=LINES)
    return lines, f"/v1/datasets/{dataset_id}"


@pytest.mark.parametrize("make", [rule_of_span, annotated, imported])
def test_the_first_answer_is_repeated_when_its_target_is_gone(
    client: Client, make: Callable[[Client], tuple[Asked, str]]
) -> None:
    (asked, target), key = make(client), new_id()
    first = send(client, asked, **{"Idempotency-Key": key})
    assert first.status in (200, 201), first.raw
    assert client.delete(target).status == 200
    again = send(client, asked, **{"Idempotency-Key": key})
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["idempotent-replayed"] == "true"
    assert send(client, asked).status == 404
