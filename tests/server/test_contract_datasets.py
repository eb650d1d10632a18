"""Section 4 of the contract: datasets and imports. On both databases."""

import gzip
import json
from typing import Any

import pytest
from tests.service_harness import Client

NDJSON = "application/x-ndjson"


def imported(client: Client, dataset: str, text: bytes, content_type: str = NDJSON, **headers: str) -> Any:
    reply = client.post_raw(f"/v1/datasets/{dataset}/items/import", text, content_type, **headers)
    assert reply.status == 200, reply.raw
    return reply.body


def test_a_dataset_counts_its_versions_and_items(client: Client) -> None:
    dataset, items = client.dataset(["a", {"input": "", "expected_output": None, "metadata": {"k": 1}}])
    got = client.get(f"/v1/datasets/{dataset}").body
    assert (got["version"], got["item_count"]) == (3, 2)
    rows = client.get(f"/v1/datasets/{dataset}/items").body["items"]
    assert [(row["id"], row["input"]) for row in rows] == [(items[0], "a"), (items[1], "")]
    assert rows[1]["metadata"] == {"k": 1}


@pytest.mark.parametrize("body", [{}, {"input": None}, {"expected_output": 1}])
def test_an_item_needs_an_input(client: Client, body: dict[str, Any]) -> None:
    dataset, _ = client.dataset()
    reply = client.post(f"/v1/datasets/{dataset}/items", body)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert client.get(f"/v1/datasets/{dataset}").body["version"] == 1


@pytest.mark.parametrize("content_type", [NDJSON, "application/jsonl"])
def test_an_import_takes_good_lines_and_reports_bad_ones(client: Client, content_type: str) -> None:
    dataset, _ = client.dataset()
    text = (
        b'{"input": 1, "expected_output": 2}\nnot json\n{"input": null}\n{"other": 1}\n[1]\n{"input": "last"}'
    )
    report = imported(client, dataset, text, content_type)
    assert (report["imported_count"], report["skipped_count"]) == (2, 4)
    assert [row["line"] for row in report["skipped"]] == [2, 3, 4, 5]
    assert all(row["reason"] for row in report["skipped"])
    got = client.get(f"/v1/datasets/{dataset}").body
    assert (got["version"], got["item_count"]) == (2, 2)
    rows = client.get(f"/v1/datasets/{dataset}/items").body["items"]
    assert [row["input"] for row in rows] == [1, "last"]


def test_an_import_of_nothing_good_leaves_the_version(client: Client) -> None:
    dataset, _ = client.dataset()
    report = imported(client, dataset, b"nonsense\n5\n")
    assert (report["imported_count"], report["skipped_count"]) == (0, 2)
    assert client.get(f"/v1/datasets/{dataset}").body["version"] == 1
    assert imported(client, dataset, b"")["imported_count"] == 0


def test_case_18_odd_lines_of_an_import(client: Client) -> None:
    dataset, _ = client.dataset()
    lines = [
        b'\xef\xbb\xbf{"input": "after a BOM"}\r\n',
        b"\r\n",
        b'{"input": "\xff"}\n',
        b'{"input": 1, "input": 2}\n',
        b'{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"input": NaN}\n',
        b'{"input": 1e400}\n',
        b'{"input": ' + b"9" * 5000 + b"}\n",
        b'{"input": "\\ud800"}\n',
        b'{"input": "nul \\u0000"}\n',
        b'{"input": 18446744073709551616}\n',
        b'{"input": "no final newline"}',
    ]
    report = imported(client, dataset, b"".join(lines))
    skipped = {row["line"]: row["reason"] for row in report["skipped"]}
    assert {3, 4, 5, 6, 7, 8} <= set(skipped)
    assert "duplicate_key" in skipped[4]
    rows = [row["input"] for row in client.get(f"/v1/datasets/{dataset}/items").body["items"]]
    assert rows[0] == "after a BOM"
    assert rows[-3:] == ["nul \x00", 18446744073709551616, "no final newline"]
    assert len(rows) == report["imported_count"]


def test_a_line_over_the_limit_is_skipped_and_the_rest_is_not(client: Client) -> None:
    dataset, _ = client.dataset()
    text = b'{"input": 1}\n{"input": "' + b"x" * 17_000_000 + b'"}\n{"input": 2}\n'
    report = imported(client, dataset, text)
    assert (report["imported_count"], [row["line"] for row in report["skipped"]]) == (2, [2])


def test_an_import_may_be_packed(client: Client) -> None:
    dataset, _ = client.dataset()
    text = "".join(json.dumps({"input": n}) + "\n" for n in range(1000)).encode()
    report = imported(client, dataset, gzip.compress(text), Content_Encoding="gzip")
    assert report["imported_count"] == 1000
    assert [row["input"] for row in client.pages(f"/v1/datasets/{dataset}/items", limit=200)] == list(
        range(1000)
    )


def test_an_import_into_an_unknown_dataset_is_404_and_another_type_415(client: Client) -> None:
    reply = client.post_raw("/v1/datasets/no-such/items/import", b'{"input": 1}', NDJSON)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    dataset, _ = client.dataset()
    reply = client.post_raw(f"/v1/datasets/{dataset}/items/import", b'{"input": 1}', "text/csv")
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_deleted_datasets_name_is_free_and_its_experiments_keep_their_runs(client: Client) -> None:
    dataset, [item] = client.dataset(["a"], name="same")
    experiment = client.experiment(dataset)
    client.runs(experiment, [{"dataset_item_id": item, "output": 1}])
    assert client.delete(f"/v1/datasets/{dataset}").body == {"deleted": True, "id": dataset}
    assert client.get(f"/v1/datasets/{dataset}").status == 404
    assert client.get(f"/v1/datasets/{dataset}/items").status == 404
    assert len(client.get(f"/v1/experiments/{experiment}/runs").body["items"]) == 1
    client.dataset(name="same")
