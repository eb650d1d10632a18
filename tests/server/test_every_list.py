"""What section 1 of the contract says of every list, for every list there is, on both databases."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.service_harness import Client, span

from evenhand.core.ids import new_id
from evenhand.server.http.paging import Paging
from evenhand.server.table import all_routes

Made = tuple[str, dict[str, str], list[str]]
"""The address of a list, what it is asked with, and the keys of three items in the list's order."""


def datasets(client: Client) -> Made:
    made = [client.dataset()[0] for _ in range(3)]
    return "/v1/datasets", {"project_id": client.project}, made[::-1]


def items(client: Client) -> Made:
    dataset, made = client.dataset("abc")
    return f"/v1/datasets/{dataset}/items", {}, made


def experiments(client: Client) -> Made:
    dataset, _ = client.dataset()
    made = [client.experiment(dataset) for _ in range(3)]
    return "/v1/experiments", {"project_id": client.project}, made[::-1]


def runs(client: Client) -> Made:
    dataset, three = client.dataset("abc")
    experiment = client.experiment(dataset)
    made = client.runs(experiment, [{"dataset_item_id": item, "output": 1} for item in three])
    return f"/v1/experiments/{experiment}/runs", {}, made


def scores(client: Client) -> Made:
    run = client.run("x")
    body = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 1}
    made = [client.made("/v1/scores", body)["id"] for _ in range(3)]
    return "/v1/scores", {"target_id": run, "target_type": "run"}, made


def traces(client: Client) -> Made:
    made = [client.trace()[0] for _ in range(3)]
    return "/v1/traces", {"project_id": client.project}, made[::-1]


def sessions(client: Client) -> Made:
    made = [new_id() for _ in range(3)]
    for session_id in made:
        client.trace(session_id=session_id)
    return "/v1/sessions", {"project_id": client.project}, made[::-1]


def queue(client: Client) -> Made:
    made = [client.trace()[0] for _ in range(3)]
    for trace_id in made:
        client.post(f"/v1/traces/{trace_id}/queue")
    return "/v1/queue", {"project_id": client.project}, made


def annotations(client: Client) -> Made:
    trace_id, _ = client.trace()
    body = {"trace_id": trace_id, "annotator": "a", "label": "l"}
    made = [client.made("/v1/annotations", body)["id"] for _ in range(3)]
    return "/v1/annotations", {"trace_id": trace_id}, made


def rules(client: Client) -> Made:
    body = {"project_id": client.project, "scorer_name": "regex", "config": {"pattern": "x"}}
    made = [client.made("/v1/rules", {**body, "name": new_id()})["id"] for _ in range(3)]
    return "/v1/rules", {"project_id": client.project}, made[::-1]


def jobs(client: Client) -> Made:
    rules(client)
    client.spans(span(output="x"))
    made = [job["job_id"] for job in client.get("/v1/jobs", project_id=client.project).body["items"]]
    assert made == sorted(made, reverse=True)
    return "/v1/jobs", {"project_id": client.project}, made


def people(client: Client) -> Made:
    body = {"name": "p", "project_id": client.project}
    made = [client.made("/v1/people", body)["id"] for _ in range(3)]
    return "/v1/people", {"project_id": client.project}, made


def review_queues(client: Client) -> Made:
    made = [
        client.made("/v1/queues", {"name": new_id(), "project_id": client.project})["id"] for _ in range(3)
    ]
    return "/v1/queues", {"project_id": client.project}, made[::-1]


def review_items(client: Client) -> Made:
    queue = client.made("/v1/queues", {"name": new_id(), "project_id": client.project})["id"]
    for _ in range(3):
        client.post(f"/v1/queues/{queue}/items", {"trace_ids": [client.trace()[0]]})
    made = [item["id"] for item in client.get(f"/v1/queues/{queue}/items").body["items"]]
    assert made == sorted(made)
    return f"/v1/queues/{queue}/items", {}, made


def projects(client: Client) -> Made:
    return "/v1/projects", {}, sorted(client.made("/v1/projects", {"name": "p"})["id"] for _ in range(3))


def tokens(client: Client) -> Made:
    body = {"name": "t", "role": "read", "project_id": client.project}
    return "/v1/tokens", {}, sorted(client.made("/v1/tokens", body)["id"] for _ in range(3))


def versions(client: Client) -> Made:
    dataset, _ = client.dataset("ab")
    return f"/v1/datasets/{dataset}/versions", {}, ["3", "2", "1"]


def changes(client: Client) -> Made:
    dataset, [first, *others] = client.dataset("abc")
    assert client.delete(f"/v1/datasets/{dataset}/items/{first}").status == 200
    return f"/v1/datasets/{dataset}/difference", {"from_version": "2"}, [first, *others]


