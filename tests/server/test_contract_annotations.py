"""Section 7 of the contract: annotations and the review queue. One test per line, on both databases."""

from typing import Any

import pytest
from tests.service_harness import Client, span


def annotate(client: Client, trace_id: str, **more: Any) -> Any:
    return client.post("/v1/annotations", {"trace_id": trace_id, "annotator": "ada", **more})


def test_an_annotation_is_made_and_read(client: Client) -> None:
    trace_id, span_id = client.trace()
    reply = annotate(
        client, trace_id, span_id=span_id, label="hallucination", correction={"a": [1]}, notes="n"
    )
    assert reply.status == 201
    made = reply.body
    assert (made["trace_id"], made["span_id"], made["annotator"]) == (trace_id, span_id, "ada")
    assert (made["label"], made["correction"], made["notes"]) == ("hallucination", {"a": [1]}, "n")
    assert client.get(f"/v1/annotations/{made['id']}").body == made


@pytest.mark.parametrize("field", [{"label": "ok"}, {"correction": "Paris"}, {"notes": "see"}])
def test_one_of_label_correction_and_notes_is_enough(client: Client, field: dict[str, str]) -> None:
    trace_id, _ = client.trace()
    assert annotate(client, trace_id, **field).status == 201


@pytest.mark.parametrize("field", [{}, {"label": None, "correction": None, "notes": None}, {"notes": ""}])
def test_none_of_the_three_is_EMPTY_ANNOTATION(client: Client, field: dict[str, Any]) -> None:
    trace_id, _ = client.trace()
    reply = annotate(client, trace_id, **field)
    assert (reply.status, reply.code) == (400, "EMPTY_ANNOTATION")


@pytest.mark.parametrize("field", [{"annotator": ""}, {"annotator": " "}, {"label": ""}, {"label": 5}])
def test_an_empty_annotator_or_label_is_INVALID_REQUEST(client: Client, field: dict[str, Any]) -> None:
    trace_id, _ = client.trace()
    reply = annotate(client, trace_id, **{"notes": "n", **field})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_an_unknown_trace_is_404(client: Client) -> None:
    assert annotate(client, "no-such", label="x").code == "NOT_FOUND"
    assert client.get("/v1/annotations/no-such").code == "NOT_FOUND"


def test_a_span_of_another_trace_is_INVALID_ANNOTATION_SCOPE(client: Client) -> None:
    trace_id, _ = client.trace()
    _, other_span = client.trace()
    for span_id in (other_span, "no-such"):
        reply = annotate(client, trace_id, span_id=span_id, label="x")
        assert (reply.status, reply.code) == (422, "INVALID_ANNOTATION_SCOPE")


def test_annotations_are_listed_by_trace_and_span(client: Client) -> None:
    trace_id, span_id = client.trace()
    whole = annotate(client, trace_id, label="one").body["id"]
    about_span = annotate(client, trace_id, span_id=span_id, label="two").body["id"]
    listed = client.get("/v1/annotations", trace_id=trace_id).body["items"]
    assert [row["id"] for row in listed] == [whole, about_span]
    narrowed = client.get("/v1/annotations", trace_id=trace_id, span_id=span_id).body["items"]
    assert [row["id"] for row in narrowed] == [about_span]
    assert client.get("/v1/annotations").code == "INVALID_REQUEST"
    assert client.get("/v1/annotations", trace_id="no-such").body["items"] == []


def test_an_annotation_becomes_a_dataset_item(client: Client) -> None:
    trace_id, _ = client.trace(input={"q": "Capital of France?"}, output="Lyon")
    made = annotate(client, trace_id, correction="Paris").body
    dataset_id, _ = client.dataset()
    path = f"/v1/annotations/{made['id']}/to-dataset-item"
    first = client.post(path, {"dataset_id": dataset_id})
    assert first.status == 201
    item = first.body
    assert (item["input"], item["expected_output"]) == ({"q": "Capital of France?"}, "Paris")
    assert item["metadata"] == {
        "source_trace_id": trace_id,
        "source_annotation_id": made["id"],
        "annotator": "ada",
    }
    # every call makes a new item
    second = client.post(path, {"dataset_id": dataset_id})
    assert second.body["id"] != item["id"]
    assert client.get(f"/v1/datasets/{dataset_id}").body["item_count"] == 2


def test_without_a_correction_nothing_is_expected_of_the_item(client: Client) -> None:
    trace_id, _ = client.trace(input="q")
    made = annotate(client, trace_id, label="ok").body
    dataset_id, _ = client.dataset()
    item = client.post(f"/v1/annotations/{made['id']}/to-dataset-item", {"dataset_id": dataset_id}).body
    assert item["expected_output"] is None


