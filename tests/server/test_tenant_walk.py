"""A token of one project never reaches another project's objects, by whichever parameter they are named.

The route table is walked. For each endpoint, every reference to an object (in the path, in the query or in the body)
is replaced by a foreign one while all the others stay the caller's own: a check that is missing for one kind of
target cannot hide behind the check of another one.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.server.test_security_walk import belongings, label, token
from tests.service_harness import Client, Reply, span

from evenhand.core.ids import new_id
from evenhand.server.http.routes import Route
from evenhand.server.table import all_routes

Values = Mapping[str, str]
PATH_PARAMETER = re.compile(r"\{(\w+)\}")


def run_score(values: Values) -> dict[str, Any]:
    return {"target_id": values["run_id"], "target_type": "run", "scorer_name": "s", "value": 1}


def span_score(values: Values) -> dict[str, Any]:
    return {"target_id": values["span_id"], "target_type": "span", "scorer_name": "s", "value": 1}


def computed(score: dict[str, Any]) -> dict[str, Any]:
    """The same score, computed by the service: the output of the target would be read."""
    config = {"pattern": "."}
    return {name: value for name, value in score.items() if name != "value"} | {
        "scorer_name": "regex",
        "config": config,
    }


def by_job(score: dict[str, Any]) -> dict[str, Any]:
    """The same score, computed by a job: it would read the output later."""
    config = {"embed": "char_ngrams", "expected_output": "x"}
    return {**computed(score), "scorer_name": "embedding_similarity", "config": config}


BODIES: dict[str, list[Callable[[Values], Any]]] = {
    "POST /v1/datasets": [lambda v: {"project_id": v["project_id"], "name": new_id()}],
    "POST /v1/datasets/{dataset_id}/items": [lambda v: {"input": 1}],
    "POST /v1/experiments": [
        lambda v: {"project_id": v["project_id"], "name": new_id(), "dataset_id": v["dataset_id"]}
    ],
    "POST /v1/experiments/{experiment_id}/runs": [
        lambda v: {"runs": [{"dataset_item_id": v["item_id"], "output": 1, "repeat": 7}]},
        lambda v: {
            "runs": [
                {
                    "dataset_item_id": v["item_id"],
                    "output": 1,
                    "repeat": 7,
                    "scores": [{"scorer_name": "exact_match"}],
                }
            ]
        },
    ],
    "POST /v1/experiments/{experiment_id}/threshold": [
        lambda v: {"scorer_name": "s", "metric": "mean", "threshold": 0.5, "comparison": "gte"}
    ],
    "POST /v1/scores": [
        run_score,
        span_score,
        lambda v: {**run_score(v), "project_id": v["project_id"]},
        lambda v: {**span_score(v), "trace_id": v["trace_id"], "project_id": v["project_id"]},
        lambda v: computed(run_score(v)),
        lambda v: computed(span_score(v)),
        lambda v: by_job(run_score(v)),
        lambda v: by_job(span_score(v)),
    ],
    "POST /v1/scores/batch": [
        lambda v: {"scores": [run_score(v)]},
        lambda v: {"scores": [span_score(v)]},
        lambda v: {"scores": [computed(span_score(v))]},
        lambda v: {"scores": [by_job(run_score(v)), by_job(span_score(v))]},
    ],
    "POST /v1/traces/ingest": [lambda v: {"spans": [span()], "project_id": v["project_id"]}],
    "POST /v1/annotations": [
        lambda v: {"trace_id": v["trace_id"], "annotator": "a", "label": "x"},
        lambda v: {"trace_id": v["trace_id"], "span_id": v["span_id"], "annotator": "a", "label": "x"},
    ],
    "POST /v1/annotations/{annotation_id}/to-dataset-item": [lambda v: {"dataset_id": v["dataset_id"]}],
    "POST /v1/rules": [
        lambda v: {
            "project_id": v["project_id"],
            "name": new_id(),
            "scorer_name": "regex",
            "config": {"pattern": "a"},
        }
    ],
    "PATCH /v1/projects/{project_id}": [lambda v: {"name": "n", "retain_days": 1}],
    "POST /v1/rules/{rule_id}/backfills": [lambda v: {}],
    "PATCH /v1/rules/{rule_id}": [lambda v: {"paused": True, "sample_rate": 0.5}],
    "POST /v1/jobs/retry": [
        lambda v: {"project_id": v["project_id"]},
        lambda v: {"project_id": v["project_id"], "rule_id": v["rule_id"]},
    ],
    "POST /v1/datasets/{dataset_id}/items/from-span": [
        lambda v: {"trace_id": v["trace_id"]},
        lambda v: {"trace_id": v["trace_id"], "span_id": v["span_id"], "project_id": v["project_id"]},
    ],
    "POST /v1/people": [lambda v: {"name": new_id(), "project_id": v["project_id"]}],
    "POST /v1/queues": [lambda v: {"project_id": v["project_id"], "name": new_id()}],
    "PATCH /v1/queues/{queue_id}": [lambda v: {"closed": False}],
    "POST /v1/queues/{queue_id}/items": [
        lambda v: {"trace_ids": [v["trace_id"]]},
        lambda v: {"run_ids": [v["run_id"]]},
        lambda v: {"pairs": [{"a": v["run_id"], "b": v["run_id"]}]},
        lambda v: {"experiment_id": v["experiment_id"]},
    ],
    "POST /v1/queues/{queue_id}/next": [lambda v: {"annotator": "a"}],
    "POST /v1/queues/{queue_id}/items/{review_item_id}/review": [
        lambda v: {"annotator": new_id(), "answers": {"label": "correct"}}
    ],
    "POST /v1/queues/{queue_id}/items/{review_item_id}/skip": [lambda v: {"annotator": "a"}],
    "POST /v1/queues/{queue_id}/items/{review_item_id}/flag": [lambda v: {"annotator": "a"}],
    "POST /v1/queues/{queue_id}/items/{review_item_id}/adjudicate": [
        lambda v: {"annotator": "a", "answers": {"label": "correct"}}
    ],
    "POST /v1/tokens": [lambda v: {"name": "n", "role": "read", "project_id": v["project_id"]}],
}
QUERIES: dict[str, list[Callable[[Values], dict[str, str]]]] = {
    "GET /v1/search": [lambda v: {"project_id": v["project_id"], "q": "answer"}],
    "GET /v1/scores": [
        lambda v: {"target_id": v["run_id"], "target_type": "run"},
        lambda v: {"target_id": v["span_id"], "target_type": "span"},
        lambda v: {"target_id": v["span_id"]},
        lambda v: {
            "target_id": v["span_id"],
            "target_type": "span",
            "trace_id": v["trace_id"],
            "project_id": v["project_id"],
        },
        lambda v: {"project_id": v["project_id"]},
        lambda v: {"project_id": v["project_id"], "scorer_name": "s", "min_value": "0"},
    ],
    "GET /v1/annotations": [
        lambda v: {"trace_id": v["trace_id"]},
        lambda v: {"trace_id": v["trace_id"], "span_id": v["span_id"]},
    ],
}
# What a call for a foreign object may answer beside 404: the contract's own refusals, which say no more.
ALLOWED = {
    ("POST /v1/experiments/{experiment_id}/runs", "item_id"): "INVALID_DATASET_ITEM",
    ("POST /v1/annotations", "span_id"): "INVALID_ANNOTATION_SCOPE",
}
# Not about an object of a project: they show what the caller's own token sees, or what the server can do.
WITHOUT_REFERENCES = {
    "GET /v1/projects",
    "GET /v1/scorers",
    "GET /v1/tokens",
    "POST /v1/projects",
    "POST /v1/logs",
    "POST /v1/metrics",
    "POST /v1/traces",
}


class Watched(dict[str, str]):
    """Values that remember which of them were used."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.used.add(key)
        return super().__getitem__(key)


