"""Every field of every request, with values that nobody expects there: never a 5xx, and whatever got in can be read."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.service_harness import Client

from evenhand.core.ids import new_id

VALUES: list[Any] = [
    2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 1e308, -1e308, 5e-324, 0, -1, True, None, [], {}, [[]], {"": 1},
    "", " ", "a\x00b", "x" * 251, "x" * 100_001, "\U0001d4b3" * 250, "\u202e<b>", "a/b?c#d", "..", "1e5", "NaN",
    "2026-02-30T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places(inner, (*path, key))


def with_value(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(body)
    changed[path[0]] = with_value(body[path[0]], path[1:], value)
    return changed


def requests(client: Client) -> tuple[list[tuple[str, Any]], list[str]]:
    """A right body for every endpoint that takes one, and addresses where what they made is read."""
    project = client.project
    dataset, [item] = client.dataset([{"input": "a", "expected_output": "b"}])
    experiment = client.experiment(dataset, auto_complete=False)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "b"}])
    trace, root = client.trace(input="i", output="o")
    annotation = client.made("/v1/annotations", {"trace_id": trace, "annotator": "a", "label": "l"})["id"]
    inline = {
        "scorer_name": "s",
        "value": 1,
        "rationale": "r",
        "config": {"a": 1},
        "metadata": {},
        "source": "human",
    }
    target = {"target_id": run, "target_type": "run"}
    span = {
        "id": "s", "trace_id": "FRESH", "name": "n", "start_time": "2026-01-01T00:00:00Z", "parent_span_id": "q",
        "end_time": "2026-01-01T00:00:01Z", "duration_ms": 5, "input": 1, "output": 2, "tokens_input": 1,
        "tokens_output": 2, "model": "m", "metadata": {"k": "v"}, "scores": [inline],
        "error": {"message": "m", "type": "t", "stack": "s"},
    }  # fmt: skip
    narrow = {"name": "zz", "model": "m", "has_error": True, "is_root": True, "min_duration_ms": 1}
    exact = {"case_sensitive": True, "strip_whitespace": True, "expected_output": "x"}
    bodies: list[tuple[str, Any]] = [
        ("/v1/projects", {"id": "FRESH", "name": "n"}),
        ("/v1/datasets", {"project_id": project, "name": "FRESH", "description": "d"}),
        (f"/v1/datasets/{dataset}/items", {"input": {"a": 1}, "expected_output": 1, "metadata": {"k": 1}}),
        ("/v1/experiments", {"project_id": project, "name": "n", "dataset_id": dataset, "metadata": {"k": 1}}),
        (
            f"/v1/experiments/{experiment}/runs",
            {"runs": [{"dataset_item_id": item, "output": 1, "trace_id": "t", "repeat": 1, "scores": [inline]}]},
        ),
        (
            f"/v1/experiments/{experiment}/threshold",
            {"scorer_name": "s", "metric": "mean", "threshold": 0.5, "comparison": "gte"},
        ),
        ("/v1/scores", {**target, **inline}),
        ("/v1/scores", {**target, "scorer_name": "exact_match", "config": exact}),
        ("/v1/scores", {**target, "scorer_name": "regex", "config": {"pattern": "x", "flags": "i"}}),
        ("/v1/scores/batch", {"scores": [{**target, **inline}]}),
        ("/v1/traces/ingest", {"spans": [span], "project_id": project}),
        ("/v1/annotations", {"trace_id": trace, "span_id": root, "annotator": "a", "label": "l", "notes": "n"}),
        (f"/v1/annotations/{annotation}/to-dataset-item", {"dataset_id": dataset}),
        (
            "/v1/rules",
            {
                "project_id": project, "name": "FRESH", "filter": {**narrow, "metadata": {"k": "v"}},
                "sample_rate": 0.5, "scorer_name": "regex", "config": {"pattern": "x"},
            },
        ),
        ("/v1/tokens", {"name": "n", "role": "write", "project_id": project}),
    ]  # fmt: skip
    lists = ("datasets", "experiments", "traces", "queue", "rules", "jobs")
    reads = [f"/v1/{name}?project_id={project}&limit=200" for name in lists]
    reads += [
        "/v1/projects", "/v1/tokens", f"/v1/projects/{project}/summary", f"/v1/datasets/{dataset}/items?limit=200",
        f"/v1/experiments/{experiment}/runs", f"/v1/experiments/{experiment}/summary", f"/v1/traces/{trace}",
        f"/v1/experiments/{experiment}/compare/{experiment}", f"/v1/annotations?trace_id={trace}",
        f"/v1/scores?target_id={run}&limit=200",
    ]  # fmt: skip
    return bodies, reads


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_value_in_any_field_is_a_failure(client: Client) -> None:
    bodies, reads = requests(client)
    for path, body in bodies:
        for place in places(body):
            for value in VALUES:
                text = json.dumps(with_value(body, place, value)).replace('"FRESH"', f'"{new_id()}"')
                reply = client.post_raw(path, text.encode())
                assert reply.status < 500, (path, place, value, reply.raw)
                if reply.status >= 400:
                    assert set(reply.body["error"]) == {"code", "message", "details"}, reply.raw
    for path in reads:
        assert client.request("GET", path).status == 200, path