def test_no_root_is_NO_ROOT_SPAN(client: Client) -> None:
    child = span(parent_span_id="not-there", input="q")
    client.spans(child)
    made = annotate(client, child["trace_id"], label="x").body
    dataset_id, _ = client.dataset()
    reply = client.post(f"/v1/annotations/{made['id']}/to-dataset-item", {"dataset_id": dataset_id})
    assert (reply.status, reply.code) == (422, "NO_ROOT_SPAN")


def test_a_trace_that_is_gone_is_404_and_its_annotations_stay(client: Client) -> None:
    trace_id, _ = client.trace(input="q")
    made = annotate(client, trace_id, label="x").body
    dataset_id, _ = client.dataset()
    client.delete(f"/v1/traces/{trace_id}")
    reply = client.post(f"/v1/annotations/{made['id']}/to-dataset-item", {"dataset_id": dataset_id})
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert client.get(f"/v1/annotations/{made['id']}").status == 200
    assert client.get(f"/v1/datasets/{dataset_id}").body["item_count"] == 0


def test_an_unknown_dataset_is_404(client: Client) -> None:
    trace_id, _ = client.trace(input="q")
    made = annotate(client, trace_id, label="x").body
    reply = client.post(f"/v1/annotations/{made['id']}/to-dataset-item", {"dataset_id": "no-such"})
    assert reply.code == "NOT_FOUND"


def test_a_dataset_of_another_project_is_404(client: Client) -> None:
    trace_id, _ = client.trace(input="q")
    made = annotate(client, trace_id, label="x").body
    foreign = client.again(project="default")
    dataset_id, _ = foreign.dataset()
    foreign.close()
    reply = client.post(f"/v1/annotations/{made['id']}/to-dataset-item", {"dataset_id": dataset_id})
    assert reply.code == "NOT_FOUND"


def test_a_trace_is_queued_once_and_keeps_its_place(client: Client) -> None:
    trace_id, _ = client.trace()
    first = client.post(f"/v1/traces/{trace_id}/queue")
    assert first.status == 200
    assert first.body["trace_id"] == trace_id
    assert first.body["queued"] is True
    assert client.post(f"/v1/traces/{trace_id}/queue").body == first.body
    out = client.delete(f"/v1/traces/{trace_id}/queue")
    assert (out.status, out.body) == (200, {"trace_id": trace_id, "queued": False})
    assert client.delete(f"/v1/traces/{trace_id}/queue").status == 200


def test_queueing_an_unknown_trace_is_404(client: Client) -> None:
    assert client.post("/v1/traces/no-such/queue").code == "NOT_FOUND"
    assert client.delete("/v1/traces/no-such/queue").code == "NOT_FOUND"


def test_the_queue_is_listed_oldest_first_with_the_root(client: Client) -> None:
    first, root = client.trace(name="ask", input="q", output={"a": 1}, end_time="2026-02-21T22:00:01Z")
    partial = span(parent_span_id="later")
    client.spans(partial)
    # queued in the order of this list, which is not the order of creation
    for trace_id in (partial["trace_id"], first):
        client.post(f"/v1/traces/{trace_id}/queue")
    reply = client.get("/v1/queue", project_id=client.project)
    rows = reply.body["items"]
    assert [row["trace_id"] for row in rows] == [partial["trace_id"], first]
    assert rows[0]["root_span"] is None
    assert rows[1]["root_span"] == {
        "id": root,
        "name": "ask",
        "input": "q",
        "output": {"a": 1},
        "duration_ms": 1000,
    }
    assert (rows[1]["status"], rows[1]["annotation_count"]) == ("pending", 0)


def test_the_queue_is_narrowed_by_status(client: Client) -> None:
    made = [client.trace()[0] for _ in range(3)]
    for trace_id in made:
        client.post(f"/v1/traces/{trace_id}/queue")
    annotate(client, made[1], label="x")
    annotate(client, made[1], label="y")

    def listed(**query: Any) -> list[str]:
        return [
            row["trace_id"]
            for row in client.get("/v1/queue", project_id=client.project, **query).body["items"]
        ]

    assert listed(status="pending") == [made[0], made[2]]
    assert listed(status="annotated") == [made[1]]
    [row] = client.get("/v1/queue", project_id=client.project, status="annotated").body["items"]
    assert (row["status"], row["annotation_count"]) == ("annotated", 2)
    assert listed() == made
    reply = client.get("/v1/queue", project_id=client.project, status="done")
    assert (reply.status, reply.code) == (400, "INVALID_QUEUE_STATUS")
    assert client.get("/v1/queue").code == "PROJECT_REQUIRED"


def test_pages_of_the_queue_neither_skip_nor_repeat(client: Client) -> None:
    made = [client.trace()[0] for _ in range(5)]
    for trace_id in made:
        client.post(f"/v1/traces/{trace_id}/queue")
    seen = [row["trace_id"] for row in client.pages("/v1/queue", project_id=client.project, limit=2)]
    assert seen == made
    client.delete(f"/v1/traces/{made[0]}")
    assert [row["trace_id"] for row in client.pages("/v1/queue", project_id=client.project)] == made[1:]
