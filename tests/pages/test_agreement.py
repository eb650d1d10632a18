"""Agreement and settings, in a real browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import Client


@pytest.fixture
def client(demo: Site) -> Iterator[Client]:
    made = demo.client()
    yield made
    made.close()


def reviewed(client: Client, said: list[tuple[str, str]]) -> str:
    """A queue in which two people have said something about each item."""
    body = {"project_id": client.project, "name": "both", "reviewers_per_item": 2}
    queue: str = client.made("/v1/queues", body)["id"]
    ids = [client.trace(input=f"question {n}", output="answer")[0] for n in range(len(said))]
    client.post(f"/v1/queues/{queue}/items", {"trace_ids": ids})
    items = [one["id"] for one in client.get(f"/v1/queues/{queue}/items").body["items"]]
    for item, labels in zip(items, said, strict=True):
        for who, label in zip(("Ana", "Li"), labels, strict=True):
            review = {"annotator": who, "answers": {"label": label}}
            assert client.post(f"/v1/queues/{queue}/items/{item}/review", review).status == 201
    return queue


def test_agreement_says_what_the_api_says_and_is_settled(tab: Page, client: Client) -> None:
    said = [("correct", "correct")] * 5 + [("harmful", "harmful")] * 4 + [("correct", "harmful")]
    queue = reviewed(client, said)
    tab.goto(f"/projects/{client.project}/agreement")
    found = client.get(f"/v1/queues/{queue}/agreement").body
    kappa = found["fields"][0]["pairs"][0]["kappa"]
    shown = f"{kappa['value']:.2f} [{kappa['ci_lower']:.2f}, {kappa['ci_upper']:.2f}]"
    rows = tab.get_by_role("region", name="Agreement per question, table").locator("tbody tr")
    assert shown in " ".join(rows.nth(1).inner_text().split())
    table = tab.get_by_role("region", name=re.compile("Confusion")).locator("tbody tr")
    assert [row.locator("td").all_inner_texts() for row in table.all()] == [["5", "1"], ["0", "4"]]
    tab.get_by_role("link", name="question 9").click()
    expect(tab.locator(".reveal")).to_contain_text("harmful")
    tab.get_by_label("harmful").check()
    tab.get_by_role("button", name="Settle").click()
    expect(tab.get_by_role("status")).to_contain_text("Settled")
    expect(tab.get_by_text("None: whatever was reviewed twice")).to_be_visible()
    assert client.get(f"/v1/queues/{queue}/agreement").body["disagreement_count"] == 0


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_links_and_secrets_are_shown_once(
    browser: Browser, demo: Site, client: Client, scripts: bool
) -> None:
    with open_tab(browser, demo, java_script_enabled=scripts) as tab:
        path = f"/projects/{client.project}/settings"
        tab.goto(path)
        people = tab.locator("section", has=tab.get_by_role("heading", name="People"))
        people.get_by_label("Name").fill("Mara <b>")
        people.get_by_role("button", name="Invite").click()
        link = tab.locator("#link pre").inner_text()
        tab.goto(path)
        assert tab.locator("#link").count() == 0
        assert "Mara <b>" in people.inner_text()
        with open_tab(browser, demo) as other:
            other.context.clear_cookies()
            other.goto(link)
            assert other.url.endswith(f"/projects/{client.project}/queue")
        tab.get_by_role("button", name="Shut out…").click()
        tab.get_by_role("button", name="Shut out", exact=True).click()
        assert "✕ shut out" in people.inner_text()
        tokens = tab.locator("section", has=tab.get_by_role("heading", name="Tokens"))
        tokens.get_by_label("Name").fill("ci")
        tokens.get_by_role("button", name="Make token").click()
        secret = tab.locator("#secret pre").inner_text()
        program = client.again(token=secret)
        assert program.get("/v1/traces", project_id=client.project).status == 200
        tab.goto(path)
        assert secret not in tab.content()
        tab.get_by_role("button", name="Take back…").click()
        tab.get_by_role("button", name="Take back", exact=True).click()
        assert "✕ taken back" in tokens.inner_text()
        assert program.get("/v1/traces", project_id=client.project).status == 401
        program.close()


def test_a_lost_link_is_made_again_and_the_project_is_changed(tab: Page, client: Client) -> None:
    tab.goto(f"/projects/{client.project}/settings")
    people = tab.locator("section", has=tab.get_by_role("heading", name="People"))
    people.get_by_label("Name").fill("Mara")
    people.get_by_role("button", name="Invite").click()
    first = tab.locator("#link pre").inner_text()
    tab.get_by_role("button", name="New link").click()
    assert tab.locator("#link pre").inner_text() != first
    project = tab.locator("section", has=tab.get_by_role("heading", name="Project"))
    project.get_by_label("Name").fill("Renamed")
    project.get_by_label("Days to keep traces").fill("30")
    project.get_by_role("button", name="Change").click()
    expect(tab.get_by_role("status")).to_contain_text("The project is changed.")
    kept = client.get(f"/v1/projects/{client.project}").body
    assert (kept["name"], kept["retain_days"]) == ("Renamed", 30)


def test_only_administrators_see_settings(browser: Browser, demo: Site, client: Client) -> None:
    with open_tab(browser, demo, role="write", scope=client.project, refusals=True) as tab:
        tab.goto(f"/projects/{client.project}/queue")
        assert tab.get_by_role("link", name="Settings").count() == 0
        answer = tab.goto(f"/projects/{client.project}/settings")
        assert answer is not None
        assert answer.status == 403