def send(client: Client, route: Route, form: Callable[[Values], Any], values: Values) -> Reply:
    path = PATH_PARAMETER.sub(lambda match: values[match.group(1)], route.path)
    if route.method == "GET":
        return client.get(path, **form(values))
    if route.method == "DELETE":
        return client.request("DELETE", f"{path}?{urlencode(form(values))}")
    if route.path.endswith("/import"):
        return client.post_raw(path, b'{"input": 1}\n', "application/x-ndjson")
    body = json.dumps(form(values)).encode()
    return client.request(route.method, path, body, {"Content-Type": "application/json"})


def forms(route: Route) -> list[Callable[[Values], Any]]:
    if route.method in ("GET", "DELETE"):
        takes_project = "project_id" in getattr(route.query, "__struct_fields__", ())
        plain: Callable[[Values], Any] = (
            (lambda v: {"project_id": v["project_id"]}) if takes_project else (lambda v: {})
        )
        return QUERIES.get(label(route), [plain])
    return BODIES.get(label(route), [lambda v: {}])


CASES = [
    pytest.param(route, number, id=f"{label(route)} {number}" if number else label(route))
    for route in all_routes()
    if route.path.startswith("/v1/") and label(route) not in WITHOUT_REFERENCES
    for number in range(len(forms(route)))
]


