"""The dashboard and the smaller pages beside it."""

import re

from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import span


def test_numbers_are_those_of_the_api(tab: Page, demo: Site) -> None:
    client = demo.client("demo")
    summary = client.get("/v1/projects/demo/summary").body
    tab.goto("/projects/demo/dashboard")
    shown = tab.locator(".tiles").inner_text()
    day = summary["traces"]["last_24h"]
    assert f"{day['count']:,}" in tab.locator(".big").nth(0).inner_text()
    assert (
        tab.locator(".big")
        .nth(1)
        .inner_text()
        .startswith(f"{100 * day['error_rate']:.1f}".rstrip("0").rstrip("."))
    )
    assert f"{day['avg_duration_ms'] / 1000:.1f}s" in shown
    assert f"{summary['queue']['pending_count']}" in tab.locator(".big").nth(3).inner_text()
    newest = summary["experiments"]["most_recent_completed"]
    table = tab.get_by_role("region", name="Newest experiment").inner_text()
    for name, mean in newest["mean_scores"].items():
        assert name in table
        assert f"{mean:.3f}" in table
    client.close()


def test_one_error_of_three_is_33_per_cent(tab: Page, demo: Site) -> None:
    client = demo.client()
    for number in range(3):
        client.spans(span(trace_id=f"t{number}", **({"error": {"message": "x"}} if number == 0 else {})))
    tab.goto(f"/projects/{client.project}/dashboard")
    assert tab.locator(".big").nth(1).inner_text().startswith("33.3 %")
    client.close()


def test_gaps_stay_gaps(tab: Page) -> None:
    """The demonstration's judge was down for two days: hatched and named, not zero."""
    tab.goto("/projects/demo/dashboard?scorer=helpfulness")
    picture = tab.locator("svg.picture").first
    assert "nothing scored" in picture.inner_html()
    told = picture.locator("desc").inner_html()
    assert told.count(": nothing") >= 1
    assert ": 0.00" not in told


def test_datasets_latest_change_first(tab: Page) -> None:
    tab.goto("/projects/demo/dashboard")
    rows = (
        tab.get_by_role("region", name="Datasets, latest change first, table")
        .locator("tbody tr")
        .all_inner_texts()
    )
    assert [re.split(r"\s", row)[0] for row in rows] == ["late-deliveries", "support-faq"]


def test_a_conversation_is_read_as_one(tab: Page, demo: Site) -> None:
    client = demo.client()
    for number, text in enumerate(("first question", "second question")):
        client.spans(
            span(
                trace_id=f"s{number}",
                session_id="talk/1",
                user_id="jonas",
                input=text,
                output=f"answer {number}",
            )
        )
    tab.goto(f"/projects/{client.project}/sessions")
    tab.get_by_role("link", name="talk/1").click()
    said = tab.locator("section").first.inner_text()
    assert said.index("first question") < said.index("answer 0") < said.index("second question")
    tab.get_by_role("link", name="answer").first.click()
    tab.get_by_role("link", name="talk/1").click()  # and back from the trace
    assert tab.get_by_role("heading", level=1).inner_text() == "talk/1"
    client.close()


def test_a_failed_job_says_why_and_is_tried_again(tab: Page, demo: Site) -> None:
    tab.goto("/projects/demo/jobs?status=failed")
    expect(tab.get_by_text("The reply holds no number from 1 to 5.").first).to_be_visible()
    tab.goto("/projects/demo/jobs?status=pending")
    expect(tab.get_by_text("No job is pending.")).to_be_visible()


def test_rules_are_made_paused_changed_backfilled_and_deleted(browser: Browser, demo: Site) -> None:
    client = demo.client()
    client.spans(span(trace_id="t", name="answer", output="a refund"))
    with open_tab(browser, demo, java_script_enabled=False, refusals=True) as tab:
        tab.goto(f"/projects/{client.project}/rules")
        tab.get_by_label("Name", exact=True).fill("money")
        tab.get_by_label("Scorer").select_option("regex")
        tab.get_by_label("Share of traces").fill("50")
        tab.get_by_label("Only spans named").fill("answer")
        tab.get_by_label("Parameters").fill('{"pattern": "refund"}')
        tab.get_by_role("button", name="Make rule").click()
        [rule] = client.get("/v1/rules", project_id=client.project).body["items"]
        assert (rule["name"], rule["sample_rate"], rule["filter"]["name"]) == ("money", 0.5, "answer")
        assert "spans named answer" in tab.locator("main").inner_text()
        tab.get_by_role("button", name="Pause").click()
        assert client.get(f"/v1/rules/{rule['id']}").body["paused"] is True
        tab.get_by_role("button", name="Go on").click()
        tab.get_by_label("Rate, in per cent").fill("100")
        tab.get_by_role("button", name="Change").click()
        changed = client.get(f"/v1/rules/{rule['id']}").body
        assert (changed["paused"], changed["sample_rate"]) == (False, 1.0)
        tab.get_by_role("button", name="Backfill…").click()
        tab.get_by_role("dialog").get_by_role("button", name="Backfill").click()
        assert len(client.get(f"/v1/rules/{rule['id']}/backfills").body["items"]) == 1
        tab.get_by_role("button", name="Delete…").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        assert client.get("/v1/rules", project_id=client.project).body["items"] == []
        # What the scorer does not take is refused with its own words.
        tab.get_by_label("Name", exact=True).fill("bad")
        tab.get_by_label("Parameters").fill('{"pattern": "("}')
        tab.get_by_role("button", name="Make rule").click()
        assert "This cannot be done" in tab.locator("h1").inner_text()
    assert client.get("/v1/rules", project_id=client.project).body["items"] == []
    client.close()


def test_another_projects_pages_are_not_found(browser: Browser, demo: Site) -> None:
    client = demo.client()
    with open_tab(browser, demo, role="admin", scope=client.project) as tab:
        for page in ("dashboard", "traces", "sessions", "jobs", "rules", "traces/live-0001"):
            answer = tab.request.get(f"/projects/demo/{page}")
            assert answer.status == 404, page
        tab.goto("/")
        assert tab.url.endswith(f"/projects/{client.project}/dashboard")  # the only one: chosen by itself
    client.close()


def test_search_finds_words_of_any_language(tab: Page, demo: Site) -> None:
    client = demo.client()
    for number, text in enumerate(["退款政策是什么？", "أين طلبي السريع", "Where is my REFUND?"]):
        client.spans(
            span(
                trace_id=f"t{number}",
                name=f"ask {number}",
                input={"messages": [{"role": "user", "content": text}]},
            )
        )
    for asked, wanted in (("退款", "ask 0"), ("طلبي", "ask 1"), ("refund where", "ask 2")):
        tab.goto(f"/projects/{client.project}/search")
        tab.get_by_label("Words").fill(asked)
        tab.get_by_role("button", name="Search").click()
        rows = tab.locator("table.grid-t tbody tr")
        expect(rows).to_have_count(1)
        tab.get_by_role("link", name=wanted).click()
        expect(tab.locator("#span")).to_contain_text(wanted)
    tab.goto(f"/projects/{client.project}/search?q=nowhere")
    expect(tab.get_by_text("Nothing found.")).to_be_visible()
    client.close()
