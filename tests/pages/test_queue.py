"""The plain review queue, in a real browser: cards, the panel, its keys, what reviewers may see."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import Client, span

NOTHING = "Please provide at least a label, correction, or notes"
CHAT = {
    "messages": [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "On its way."},
        {"role": "user", "content": "When will it come?"},
    ]
}


@pytest.fixture
def client(demo: Site) -> Iterator[Client]:
    made = demo.client()
    yield made
    made.close()


def queued(client: Client, *inputs: object, output: object = "The answer.") -> list[str]:
    """Traces t0, t1, … in the queue."""
    for number, given in enumerate(inputs):
        client.spans(span(id="root", trace_id=f"t{number}", name="answer", input=given, output=output))
        assert client.post(f"/v1/traces/t{number}/queue?project_id={client.project}").status == 200
    return [f"t{number}" for number in range(len(inputs))]


def annotations(client: Client, trace_id: str) -> list[dict[str, object]]:
    found = client.get("/v1/annotations", trace_id=trace_id, project_id=client.project).body["items"]
    assert isinstance(found, list)
    return found


def as_person(tab: Page, client: Client, name: str, role: str = "review") -> None:
    """Log the tab in as somebody who was invited."""
    body = {"name": name, "project_id": client.project, "role": role}
    tab.context.clear_cookies()
    tab.goto(client.made("/v1/people", body)["login_path"])


def cards(tab: Page) -> list[str]:
    return tab.locator(".cards .go").all_inner_texts()


def test_cards_say_what_the_contract_asks_for(tab: Page, client: Client) -> None:
    queued(
        client,
        CHAT,
        {"topic": "refund", "amount": 3},
        "plain question",
        output={"text": "Yes.", "sure": True},
    )
    for who in ("Ana", "Li"):
        client.made(
            "/v1/annotations",
            {"trace_id": "t1", "annotator": who, "label": "correct", "project_id": client.project},
        )
    tab.goto(f"/projects/{client.project}/queue")
    first, second, third = tab.locator(".cards li").all_inner_texts()
    assert cards(tab) == ["When will it come?", "topic: refund amount: 3", "plain question"]  # oldest first
    assert "chat format" in first
    assert "pending" in first
    assert "0 reviews" in first
    assert "text: Yes. sure: true" in first  # no JSON in front of a reviewer
    assert "annotated" in second
    assert "2 reviews" in second
    assert "in the queue for" in third
    assert "chat format" not in third
    tabs = tab.get_by_role("navigation", name="Show")
    assert tabs.inner_text().split() == ["All", "3", "Pending", "2", "Annotated", "1", "Mine"]
    tabs.get_by_role("link", name="Pending").click()
    assert cards(tab) == ["When will it come?", "plain question"]
    tabs.get_by_role("link", name="Annotated").click()
    assert cards(tab) == ["topic: refund amount: 3"]
    tabs.get_by_role("link", name="Mine").click()
    assert cards(tab) == []
    tab.get_by_role("navigation", name="Main").get_by_role("link", name="Review queue 2").click()
    assert len(cards(tab)) == 3


def test_the_panel_without_scripts(browser: Browser, demo: Site, client: Client) -> None:
    queued(client, "first", "second", output="Wrong answer.")
    dataset, _ = client.dataset(name="golden")
    with open_tab(browser, demo, java_script_enabled=False, refusals=True) as tab:
        path = f"/projects/{client.project}/queue/t0"
        tab.goto(path)
        assert tab.get_by_label("Correction").input_value() == "Wrong answer."
        assert tab.get_by_text("as Local user").count() == 1
        tab.get_by_role("button", name="Submit").click()  # a correction that is not changed is none
        assert tab.get_by_role("alert").inner_text().endswith(NOTHING)
        assert annotations(client, "t0") == []
        tab.get_by_label("incomplete").check()
        tab.get_by_label("Correction").fill("Right answer.\nIn two lines.")
        tab.get_by_label("Notes").fill("Says too little.")
        tab.get_by_role("button", name="Submit").click()
        assert tab.get_by_role("heading", name="✓ Review saved").count() == 1
        tab.get_by_role("button", name="Save to dataset").click()
        assert "Saved to golden." in tab.get_by_role("status").inner_text()
        tab.get_by_role("link", name="Next ⏎").click()
        assert tab.url.endswith("/queue/t1")
    [made] = annotations(client, "t0")
    assert (made["label"], made["correction"], made["notes"], made["annotator"]) == (
        "incomplete",
        "Right answer.\nIn two lines.",
        "Says too little.",
        "Local user",
    )
    [item] = client.get(f"/v1/datasets/{dataset}/items").body["items"]
    assert (item["input"], item["expected_output"]) == ("first", "Right answer.\nIn two lines.")


def test_the_whole_review_by_keyboard(tab: Page, client: Client) -> None:
    queued(client, "first", "second", "third", output="An answer.")
    tab.goto(f"/projects/{client.project}/queue")
    keys = tab.keyboard
    keys.press("j")
    keys.press("Enter")
    tab.wait_for_url("**/queue/t0")
    assert not tab.locator("#trouble").is_visible()
    keys.press("Enter")  # nothing filled in
    expect(tab.get_by_role("alert")).to_be_visible()
    expect(tab.get_by_role("alert")).to_have_text(f"✕{NOTHING}")
    keys.press("j")
    tab.wait_for_url("**/queue/t1")
    keys.press("k")
    tab.wait_for_url("**/queue/t0")
    keys.press("2")
    expect(tab.get_by_label("hallucination")).to_be_checked()
    keys.press("e")
    keys.press("Control+A")
    keys.type("Better 16 jk.")  # silent while somebody types
    keys.press("Tab")
    keys.type("note")
    tab.get_by_role("heading", level=1).click()
    keys.press("Enter")
    tab.wait_for_url("**/queue/t0?done=*")
    keys.press("Enter")
    tab.wait_for_url("**/queue/t1")
    keys.press("s")  # to the end, in this browser
    tab.wait_for_url("**/queue/t2")
    keys.press("n")
    keys.type("only a note")
    tab.get_by_role("heading", level=1).click()
    keys.press("Enter")
    tab.wait_for_url("**/queue/t2?done=*")
    keys.press("Enter")
    tab.wait_for_url("**/queue/t1")
    [first] = annotations(client, "t0")
    assert (first["label"], first["correction"], first["notes"]) == ("hallucination", "Better 16 jk.", "note")
    [third] = annotations(client, "t2")
    assert (third["label"], third["correction"], third["notes"]) == (None, None, "only a note")
    tab.get_by_role("button", name="Keys").click()
    tab.get_by_label("Single keys do something").uncheck()
    tab.get_by_role("button", name="Close").click()
    tab.evaluate("document.activeElement.blur()")
    keys.press("1")
    expect(tab.locator("input[value=correct]")).not_to_be_checked()


def test_skipped_comes_last_in_this_browser_only(
    browser: Browser, demo: Site, tab: Page, client: Client
) -> None:
    queued(client, "first", "second", "third")
    tab.goto(f"/projects/{client.project}/queue/t0")
    tab.get_by_role("button", name="Skip").click()
    tab.wait_for_url("**/queue/t1")
    tab.goto(f"/projects/{client.project}/queue")
    assert cards(tab) == ["second", "third", "first"]
    assert "skipped" in tab.locator(".cards li").last.inner_text()
    with open_tab(browser, demo) as other:
        other.goto(f"/projects/{client.project}/queue")
        assert cards(other) == ["first", "second", "third"]


def test_leaving_asks_only_when_something_was_typed(tab: Page, client: Client) -> None:
    queued(client, "first", "second")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    tab.on("dialog", stay)
    tab.goto(f"/projects/{client.project}/queue/t0")
    tab.get_by_label("Notes").click()
    tab.get_by_role("link", name="Next").click()
    tab.wait_for_url("**/queue/t1")
    assert asked == []
    tab.get_by_label("Notes").fill("half a thought")
    with tab.context.expect_page() as opened:  # the trace opens beside it
        tab.get_by_role("link", name="Open the trace in a new tab").click()
    opened.value.wait_for_url("**/traces/t1")
    assert tab.get_by_label("Notes").input_value() == "half a thought"
    tab.get_by_role("link", name="Review queue").first.click(no_wait_after=True)
    tab.wait_for_function("true")
    assert asked == ["beforeunload"]
    assert tab.url.endswith("/queue/t1")
    tab.get_by_role("button", name="Submit").click()  # sending it is no leaving
    tab.wait_for_url("**/queue/t1?done=*")
    assert asked == ["beforeunload"]


def test_earlier_reviews_are_shown_and_summarised(tab: Page, client: Client) -> None:
    queued(client, "first")

    def say(who: str, label: str) -> None:
        body = {"trace_id": "t0", "annotator": who, "label": label, "project_id": client.project}
        client.made("/v1/annotations", {**body, "notes": f"note of {who}"})

    path = f"/projects/{client.project}/queue/t0"
    tab.goto(path)
    assert tab.get_by_text("Earlier reviews").count() == 0
    say("Ana", "correct")
    say("Li", "off-topic")
    tab.goto(path)
    assert tab.get_by_text("note of Ana").is_visible()
    say("Bo", "correct")
    tab.goto(path)
    section = tab.locator("section.last")
    assert "2 correct, 1 off-topic" in section.inner_text()
    assert not tab.get_by_text("note of Ana").is_visible()
    section.get_by_text("Show all 3").click()
    assert tab.get_by_text("note of Ana").is_visible()


def test_long_questions_unfold(tab: Page, client: Client) -> None:
    queued(client, "x" * 499 + "END-OF-FIRST" + "y" * 300)
    tab.goto(f"/projects/{client.project}/queue/t0")
    rest = tab.locator("details .prose")
    assert not rest.is_visible()
    tab.get_by_text("Show the other 311 characters").click()
    assert rest.inner_text() == "…ND-OF-FIRST" + "y" * 300


def test_a_reviewer_sees_the_reviewers_pages_alone(browser: Browser, demo: Site, client: Client) -> None:
    queued(client, "first", "second")
    golden, _ = client.dataset(name="golden")
    other = demo.client()
    queued(other, "of others")
    with open_tab(browser, demo, refusals=True) as tab:
        as_person(tab, client, "Mara")
        assert tab.url.endswith(f"/projects/{client.project}/queue")
        main = tab.get_by_role("navigation", name="Main")
        assert main.get_by_role("link", name="Traces").count() == 0
        assert "Mara · review" in main.inner_text()
        tab.get_by_role("link", name="Start reviewing").click()
        assert tab.get_by_role("link", name="Open the trace").count() == 0
        tab.locator("input[value=correct]").check()
        tab.get_by_role("button", name="Submit").click()
        expect(tab.get_by_role("heading", name="✓ Review saved")).to_be_visible()
        # Their own review becomes an item; somebody else's does not, even when the form is sent by hand.
        form = tab.locator("form[action$='/item']")
        saved = str(form.get_attribute("action"))
        tab.get_by_role("button", name="Save to dataset").click()
        assert "Saved to golden." in tab.get_by_role("status").inner_text()
        body = {"trace_id": "t0", "annotator": "Ana", "label": "correct"}
        theirs = client.made("/v1/annotations", {**body, "project_id": client.project})["id"]
        tab.goto(f"/projects/{client.project}/queue/t0?done={theirs}")
        assert tab.get_by_role("button", name="Save to dataset").count() == 0
        form_of_others = saved.rpartition("/annotations/")[0] + f"/annotations/{theirs}/item"
        fields: dict[str, str | float | bool] = {
            "_secret": tab.locator("[name=_secret]").first.input_value(),
            "dataset_id": golden,
        }
        refused = tab.request.post(form_of_others, form=fields, headers={"Sec-Fetch-Site": "same-origin"})
        assert refused.status == 403
        assert client.get(f"/v1/datasets/{golden}").body["item_count"] == 1
        tab.goto("/")
        assert tab.url.endswith(f"/projects/{client.project}/queue")
        tab.get_by_role("link", name="Mine").click()
        assert cards(tab) == ["first"]
        for path, status in (
            (f"/projects/{client.project}/traces/t0", 403),
            (f"/projects/{client.project}/dashboard", 403),
            (f"/projects/{other.project}/queue", 404),
            (f"/projects/{other.project}/queue/t0", 404),
        ):
            answer = tab.goto(path)
            assert answer is not None
            assert answer.status == status
    assert [made["annotator"] for made in annotations(client, "t0")] == ["Mara", "Ana"]
    other.close()


def test_forms_of_another_project_change_nothing(browser: Browser, demo: Site, client: Client) -> None:
    """The project is in the path: who belongs to another one is refused there, whatever the form does."""
    queued(client, "first")
    body = {"project_id": client.project, "name": "rule", "scorer_name": "regex", "config": {"pattern": "x"}}
    rule = client.made("/v1/rules", body)["id"]
    other = demo.client()
    with open_tab(browser, demo, refusals=True) as tab:
        as_person(tab, other, "Mallory", role="write")
        tab.goto(f"/projects/{other.project}/rules")
        secret = tab.locator("[name=_secret]").first.input_value()
        for path in ("queue/t0", "queue/t0/skip", f"rules/{rule}", f"rules/{rule}/delete"):
            answer = tab.request.post(
                f"/projects/{client.project}/{path}",
                form={"_secret": secret, "label": "x", "paused": "true"},
                headers={"origin": demo.url},
            )
            assert answer.status == 404, path
    assert annotations(client, "t0") == []
    assert client.get(f"/v1/rules/{rule}").body["paused"] is False
    other.close()


def test_hostile_texts_stay_texts(tab: Page, client: Client) -> None:
    bad = "<img src=x onerror=alert(1)></textarea><script>alert(2)</script>\"'>{{7*7}}"
    queued(client, bad, output=bad)
    body = {"trace_id": "t0", "annotator": bad, "label": bad, "notes": bad, "correction": bad}
    client.made("/v1/annotations", {**body, "project_id": client.project})
    tab.goto(f"/projects/{client.project}/queue")
    assert cards(tab) == [bad]
    tab.locator(".cards .go").click()
    assert tab.locator(".prose").first.inner_text() == bad
    assert tab.get_by_label("Correction").input_value() == bad
    assert tab.locator("main img, main script").count() == 0
    tab.get_by_label("Or your own label").fill(bad)
    tab.get_by_role("button", name="Submit").click()
    expect(tab.locator("section.side b")).to_have_text(bad)
    assert tab.locator("main img, main script").count() == 0
