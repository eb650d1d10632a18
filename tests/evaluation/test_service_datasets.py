"""Data from a dataset of a running service: `evaluate("URL/datasets/ID", ...)` and `eval run --data URL/datasets/ID`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import evenhand, lines
from tests.service import ADMIN, ServiceUnderTest

from evenhand import evaluate
from evenhand.core.errors import InputError, OptionError, ServiceError

ITEMS = [
    {"input": f"{a} + {b}", "expected_output": str(a + b), "metadata": {"category": "even" if a % 2 == 0 else "odd"}}
    for a in range(21) for b in range(10)
]  # fmt: skip
TASK = """
def answer(question):
    a, _, b = question.split()
    return str(int(a) + int(b)) if a != "7" else "I don't know"
"""


def answer(question: str) -> str:
    """Wrong on ten of the 210 items."""
    a, _, b = question.split()
    return str(int(a) + int(b)) if a != "7" else "I don't know"


@pytest.fixture
def dataset(service: ServiceUnderTest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a dataset with more items than one page of the service holds."""
    monkeypatch.setenv("EVENHAND_TOKEN", ADMIN)
    made = service.post("/v1/datasets", {"name": "sums", "project_id": "default"})
    assert made.status == 201, made
    body = "\n".join(json.dumps(item) for item in ITEMS).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    added = service.raw("POST", f"/v1/datasets/{made.body['id']}/items/import", body, kind)
    assert added.status in (200, 201), added
    return str(made.body["id"])


def test_the_items_of_a_dataset_are_the_data(service: ServiceUnderTest, dataset: str) -> None:
    found = evaluate(f"{service.url}/datasets/{dataset}", answer, ["exact_match"], progress=False)
    assert len(found.rows) == len(ITEMS)
    assert {(row.input, row.expected) for row in found.rows} == {
        (item["input"], item["expected_output"]) for item in ITEMS
    }
    stored = service.get(f"/v1/datasets/{dataset}/items", limit=50).body["items"]
    assert [row.metadata["id"] for row in found.rows[:50]] == [item["id"] for item in stored]
    assert {row.metadata["category"] for row in found.rows} == {"even", "odd"}
    assert found.mean("exact_match") == pytest.approx(200 / 210)


def test_page_and_api_name_the_same_data(service: ServiceUnderTest, dataset: str) -> None:
    """Runs on either address of the dataset, and of the command, are compared with each other."""
    places = [f"/v1/datasets/{dataset}", f"/projects/default/datasets/{dataset}/"]
    one, other = (
        evaluate(f"{service.url}{place}", answer, ["exact_match"], progress=False) for place in places
    )
    assert other.compare(one).verdict == "PASS"


def test_the_command_takes_the_same_rows(tmp_path: Path, service: ServiceUnderTest, dataset: str) -> None:
    (tmp_path / "app.py").write_text(TASK)
    address = f"{service.url}/datasets/{dataset}"
    done = evenhand(
        "eval", "run", "--task", "app.py:answer", "--data", address, "--scorer", "exact_match", "-o", "out",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = evaluate(address, answer, ["exact_match"], progress=False)
    written = lines(tmp_path / "out" / "results.jsonl")
    assert [row["reward"] for row in written] == [row.scores["exact_match"] for row in found.rows]
    assert found.compare(tmp_path / "out").verdict == "PASS"


def test_what_is_no_dataset_is_said_before_the_first_call(
    service: ServiceUnderTest, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def refused(place: str, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            evaluate(f"{service.url}{place}", asked.append, ["exact_match"], progress=False)

    empty = service.post("/v1/datasets", {"name": "empty", "project_id": "default"}).body["id"]
    refused(f"/datasets/{empty}", InputError, "no items")
    refused("/datasets/nothing-such", ServiceError, "404")
    refused("/datasets/", OptionError, "is not a dataset")
    refused("/experiments/x", OptionError, "is not a dataset")
    monkeypatch.delenv("EVENHAND_TOKEN")
    refused(f"/datasets/{dataset}", ServiceError, "401")
    assert asked == []
