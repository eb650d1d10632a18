"""Queues with forms of their own, in a real browser: made by a lead, worked on blind, opened after submitting."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.pages.test_queue import as_person
from tests.service_harness import Client


@pytest.fixture
def client(demo: Site) -> Iterator[Client]:
    made = demo.client()
    yield made
    made.close()


def blind_queue(client: Client, count: int = 2) -> str:
    """Traces with a judge's score and two reviewers each."""
    body = {"project_id": client.project, "name": "blind", "reviewers_per_item": 2, "judge_scorer": "judge"}
    queue: str = client.made("/v1/queues", body)["id"]
    ids = []
    for number in range(count):
        trace_id, root = client.trace(input=f"question {number}", output=f"answer {number}")
        score = {"target_id": root, "target_type": "span", "scorer_name": "judge", "value": 0.25}
        client.made("/v1/scores", {**score, "rationale": "judges-secret"})
        client.post(f"/v1/traces/{trace_id}/queue?project_id={client.project}")
        ids.append(trace_id)
    assert client.post(f"/v1/queues/{queue}/items", {"trace_ids": ids}).body["added"] == count
    return queue


def test_blind_until_submitted_in_every_answer(browser: Browser, demo: Site, client: Client) -> None:
    """Whatever reviewer B is sent before submitting holds nothing of A's review or of the judge."""
    queue = blind_queue(client, 1)
    path = f"/projects/{client.project}/queues/{queue}"
    with open_tab(browser, demo) as ana:
        as_person(ana, client, "Ana")
        ana.goto(path)
        ana.get_by_label("hallucination").check()
        ana.get_by_label("Note").fill("anas-secret")
        ana.get_by_role("button", name="Submit and next").click()
        expect(ana.locator(".reveal")).to_contain_text("judges-secret")
    with open_tab(browser, demo) as li:
        received: list[str] = []
        as_person(li, client, "Li")
        li.on(
            "response",
            lambda answer: received.append(answer.url) if answer.request.is_navigation_request() else None,
        )
        trace = client.get("/v1/queue", project_id=client.project).body["items"][0]["trace_id"]
        item = client.get(f"/v1/queues/{queue}/items").body["items"][0]["id"]
        plain = f"/projects/{client.project}/queue"
        for address in (
            path,
            f"{path}?item={item}",
            f"{path}?last={item}",
            plain,
            f"{plain}/{trace}",
            f"{plain}?show=mine",
        ):
            text = li.request.get(address).text()
            assert "question 0" in text or address.endswith("mine")
            for secret in ("anas-secret", "judges-secret", "0.25"):
                assert secret not in text, address
        li.goto(path)
        expect(li.get_by_text("blind until you submit")).to_be_visible()
        li.locator("input[value=correct]").check()
        li.get_by_role("button", name="Submit and next").click()
        said = li.locator(".reveal")
        expect(said).to_contain_text("hallucination “anas-secret”")
        expect(said).to_contain_text("judges-secret")
        expect(li.locator("section.last")).to_contain_text("goes to adjudication")
        expect(li.get_by_role("heading", name="You are done")).to_be_visible()


def test_a_queue_by_keyboard_with_progress(browser: Browser, demo: Site, client: Client) -> None:
    queue = blind_queue(client, 3)
    with open_tab(browser, demo) as tab:
        as_person(tab, client, "Ana")
        tab.goto(f"/projects/{client.project}/queue")
        tab.keyboard.press("j")
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"**/queues/{queue}")
        expect(tab.locator(".people")).to_have_text("0/3you 0")
        expect(tab.get_by_text("It has waited longest.")).to_be_visible()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("alert")).to_be_visible()
        tab.keyboard.press("s")
        expect(tab.locator(".q .prose")).to_have_text("question 1")
        tab.keyboard.press("1")
        tab.keyboard.press("Enter")
        expect(tab.locator(".people")).to_have_text("1/3you 1")
        expect(tab.locator(".q .prose")).to_have_text("question 2")
        tab.keyboard.press("f")
        expect(tab.get_by_role("status")).to_contain_text("Flagged for the lead.")
    progress = client.get(f"/v1/queues/{queue}").body
    assert (progress["flagged_count"], progress["reviewers"]) == (
        1,
        [{"annotator": "Ana", "review_count": 1}],
    )


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_lead_makes_a_queue_without_code(
    browser: Browser, demo: Site, client: Client, scripts: bool
) -> None:
    dataset, items = client.dataset([{"input": "Which is better?"}])
    ids = [client.experiment(dataset, name=name) for name in ("old", "new")]
    for experiment, output in zip(ids, ("first text", "second text"), strict=True):
        client.runs(experiment, [{"dataset_item_id": items[0], "output": output}])
    with open_tab(browser, demo, java_script_enabled=scripts) as tab:
        tab.goto(f"/projects/{client.project}/queue")
        tab.get_by_role("link", name="New queue").click()
        tab.get_by_label("Name").fill("Which one")
        tab.get_by_label("Reviewers per item").fill("1")
        tab.get_by_label("They answer with").nth(0).select_option("choice")
        tab.get_by_label("What people read").nth(0).fill("Which is better?")
        tab.get_by_label("They answer with").nth(1).select_option("scale")
        tab.get_by_label("What people read").nth(1).fill("How sure are you?")
        tab.get_by_label("Scale from").nth(1).fill("1")
        tab.get_by_label("to", exact=True).nth(1).fill("5")
        tab.get_by_label("They answer with").nth(2).select_option("text")
        tab.get_by_label("What people read").nth(2).fill("Why?")
        tab.get_by_role("button", name="Make queue").click()
        tab.get_by_label("A", exact=True).select_option(label="old")
        tab.get_by_label("B", exact=True).select_option(label="new")
        tab.get_by_role("button", name="Add pairs").click()
        assert "1 item added." in tab.get_by_role("status").inner_text()
        assert tab.locator(".answer .prose").all_inner_texts() == ["first text", "second text"]
        tab.locator("input[value=B]").check()
        tab.locator("input[name=f1][value='4']").check()
        tab.get_by_label("Why?").fill("It is clearer.")
        tab.get_by_role("button", name="Submit and next").click()
        assert "Review saved." in tab.get_by_role("status").inner_text()
        tab.get_by_role("button", name="Close…").click()
        tab.get_by_role("button", name="Close it").click()
        assert "This queue is closed" in tab.locator("main").inner_text()
    [queue] = client.get("/v1/queues", project_id=client.project).body["items"]
    [item] = client.get(f"/v1/queues/{queue['id']}/items").body["items"]
    [review] = item["reviews"]
    assert review["answers"] == {"which_is_better": "B", "how_sure_are_you": 4.0, "why": "It is clearer."}
    assert queue["closed_at"] is not None


def test_hostile_questions_stay_texts(tab: Page, client: Client) -> None:
    bad = "<img src=x onerror=alert(1)>"
    field = {"name": bad, "kind": "label", "labels": [bad], "title": bad}
    body = {
        "project_id": client.project,
        "name": bad,
        "description": bad,
        "form": {"fields": [field], "instructions": bad},
    }
    queue = client.made("/v1/queues", body)["id"]
    trace_id, _ = client.trace(input=bad, output=bad)
    client.post(f"/v1/queues/{queue}/items", {"trace_ids": [trace_id]})
    tab.goto(f"/projects/{client.project}/queues/{queue}")
    tab.locator("input[type=radio]").check()
    tab.get_by_role("button", name="Submit and next").click()
    expect(tab.locator(".reveal b")).to_have_text(bad)
    assert tab.locator("main img").count() == 0
