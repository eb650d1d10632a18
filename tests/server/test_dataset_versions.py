"""Versions of datasets, what differs between them, items of spans, and the history of an item. On both databases."""

from typing import Any

from tests.service_harness import Client, span

from evenhand.core.ids import new_id


def items(client: Client, dataset: str, **query: Any) -> list[Any]:
    return [item["input"] for item in client.get(f"/v1/datasets/{dataset}/items", **query).body["items"]]


def difference(client: Client, dataset: str, start: int, end: int) -> list[tuple[str, Any]]:
    path = f"/v1/datasets/{dataset}/difference"
    return [
        (change["change"], change["item"]["input"])
        for change in client.pages(path, from_version=start, to_version=end, limit=1)
    ]


def test_every_version_keeps_its_items(client: Client) -> None:
    dataset, [a, b, _] = client.dataset("abc")
    assert client.delete(f"/v1/datasets/{dataset}/items/{a}").body == {"deleted": True, "id": a}
    client.made(f"/v1/datasets/{dataset}/items", {"input": "d"})
    assert client.delete(f"/v1/datasets/{dataset}/items/{b}").status == 200
    by_version = {1: "", 2: "a", 3: "ab", 4: "abc", 5: "bc", 6: "bcd", 7: "cd"}
    for version, inputs in by_version.items():
        assert items(client, dataset, version=version) == list(inputs)
    assert items(client, dataset) == ["c", "d"]
    kept = client.get(f"/v1/datasets/{dataset}").body
    assert (kept["version"], kept["item_count"]) == (7, 2)
    listed = client.get(f"/v1/datasets/{dataset}/versions").body["items"]
    assert [
        (one["version"], one["added_count"], one["removed_count"], one["item_count"]) for one in listed
    ] == [(7, 0, 1, 2), (6, 1, 0, 3), (5, 0, 1, 2), (4, 1, 0, 3), (3, 1, 0, 2), (2, 1, 0, 1), (1, 0, 0, 0)]
    assert difference(client, dataset, 4, 7) == [("removed", "a"), ("removed", "b"), ("added", "d")]
    assert difference(client, dataset, 7, 4) == [("removed", "d"), ("added", "a"), ("added", "b")]
    assert difference(client, dataset, 5, 5) == []
    # What came and went in between is in neither.
    assert difference(client, dataset, 1, 7) == [("added", "c"), ("added", "d")]
    gone = client.get(f"/v1/datasets/{dataset}/items/{a}").body
    assert (gone["input"], gone["version"], gone["removed_in"]) == ("a", 2, 5)


def test_what_is_not_there_is_404(client: Client) -> None:
    dataset, [a] = client.dataset("a")
    other, [foreign] = client.dataset("x")
    client.delete(f"/v1/datasets/{dataset}/items/{a}")
    for path in (f"items/{a}", f"items/{foreign}", "items/no-such"):
        reply = client.delete(f"/v1/datasets/{dataset}/{path}")
        assert (reply.status, reply.code) == (404, "NOT_FOUND"), path
    for path in (
        f"/v1/datasets/{dataset}/items?version=4",
        f"/v1/datasets/{dataset}/items?version=0",
        f"/v1/datasets/{dataset}/difference?from_version=1&to_version=9",
        f"/v1/datasets/{dataset}/items/{foreign}/runs",
    ):
        assert client.request("GET", path).status == 404, path
    assert client.get(f"/v1/datasets/{other}/difference", from_version=0).status == 400


def test_an_import_is_one_version(client: Client) -> None:
    dataset, _ = client.dataset()
    lines = b'{"input": 1}\n{"input": 2}\n{"oops": 1}\n'
    client.post_raw(f"/v1/datasets/{dataset}/items/import", lines, "application/x-ndjson")
    [newest, _] = client.get(f"/v1/datasets/{dataset}/versions").body["items"]
    assert (newest["version"], newest["added_count"], newest["item_count"]) == (2, 2, 2)


def test_experiments_keep_the_items_of_their_version(client: Client) -> None:
    dataset, [a, b] = client.dataset("ab")
    old = client.experiment(dataset)
    client.delete(f"/v1/datasets/{dataset}/items/{a}")
    new = client.experiment(dataset)
    assert client.get(f"/v1/experiments/{old}/summary").body["dataset_item_count"] == 2
    assert client.get(f"/v1/experiments/{new}/summary").body["dataset_item_count"] == 1
    refused = client.post(f"/v1/experiments/{new}/runs", {"runs": [{"dataset_item_id": a, "output": 1}]})
    assert (refused.status, refused.code) == (422, "INVALID_DATASET_ITEM")
    client.runs(new, [{"dataset_item_id": b, "output": 1}])
    assert client.get(f"/v1/experiments/{new}").body["status"] == "completed"
    client.runs(old, [{"dataset_item_id": b, "output": 1}])
    assert client.get(f"/v1/experiments/{old}").body["status"] == "running"
    client.runs(old, [{"dataset_item_id": a, "output": 1}])
    assert client.get(f"/v1/experiments/{old}").body["status"] == "completed"