def item_runs(client: Client) -> Made:
    dataset, [item] = client.dataset("a")
    experiment = client.experiment(dataset, auto_complete=False)
    made = client.runs(experiment, [{"dataset_item_id": item, "output": n, "repeat": n} for n in range(3)])
    return f"/v1/datasets/{dataset}/items/{item}/runs", {}, made[::-1]


def backfills(client: Client) -> Made:
    _, _, [rule, *_] = rules(client)
    made = [client.made(f"/v1/rules/{rule}/backfills", {})["id"] for _ in range(3)]
    return f"/v1/rules/{rule}/backfills", {}, made[::-1]


def audit(client: Client) -> Made:
    dataset, three = client.dataset("abc")
    for item in three:
        assert client.delete(f"/v1/datasets/{dataset}/items/{item}").status == 200
    return "/v1/audit", {"project_id": client.project}, three[::-1]


def project_scores(client: Client) -> Made:
    _, _, made = scores(client)
    return "/v1/scores", {"project_id": client.project}, made[::-1]


def search(client: Client) -> Made:
    made = [client.trace(input="needle")[0] for _ in range(3)]
    return "/v1/search", {"project_id": client.project, "q": "needle"}, made[::-1]


LISTS: dict[str, Callable[[Client], Made]] = {
    "/v1/datasets": datasets,
    "/v1/datasets/{dataset_id}/items": items,
    "/v1/experiments": experiments,
    "/v1/experiments/{experiment_id}/runs": runs,
    "/v1/scores": scores,
    "/v1/datasets/{dataset_id}/versions": versions,
    "/v1/datasets/{dataset_id}/difference": changes,
    "/v1/datasets/{dataset_id}/items/{item_id}/runs": item_runs,
    "/v1/rules/{rule_id}/backfills": backfills,
    "/v1/audit": audit,
    "/v1/search": search,
    "/v1/traces": traces,
    "/v1/sessions": sessions,
    "/v1/queue": queue,
    "/v1/annotations": annotations,
    "/v1/rules": rules,
    "/v1/jobs": jobs,
    "/v1/people": people,
    "/v1/queues": review_queues,
    "/v1/queues/{queue_id}/items": review_items,
    "/v1/projects": projects,
    "/v1/tokens": tokens,
}
SHARED = ("/v1/projects", "/v1/tokens")
"""Lists that hold what other tests made too."""
EACH = [
    *(pytest.param(make, id=path) for path, make in LISTS.items()),
    pytest.param(project_scores, id="/v1/scores of a project"),
]


def key_of(item: dict[str, Any]) -> str:
    if "object_id" in item:
        return str(item["object_id"])
    if "change" in item:
        return str(item["item"]["id"])
    if "added_count" in item:
        return str(item["version"])
    found: str = item.get("id") or item.get("job_id") or item["trace_id"]
    return found


def test_every_list_there_is_is_here() -> None:
    paged = {
        route.path
        for route in all_routes()
        if isinstance(route.query, type) and issubclass(route.query, Paging)
    }
    assert set(LISTS) == paged


@pytest.mark.parametrize("make", EACH)
def test_pages_of_one_hold_each_item_once_in_order(client: Client, make: Callable[[Client], Made]) -> None:
    path, asked, made = make(client)
    whole = client.get(path, **asked)
    assert whole.status == 200
    assert set(whole.body) - {"searched_until"} == {"items", "next_cursor", "limit"}
    assert whole.body["limit"] == 50
    # A trace stands in its queue by its own id.
    seen = [key_of(item) for item in client.pages(path, limit=200 if path in SHARED else 1, **asked)]
    assert [key for key in seen if key in made] == made
    assert path in SHARED or seen == made


@pytest.mark.parametrize("make", EACH)
def test_a_limit_outside_1_to_200_and_a_cursor_made_by_hand_are_400(
    client: Client, make: Callable[[Client], Made]
) -> None:
    path, asked, _ = make(client)
    for limit in ("0", "-1", "201", "x", "1.5", "", "99999999999999999999"):
        reply = client.get(path, limit=limit, **asked)
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), limit
    for cursor in ("", "x", "AAAA", "eyJpZCI6MX0", "\x00", "null", "A" * 10_000, "é"):
        reply = client.request("GET", f"{path}?{urlencode({**asked, 'cursor': cursor})}")
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), cursor
    for fine in (1, 200):
        assert client.get(path, limit=fine, **asked).body["limit"] == fine


@pytest.mark.parametrize("make", EACH)
def test_the_cursor_of_another_list_is_400(client: Client, make: Callable[[Client], Made]) -> None:
    path, asked, _ = make(client)
    other, other_asked, _ = (traces if path != "/v1/traces" else datasets)(client)
    cursor = client.get(other, limit=1, **other_asked).body["next_cursor"]
    assert cursor is not None
    reply = client.get(path, cursor=cursor, **asked)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
