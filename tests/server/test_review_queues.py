"""Review queues over HTTP, on both databases: reservations, blind work, forms, agreement, the corrected mean."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.service_harness import Client, span

from evenhand.core.ids import new_id
from evenhand.metrics import krippendorff_alpha

Reviewers = Callable[[str], Client]


@pytest.fixture
def reviewer(client: Client) -> Iterator[Reviewers]:
    """Makes reviewers with a token of their own."""
    with ExitStack() as stack:

        def make(name: str) -> Client:
            body = {"name": name, "role": "review", "project_id": client.project}
            one = client.again(token=client.made("/v1/tokens", body)["token"])
            stack.callback(one.close)
            return one

        yield make


def queue(client: Client, traces: int = 2, **more: Any) -> tuple[str, list[str]]:
    """A queue of traces."""
    made = client.made("/v1/queues", {"project_id": client.project, "name": new_id(), **more})["id"]
    trace_ids = [client.trace(input=f"q{n}", output=f"a{n}")[0] for n in range(traces)]
    added = client.post(f"/v1/queues/{made}/items", {"trace_ids": trace_ids})
    assert added.body == {"added": traces, "already": 0}
    return made, trace_ids


def take(one: Client, queue_id: str) -> Any:
    reply = one.post(f"/v1/queues/{queue_id}/next", {})
    assert reply.status == 200, reply.raw
    return reply.body["item"]


def say(one: Client, queue_id: str, item: str, label: str, **more: Any) -> Any:
    body = {"answers": {"label": label}, **more}
    return one.post(f"/v1/queues/{queue_id}/items/{item}/review", body)


def test_a_reviewers_work_carries_the_name_and_becomes_an_annotation(
    client: Client, reviewer: Reviewers
) -> None:
    queue_id, [trace_id] = queue(client, 1)
    ana = reviewer("Ana")
    item = take(ana, queue_id)
    assert (item["target_id"], item["shown"][0]["input"], item["shown"][0]["output"]) == (
        trace_id,
        "q0",
        "a0",
    )
    done = say(ana, queue_id, item["id"], "hallucination", correction="b0", notes="no", annotator="Mallory")
    assert done.status == 201
    assert done.body["review"]["annotator"] == "Ana"
    [annotation] = client.get("/v1/annotations", trace_id=trace_id).body["items"]
    assert annotation["id"] == done.body["review"]["annotation_id"]
    said = {name: annotation[name] for name in ("annotator", "label", "correction", "notes")}
    assert said == {"annotator": "Ana", "label": "hallucination", "correction": "b0", "notes": "no"}
    assert take(ana, queue_id) is None
    progress = client.get(f"/v1/queues/{queue_id}").body
    assert (progress["item_count"], progress["done_count"], progress["open_count"]) == (1, 1, 0)
    assert progress["reviewers"] == [{"annotator": "Ana", "review_count": 1}]


def test_a_root_without_texts_shows_those_of_its_first_call(client: Client, reviewer: Reviewers) -> None:
    root = span()
    call = span(trace_id=root["trace_id"], parent_span_id=root["id"], model="m", input="q", output="a")
    assert client.spans(root, call).status == 201
    made = client.made("/v1/queues", {"project_id": client.project, "name": new_id()})["id"]
    client.post(f"/v1/queues/{made}/items", {"trace_ids": [root["trace_id"]]})
    [shown] = take(reviewer("Ana"), made)["shown"]
    assert (shown["input"], shown["output"]) == ("q", "a")


def test_an_item_is_reserved_and_nobody_gets_a_finished_pair(client: Client, reviewer: Reviewers) -> None:
    queue_id, _ = queue(client, 2)
    ana, li = reviewer("Ana"), reviewer("Li")
    first = take(ana, queue_id)
    assert take(ana, queue_id)["id"] == first["id"]  # asking again changes nothing
    second = take(li, queue_id)
    assert second["id"] != first["id"]
    bo = reviewer("Bo")
    assert take(bo, queue_id) is None  # both are with somebody
    assert say(ana, queue_id, first["id"], "correct").status == 201
    late = say(bo, queue_id, first["id"], "correct")
    assert (late.status, late.code) == (409, "CONFLICT")
    again = say(ana, queue_id, first["id"], "other")
    assert (again.status, again.code) == (409, "CONFLICT")
    assert client.get(f"/v1/queues/{queue_id}/items/{first['id']}").body["review_count"] == 1


def test_a_reservation_that_has_run_out_counts_no_more(client: Client, reviewer: Reviewers) -> None:
    queue_id, _ = queue(client, 1, reserve_seconds=1)
    ana, li = reviewer("Ana"), reviewer("Li")
    held = take(ana, queue_id)
    while (item := take(li, queue_id)) is None:
        time.sleep(0.1)  # the test's own time limit ends this
    assert item["id"] == held["id"]


def test_what_is_skipped_comes_last_for_that_reviewer(client: Client, reviewer: Reviewers) -> None:
    queue_id, _ = queue(client, 3)
    ana = reviewer("Ana")
    first = take(ana, queue_id)["id"]
    second = ana.post(f"/v1/queues/{queue_id}/items/{first}/skip", {}).body["item"]["id"]
    assert second != first
    assert take(reviewer("Li"), queue_id)["id"] == first
    say(ana, queue_id, second, "correct")
    third = take(ana, queue_id)["id"]
    assert third not in (first, second)


def test_blind_until_submitted_in_every_answer(client: Client, reviewer: Reviewers) -> None:
    """Reviewer B's answers from the service hold nothing of A's review or of the judge before B has submitted."""
    queue_id, [trace_id] = queue(client, 1, reviewers_per_item=2, judge_scorer="judge")
    root = client.get(f"/v1/traces/{trace_id}").body["root_span_id"]
    body = {"target_id": root, "target_type": "span", "scorer_name": "judge", "value": 0.25}
    client.made("/v1/scores", {**body, "rationale": "judges-secret-reason"})
    ana, li = reviewer("Ana"), reviewer("Li")
    item = take(ana, queue_id)["id"]
    after = say(ana, queue_id, item, "harmful", notes="anas-secret-note").body["item"]
    assert [review["annotator"] for review in after["reviews"]] == ["Ana"]
    assert (after["judge"]["value"], after["withheld"]) == (0.25, False)
    answers = [
        li.post(f"/v1/queues/{queue_id}/next", {}),
        li.get(f"/v1/queues/{queue_id}/items/{item}"),
        li.get(f"/v1/queues/{queue_id}"),
        li.get("/v1/queues", project_id=client.project),
        li.post(f"/v1/queues/{queue_id}/items/{item}/flag", {"reason": "odd"}),
        li.post(f"/v1/queues/{queue_id}/items/{item}/skip", {}),
        li.get("/v1/annotations", trace_id=trace_id),
        li.get(f"/v1/traces/{trace_id}"),
        li.get("/v1/scores", target_id=root, target_type="span"),
        li.get(f"/v1/queues/{queue_id}/agreement"),
        li.get(f"/v1/queues/{queue_id}/items"),
    ]
    for answer in answers:
        for secret in (b"secret", b"harmful", b"0.25", b'"annotator":"Ana","answers"'):
            if secret == b"harmful":  # the form's own suggestion
                assert answer.raw.count(secret) <= answer.raw.count(b'"labels"'), answer.raw
            else:
                assert secret not in answer.raw, answer.raw
    shown = li.get(f"/v1/queues/{queue_id}/items/{item}").body
    assert (shown["withheld"], shown["reviews"], shown["judge"], shown["review_count"]) == (True, [], None, 0)
    said = say(li, queue_id, item, "correct").body["item"]
    assert [review["annotator"] for review in said["reviews"]] == ["Ana", "Li"]
    assert said["judge"]["rationale"] == "judges-secret-reason"
    assert client.get(f"/v1/queues/{queue_id}/items", status="flagged").body["items"][0]["id"] == item


def test_agreement_disagreements_and_their_settlement(client: Client, reviewer: Reviewers) -> None:
    """Two reviewers, ten items, two disagreements: α from the same ratings through the library."""
    queue_id, _ = queue(client, 10, reviewers_per_item=2)
    ana, li = reviewer("Ana"), reviewer("Li")
    given: dict[str, list[str | None]] = {"Ana": [], "Li": []}
    order: list[str] = []
    for n in range(10):
        item = take(ana, queue_id)["id"]
        order.append(item)
        label = "correct" if n % 2 else "incomplete"
        other = "harmful" if n in (3, 4) else label
        assert say(ana, queue_id, item, label).status == 201
        assert say(li, queue_id, item, other).status == 201
        given["Ana"].append(label)
        given["Li"].append(other)
    found = client.get(f"/v1/queues/{queue_id}/agreement").body
    [field] = found["fields"]
    expected = krippendorff_alpha([given["Ana"], given["Li"]])
    assert field["alpha"]["value"] == pytest.approx(expected.value, abs=1e-12)
    assert field["alpha"]["ci_lower"] == pytest.approx(expected.ci_lower, abs=1e-12)
    [pair] = field["pairs"]
    assert (pair["first"], pair["second"], pair["items"], pair["agreed"]) == ("Ana", "Li", 10, 8)
    assert sum(map(sum, pair["confusion"])) == 10
    assert set(found["disagreements"]) == {order[3], order[4]}
    disagreed = client.get(f"/v1/queues/{queue_id}/items", status="disagreed").body["items"]
    assert {item["id"] for item in disagreed} == {order[3], order[4]}
    refused = ana.post(f"/v1/queues/{queue_id}/items/{order[3]}/adjudicate", {"answers": {"label": "other"}})
    assert refused.code == "FORBIDDEN"
    lead = {"annotator": "lead", "answers": {"label": "correct"}}
    assert client.post(f"/v1/queues/{queue_id}/items/{order[3]}/adjudicate", lead).status == 201
    assert client.get(f"/v1/queues/{queue_id}/agreement").body["disagreements"] == [order[4]]
    assert found["corrected"] is None
    assert "no judge" in found["no_correction"]


@pytest.mark.parametrize("pick", ["oldest", "random", "informative"])
def test_the_judges_mean_is_corrected_by_labels(client: Client, reviewer: Reviewers, pick: str) -> None:
    """Every item labelled: the corrected mean is the mean of the labels, whatever the judge said."""
    made = client.made(
        "/v1/queues", {"project_id": client.project, "name": new_id(), "pick": pick, "judge_scorer": "judge"}
    )["id"]
    dataset, items = client.dataset([f"q{n}" for n in range(8)])
    experiment = client.experiment(dataset)
    runs = client.runs(experiment, [{"dataset_item_id": item, "output": "x"} for item in items])
    for n, run in enumerate(runs):
        body = {
            "target_id": run,
            "target_type": "run",
            "scorer_name": "judge",
            "value": 0.9 if n % 2 else 0.6,
        }
        client.made("/v1/scores", body)
    assert client.post(f"/v1/queues/{made}/items", {"experiment_id": experiment}).body["added"] == 8
    assert client.post(f"/v1/queues/{made}/items", {"run_ids": runs[:2]}).body == {"added": 0, "already": 2}
    ana = reviewer("Ana")
    good = set(runs[:2])
    while (item := take(ana, made)) is not None:
        assert say(ana, made, item["id"], "correct" if item["target_id"] in good else "other").status == 201
    found = client.get(f"/v1/queues/{made}/agreement").body["corrected"]
    assert (found["items"], found["labelled"]) == (8, 8)
    assert found["judge_only"]["value"] == pytest.approx(0.75)
    assert found["corrected"]["value"] == pytest.approx(2 / 8)
    assert found["corrected"]["ci_lower"] <= 0.25 <= found["corrected"]["ci_upper"]
    assert "every item has a label" in found["sentence"]


FORM = {
    "fields": [
        {"name": "better", "kind": "choice", "required": True},
        {"name": "clarity", "kind": "scale", "minimum": 1, "maximum": 5},
        {"name": "why", "kind": "text"},
    ]
}


def test_a_form_of_ones_own_with_pairs(client: Client, reviewer: Reviewers) -> None:
    made = client.made("/v1/queues", {"project_id": client.project, "name": new_id(), "form": FORM})["id"]
    a, b = client.run("answer a"), client.run("answer b")
    client.post(f"/v1/queues/{made}/items", {"pairs": [{"a": a, "b": b}]})
    ana = reviewer("Ana")
    item = take(ana, made)
    assert [shown["output"] for shown in item["shown"]] == ["answer a", "answer b"]
    path = f"/v1/queues/{made}/items/{item['id']}/review"
    for answers, reason in (
        ({}, "required"),
        ({"better": "C"}, "A, B or tie"),
        ({"better": "A", "clarity": 6}, "from 1 to 5"),
        ({"better": "A", "clarity": True}, "number"),
        ({"better": "A", "label": "correct"}, "no field"),
    ):
        refused = ana.post(path, {"answers": answers})
        assert (refused.status, refused.code) == (400, "INVALID_REQUEST")
        assert reason in refused.body["error"]["message"]
    assert ana.post(path, {"answers": {"better": "B", "clarity": 4}}).status == 201


@pytest.mark.parametrize(
    "form",
    [
        {"fields": []},
        {"fields": [{"name": "a", "kind": "label"}]},
        {"fields": [{"name": "a", "kind": "label", "labels": ["x"], "good": ["y"]}]},
        {"fields": [{"name": "a", "kind": "scale", "minimum": 2, "maximum": 2}]},
        {"fields": [{"name": "a", "kind": "text"}, {"name": "a", "kind": "text"}]},
        {"fields": [{"name": "notes", "kind": "text"}]},
        {"fields": [{"name": "a", "kind": "radio"}]},
        {"fields": [{"name": "a", "kind": "text", "lables": ["x"]}]},
    ],
)
def test_a_form_that_cannot_be_filled_in_is_refused(client: Client, form: Any) -> None:
    reply = client.post("/v1/queues", {"project_id": client.project, "name": new_id(), "form": form})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_nothing_said_is_refused_and_the_item_stays_open(client: Client, reviewer: Reviewers) -> None:
    queue_id, _ = queue(client, 1)
    ana = reviewer("Ana")
    item = take(ana, queue_id)["id"]
    empty = ana.post(f"/v1/queues/{queue_id}/items/{item}/review", {})
    assert (empty.status, empty.code) == (400, "EMPTY_ANNOTATION")
    assert "at least a label, correction, or notes" in empty.body["error"]["message"]
    assert client.get(f"/v1/queues/{queue_id}/items/{item}").body["status"] == "open"


def test_a_closed_queue_hands_out_nothing_until_it_is_opened_again(
    client: Client, reviewer: Reviewers
) -> None:
    queue_id, _ = queue(client, 1)
    ana = reviewer("Ana")
    path, kind = f"/v1/queues/{queue_id}", {"Content-Type": "application/json"}
    assert client.request("PATCH", path, b'{"closed": true}', kind).body["closed_at"] is not None
    assert take(ana, queue_id) is None
    assert client.request("PATCH", path, b'{"closed": false}', kind).body["closed_at"] is None
    assert take(ana, queue_id) is not None
    name = client.get(path).body["name"]
    taken = client.post("/v1/queues", {"project_id": client.project, "name": name})
    assert (taken.status, taken.code) == (409, "CONFLICT")