def everything(client: Client, values: Values) -> Any:
    """What a stranger could have changed."""
    project = values["project_id"]
    return [
        client.get(path).body
        for path in (
            f"/v1/datasets?project_id={project}",
            f"/v1/datasets/{values['dataset_id']}/items",
            f"/v1/experiments?project_id={project}",
            f"/v1/experiments/{values['experiment_id']}/runs",
            f"/v1/experiments/{values['experiment_id']}/summary",
            f"/v1/traces?project_id={project}",
            f"/v1/traces/{values['trace_id']}",
            f"/v1/scores?target_id={values['run_id']}",
            f"/v1/scores?target_id={values['span_id']}&target_type=span",
            f"/v1/annotations?trace_id={values['trace_id']}",
            f"/v1/rules?project_id={project}",
            f"/v1/queue?project_id={project}",
            f"/v1/tokens?project_id={project}",
            f"/v1/scores?project_id={project}",
            f"/v1/datasets/{values['dataset_id']}/versions",
            f"/v1/people?project_id={project}",
            f"/v1/queues?project_id={project}",
            f"/v1/queues/{values['queue_id']}",
            f"/v1/queues/{values['queue_id']}/items",
        )
    ]


@pytest.mark.parametrize(("route", "number"), CASES)
def test_a_foreign_reference_is_refused_in_every_place(client: Client, route: Route, number: int) -> None:
    foreign = belongings(client)
    own_project = f"own-{new_id()}"
    client.made("/v1/projects", {"id": own_project, "name": "own"})
    stranger = client.again(token=token(client, "admin", own_project), project=own_project)
    own = belongings(stranger)
    form = forms(route)[number]
    used = Watched(own)
    PATH_PARAMETER.sub(lambda match: used[match.group(1)], route.path)
    form(used)
    assert used.used, f"{label(route)} names no object: say what a foreign one would be"
    before = everything(client, foreign)
    for key in sorted(used.used):
        mixed = {**own, key: foreign[key]}
        reply = send(stranger, route, form, mixed)
        empty = reply.status == 200 and reply.body.get("items") == []
        hidden = reply.status == 404 and reply.code == "NOT_FOUND"
        # Another project's rule has no failed job in one's own.
        empty = empty or (reply.status == 200 and reply.body.get("retried_count") == 0)
        allowed = reply.status in (404, 422) and reply.code == ALLOWED.get((label(route), key))
        assert hidden or allowed or empty, (
            f"{label(route)} with a foreign {key}: {reply.status} {reply.raw[:300]!r}"
        )
    stranger.close()
    assert everything(client, foreign) == before


def test_every_body_is_part_of_the_walk() -> None:
    """A new endpoint with a body fails here until BODIES says what its references are."""
    wanted = {
        label(route) for route in all_routes() if route.path.startswith("/v1/") and route.request is not None
    }
    assert wanted - WITHOUT_REFERENCES - {"POST /v1/projects"} <= set(BODIES)
    assert set(BODIES) | set(QUERIES) <= {label(route) for route in all_routes()}


@pytest.mark.parametrize(
    "path", [route.path for route in all_routes() if route.method == "POST" and route.body_limit == "otlp"]
)
def test_spans_and_logs_of_exporters_do_not_reach_a_foreign_project(client: Client, path: str) -> None:
    own = f"own-{new_id()}"
    client.made("/v1/projects", {"id": own, "name": "own"})
    stranger = client.again(token=token(client, "write", own), project=own)
    trace = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}
    one = {**trace, "name": "n", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    record = {**trace, "eventName": "gen_ai.user.message", "body": {"stringValue": "q"}}
    body = {
        "resourceSpans": [{"scopeSpans": [{"spans": [one]}]}],
        "resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}],
    }
    foreign = stranger.post(path, body, X_Project_Id=client.project)
    at_home = stranger.post(path, body, X_Project_Id=own)
    stranger.close()
    assert (foreign.status, at_home.status) == (404, 200), (foreign.raw, at_home.raw)
    assert client.get("/v1/traces", project_id=client.project).body["items"] == []


def test_the_walk_meets_every_kind_of_object(client: Client) -> None:
    """Each kind of object is a foreign reference somewhere, or the walk above would prove nothing about it."""
    values = belongings(client)
    met: set[str] = set()
    for case in CASES:
        route, number = case.values
        assert isinstance(route, Route)
        assert isinstance(number, int)
        used = Watched(values)
        PATH_PARAMETER.sub(lambda match, used=used: used[match.group(1)], route.path)  # type: ignore[misc]
        forms(route)[number](used)
        met |= used.used
    assert met == set(values)