def test_an_item_that_came_and_went_completes_nothing(client: Client) -> None:
    dataset, [a, b] = client.dataset("ab")
    experiment = client.experiment(dataset)
    late = client.made(f"/v1/datasets/{dataset}/items", {"input": "late"})["id"]
    client.runs(experiment, [{"dataset_item_id": late, "output": 1}])
    client.delete(f"/v1/datasets/{dataset}/items/{late}")
    client.runs(experiment, [{"dataset_item_id": a, "output": 1}])
    assert client.get(f"/v1/experiments/{experiment}").body["status"] == "running"
    client.runs(experiment, [{"dataset_item_id": b, "output": 1}])
    assert client.get(f"/v1/experiments/{experiment}").body["status"] == "completed"


def test_a_comparison_asks_for_the_items_of_the_older_version(client: Client) -> None:
    dataset, [a, b] = client.dataset("ab")
    sides = [client.experiment(dataset, auto_complete=False) for _ in range(2)]
    client.delete(f"/v1/datasets/{dataset}/items/{a}")
    for experiment in sides:
        scores = [{"scorer_name": "s", "value": 1}]
        client.runs(experiment, [{"dataset_item_id": item, "output": 1, "scores": scores} for item in (a, b)])
    got = client.get(f"/v1/experiments/{sides[0]}/compare/{sides[1]}").body
    [scorer] = got["scorer_comparisons"]
    assert (scorer["unchanged_count"], len(got["per_item_results"])) == (2, 2)


def test_an_item_of_a_span_knows_its_source(client: Client) -> None:
    dataset, _ = client.dataset()
    trace_id = new_id()
    root = span(trace_id=trace_id, input={"q": 1}, output="root's")
    child = span(trace_id=trace_id, parent_span_id=root["id"], input="child's", output=[1])
    client.spans(root, child)
    path = f"/v1/datasets/{dataset}/items/from-span"
    made = client.made(path, {"trace_id": trace_id})
    assert (made["input"], made["expected_output"]) == ({"q": 1}, None)
    assert made["metadata"] == {"source_trace_id": trace_id, "source_span_id": root["id"]}
    body = {
        "trace_id": trace_id,
        "span_id": child["id"],
        "use_output": True,
        "metadata": {"k": 10**30, "source_span_id": "a lie"},
    }
    made = client.made(path, body)
    assert (made["input"], made["expected_output"]) == ("child's", [1])
    source = {"k": 10**30, "source_trace_id": trace_id, "source_span_id": child["id"]}
    assert made["metadata"] == source
    assert client.made(path, {**body, "expected_output": "mine"})["expected_output"] == "mine"
    assert client.get(f"/v1/datasets/{dataset}").body["version"] == 4


def test_a_span_without_input_or_root_makes_no_item(client: Client) -> None:
    dataset, _ = client.dataset()
    path = f"/v1/datasets/{dataset}/items/from-span"
    trace_id, _ = client.trace()
    assert client.post(path, {"trace_id": trace_id}).code == "INVALID_REQUEST"
    assert client.post(path, {"trace_id": trace_id, "span_id": "no-such"}).code == "NOT_FOUND"
    headless = span(parent_span_id="later", input="q")
    client.spans(headless)
    assert client.post(path, {"trace_id": headless["trace_id"]}).code == "NO_ROOT_SPAN"
    assert client.get(f"/v1/datasets/{dataset}").body["item_count"] == 0


def test_the_history_of_an_item_goes_over_all_experiments(client: Client) -> None:
    dataset, [a, b] = client.dataset("ab")
    made = []
    for value in (0.0, 1.0):
        experiment = client.experiment(dataset, auto_complete=False)
        scores = [{"scorer_name": "s", "value": value}]
        runs = [{"dataset_item_id": item, "output": value, "scores": scores} for item in (a, b)]
        made.append((experiment, client.runs(experiment, runs)[0], value))
    client.delete(f"/v1/datasets/{dataset}/items/{a}")
    history = client.get(f"/v1/datasets/{dataset}/items/{a}/runs").body["items"]
    assert [(run["experiment_id"], run["id"], run["scores"][0]["value"]) for run in history] == made[::-1]
    assert {run["dataset_version"] for run in history} == {3}
