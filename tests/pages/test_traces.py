"""The list of traces and the page of one, in a real browser."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import Client, span

from evenhand.core.ids import new_id


@pytest.fixture
def client(demo: Site) -> Iterator[Client]:
    made = demo.client()
    yield made
    made.close()


def cells(tab: Page) -> list[list[str]]:
    rows = tab.locator("table.grid-t tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def tree(client: Client, trace_id: str = "t", **root: Any) -> None:
    """A root of 1.2 s with a model call that failed and a call of 340 ms under it."""
    start = datetime(2026, 2, 21, 22, 0, tzinfo=UTC)

    def at(milliseconds: float) -> str:
        return (start + timedelta(milliseconds=milliseconds)).isoformat()

    reply = client.spans(
        span(id="root", trace_id=trace_id, name="answer", start_time=at(0), end_time=at(1200), **root),
        span(
            id="call", trace_id=trace_id, parent_span_id="root", name="ask model", start_time=at(100),
            end_time=at(440), model="m-large", tokens_input=1000, tokens_output=234, input="hello",
            error={"message": "boom", "type": "Timeout", "stack": "File x\nline y"},
        ),
        span(id="leaf", trace_id=trace_id, parent_span_id="call", name="leaf", start_time=at(200), end_time=at(201)),
    )  # fmt: skip
    assert reply.status == 201, reply.raw


def test_a_row_says_what_the_contract_asks_for(tab: Page, client: Client) -> None:
    tree(client, input="q", metadata={"channel": "web"})
    client.trace(name="n" * 80)
    client.spans(span(id="x", trace_id="partial", parent_span_id="missing", name="child"))
    tab.goto(f"/projects/{client.project}/traces")
    assert cells(tab)[0][0] == "— root span not here yet"
    assert cells(tab)[1][0] == "n" * 59 + "…"  # 60 characters
    name, error, spans, took, tokens, model, queue, age = cells(tab)[2]
    assert (name, error, spans, took) == ("answer", "✕ error", "3", "1.2s")
    assert (tokens, model, queue.split(":")[0].strip()) == ("1,234 tok", "m-large", "Add to queue")
    assert re.fullmatch(r"\d+ (s|min)", age)
    tab.get_by_role("link", name="answer", exact=True).click()
    assert tab.get_by_role("heading", level=1).inner_text().startswith("answer")


def test_the_model_is_the_roots_else_the_most_common(tab: Page, client: Client) -> None:
    for trace_id, root in (("with", {"model": "root-model"}), ("without", {})):
        children = [
            span(id=f"c{n}", trace_id=trace_id, parent_span_id="root", model=model)
            for n, model in enumerate(["rare", "common", "common"])
        ]
        client.spans(*children, span(id="root", trace_id=trace_id, name=trace_id, **root))
    tab.goto(f"/projects/{client.project}/traces")
    assert {row[0]: row[5] for row in cells(tab)} == {"without": "common", "with": "root-model"}


def test_filters_are_in_the_address_and_back_restores_them(browser: Browser, tab: Page, demo: Site) -> None:
    tab.goto("/projects/demo/traces")
    everything = cells(tab)
    tab.get_by_role("link", name="✕ Errors").click()
    tab.get_by_role("link", name="7 d", exact=True).click()
    assert "errors=1" in tab.url
    assert "h=168" in tab.url
    wrong = cells(tab)
    assert {row[1] for row in wrong} == {"✕ error"}
    tab.get_by_label("Metadata key").fill("channel")
    tab.get_by_label("equals").fill("e-mail")
    tab.get_by_role("button", name="Filter").click()
    assert "key=channel&value=e-mail" in tab.url
    mailed, address = cells(tab), tab.url
    assert 0 < len(mailed) < len(wrong)
    with open_tab(browser, demo) as fresh:  # a copied address shows the same rows to somebody else
        fresh.goto(address)
        assert [row[:6] for row in cells(fresh)] == [row[:6] for row in mailed]
    tab.go_back()
    assert [row[:6] for row in cells(tab)] == [row[:6] for row in wrong]
    tab.go_back()
    tab.go_back()
    assert [row[:6] for row in cells(tab)] == [row[:6] for row in everything]


def test_pages_of_the_list_leave_nothing_out(tab: Page, demo: Site) -> None:
    client = demo.client("demo")
    wanted = [
        trace["id"] for trace in client.pages("/v1/traces", project_id="demo", has_error="true", limit=200)
    ]
    client.close()
    tab.goto("/projects/demo/traces?errors=1")
    found: list[str] = []
    while True:
        links = tab.locator("table.grid-t .go").all()
        found += [re.findall(r"/traces/([^?]+)", link.get_attribute("href") or "")[0] for link in links]
        older = tab.get_by_role("link", name="Older")
        if not older.count():
            break
        older.click()
        tab.wait_for_url("**cursor=**")
    assert found == wanted


def test_an_own_range_and_hours(tab: Page, demo: Site) -> None:
    client = demo.client("demo")
    for hours in (1, 6, 24, 168):
        after = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        wanted = list(client.pages("/v1/traces", project_id="demo", after=after, limit=200))
        tab.goto(f"/projects/demo/traces?h={hours}")
        assert len(cells(tab)) == min(50, len(wanted))
    client.close()
    tab.goto("/projects/demo/traces")
    tab.get_by_text("Own range").click()
    tab.get_by_label("From").fill("2020-01-01T00:00:00")
    tab.get_by_label("to, in UTC").fill("2020-01-02T00:00:00")
    tab.get_by_role("button", name="Apply").click()
    expect(tab.get_by_text("No trace matches.")).to_be_visible()


def test_exports_are_the_table_on_screen(tab: Page, demo: Site) -> None:
    tab.goto("/projects/demo/traces?errors=1&h=168")
    shown = cells(tab)
    with tab.expect_download() as started:
        tab.get_by_role("link", name="CSV").click()
    head, *lines = csv.reader(io.StringIO(started.value.path().read_text()))
    assert head == ["Root span", "Errors", "Spans", "Duration", "Tokens", "Model", "Queue", "Age"]
    assert [line[2] for line in lines] == [row[2].replace(",", "") for row in shown]
    with tab.expect_download() as started:
        tab.get_by_role("link", name="JSON").click()
    records = json.loads(started.value.path().read_text())
    assert [one["Root span"] for one in records] == [line[0] for line in lines]
    assert all(isinstance(one["Duration"], float) for one in records)


def test_text_that_a_spreadsheet_would_run_is_text(demo: Site, client: Client, tab: Page) -> None:
    client.trace(name="=HYPERLINK(1)")
    tab.goto(f"/projects/{client.project}/traces")
    with tab.expect_download() as started:
        tab.get_by_role("link", name="CSV").click()
    assert "'=HYPERLINK(1)" in started.value.path().read_text()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_the_queue_from_list_and_page(browser: Browser, demo: Site, client: Client, scripts: bool) -> None:
    tree(client, "one")
    tree(client, "two")
    with open_tab(browser, demo, java_script_enabled=scripts) as tab:
        tab.goto(f"/projects/{client.project}/traces?h=24")
        tab.get_by_role("button", name="Add to queue").first.click()
        expect(tab.get_by_role("status").first).to_contain_text("Added to the review queue.")
        assert tab.url.endswith("/traces?h=24")
        assert [row[6].split(":")[0].strip() for row in cells(tab)] == ["✓ in queue", "Add to queue"]
        tab.reload()  # what was done is said once
        assert "Added" not in tab.locator("body").inner_text()
        tab.goto(f"/projects/{client.project}/traces/one")
        tab.get_by_role("button", name="Add to queue").click()
        expect(tab.get_by_role("button", name="In queue")).to_be_disabled()
    queued = client.get("/v1/queue", project_id=client.project).body["items"]
    assert [item["trace_id"] for item in queued] == ["two", "one"]


def test_readers_see_and_cannot_change(browser: Browser, demo: Site, client: Client) -> None:
    tree(client)
    with open_tab(browser, demo, role="read", scope=client.project) as tab:
        tab.goto(f"/projects/{client.project}/traces/t")
        assert tab.get_by_role("button", name="Delete…").count() == 0
        assert tab.get_by_role("button", name="Add to queue").count() == 0
        assert tab.get_by_role("button", name="Save annotation").count() == 0


def test_the_tree_and_the_selected_span(tab: Page, client: Client) -> None:
    tree(client, input="q", output={"a": [1, None]}, metadata={"channel": "web", "n": 3})
    path = f"/projects/{client.project}/traces/t"
    tab.goto(path)
    rows = tab.locator(".tree li")
    assert [row.locator("a").first.inner_text() for row in rows.all()] == ["answer", "ask model", "leaf"]
    assert [row.get_attribute("class") for row in rows.all()] == ["at d0", "d1", "d2"]
    assert rows.nth(1).locator(".badge").inner_text().split() == ["✕", "error"]
    panel = tab.locator("#span")
    assert "channel" in panel.inner_text()
    assert '"a"' in panel.inner_text()
    panel.get_by_role("link", name="Plain text of the output").click()
    expect(panel).to_contain_text('{\n  "a": [\n    1,\n    null')
    assert "out=text" in tab.url
    rows.nth(1).locator("a").first.click()
    expect(panel).to_contain_text("Timeout")
    assert "span=call" in tab.url
    said = panel.inner_text()
    for shown in ("ask model", "340ms", "m-large", "1,000 · 234", "hello", "boom", "line y"):
        assert shown in said
    tab.go_back()
    expect(panel.get_by_role("heading", level=2)).to_contain_text("answer")
    tab.goto(f"{path}?span=call")  # a link to a span opens it, also for somebody else
    expect(panel).to_contain_text("boom")
    assert tab.get_by_text("With 1 span under it").count() == 1


def test_without_scripts_spans_open_too(browser: Browser, demo: Site, client: Client) -> None:
    tree(client)
    with open_tab(browser, demo, java_script_enabled=False) as tab:
        tab.goto(f"/projects/{client.project}/traces/t")
        tab.locator(".tree li").nth(1).locator("a").first.click()
        assert "boom" in tab.locator("#span").inner_text()
        tab.get_by_role("link", name="Collapse all").click()
        assert tab.locator(".tree li").count() == 2
        tab.get_by_role("link", name="▸ 1 more").click()
        assert tab.locator(".tree li").count() == 2  # the call and its leaf
        tab.get_by_role("link", name="Open all").click()
        assert tab.locator(".tree li").count() == 3


def test_delete_asks_first(browser: Browser, demo: Site, client: Client) -> None:
    tree(client)
    with open_tab(browser, demo, java_script_enabled=False) as tab:
        tab.goto(f"/projects/{client.project}/traces/t")
        tab.get_by_role("button", name="Delete…").click()
        tab.get_by_role("button", name="Cancel").click()
        assert client.get("/v1/traces/t", project_id=client.project).status == 200
        tab.get_by_role("button", name="Delete…").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        assert tab.url.endswith("/traces")
        assert "Trace t deleted." in tab.locator("body").inner_text()
    assert client.get("/v1/traces/t", project_id=client.project).status == 404


def test_an_annotation_becomes_a_dataset_item(tab: Page, client: Client) -> None:
    tree(client, input="What?", output="That.")
    dataset, _ = client.dataset(name="golden")
    tab.goto(f"/projects/{client.project}/traces/t")
    tab.get_by_label("Label").fill("incomplete")
    tab.get_by_label("Correction").fill("This.")
    tab.get_by_label("Notes").fill("Says too little.")
    tab.get_by_role("button", name="Save annotation").click()
    said = tab.locator("section.late").inner_text()
    for shown in ("Local user", "incomplete", "This.", "Says too little."):
        assert shown in said
    tab.get_by_role("button", name="Save as dataset item").click()
    expect(tab.get_by_role("status").first).to_contain_text("the dataset has a new version")
    [item] = client.get(f"/v1/datasets/{dataset}/items").body["items"]
    assert (item["input"], item["expected_output"]) == ("What?", "This.")
    assert item["metadata"]["source_trace_id"] == "t"


def test_an_empty_annotation_is_refused(browser: Browser, demo: Site, client: Client) -> None:
    tree(client)
    with open_tab(browser, demo, refusals=True) as tab:
        tab.goto(f"/projects/{client.project}/traces/t")
        tab.get_by_role("button", name="Save annotation").click()
        expect(tab.locator("main")).to_contain_text("Please provide at least a label, correction, or notes")
    assert client.get("/v1/annotations", trace_id="t", project_id=client.project).body["items"] == []


def test_a_partial_trace_says_so(tab: Page, client: Client) -> None:
    client.spans(span(id="x", trace_id="partial", parent_span_id="missing", name="child"))
    tab.goto(f"/projects/{client.project}/traces/partial")
    expect(tab.locator(".banner")).to_contain_text("Spans may still be arriving")
    assert tab.get_by_role("heading", level=1).inner_text() == "—"
    assert tab.locator(".slim .mid").first.inner_text() == "—"
    assert tab.locator(".tree li").count() == 1


def test_newer_and_older_follow_the_list_with_its_filters(tab: Page, client: Client) -> None:
    for number in range(5):
        tree(client, f"t{number}") if number % 2 else client.trace(trace_id=f"t{number}", name="fine")
    tab.goto(f"/projects/{client.project}/traces?errors=1")
    tab.locator("table.grid-t .go").first.click()  # t3; t4 is fine
    assert tab.get_by_role("link", name="Newer").count() == 0
    tab.get_by_role("link", name="Older").click()
    tab.wait_for_url("**/traces/t1?**")
    assert tab.get_by_role("link", name="Older").count() == 0
    tab.keyboard.press("p")
    tab.wait_for_url("**/traces/t3?**")
    tab.get_by_label("Breadcrumb").get_by_role("link").click()
    assert tab.url.endswith("/traces?errors=1")


def test_values_of_every_kind(tab: Page, client: Client) -> None:
    chat = {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "reply"},
            {"role": "user", "content": [{"type": "text", "text": "last question"}]},
        ]
    }
    long = "x" * 11_000
    for number, (given, written) in enumerate(
        [(chat, None), (long, 0.25), ({"deep": {"a": {"b": {"c": 1}}}}, True)]
    ):
        client.trace(trace_id=f"v{number}", input=given, output=written)
    path = f"/projects/{client.project}/traces"
    tab.goto(f"{path}/v0")
    panel = tab.locator("#span")
    assert "chat format" in panel.inner_text()
    assert "last question" in panel.inner_text()
    assert not panel.get_by_text("reply").is_visible()
    panel.get_by_text("2 earlier messages").click()
    assert panel.get_by_text("reply").is_visible()
    assert "—" in panel.locator(".sec").nth(1).inner_text()  # no output
    tab.goto(f"{path}/v1")
    assert "The first 2 KB of 11 KB." in panel.inner_text()
    assert len(panel.locator("pre").inner_text()) < 2_100
    panel.get_by_role("link", name="Load full content").click()
    assert long in panel.inner_text()
    assert "0.25" in panel.inner_text()
    with tab.expect_download() as started:
        tab.goto(f"{path}/v1")
        panel.get_by_role("link", name="Download").click()
    assert json.loads(started.value.path().read_text()) == long
    tab.goto(f"{path}/v2")
    assert "true" in panel.inner_text()
    assert panel.locator(".tree-json details").count() == 4


def test_markdown_only_on_request_and_harmless(tab: Page, client: Client) -> None:
    text = "# Title\n\n**bold** [link](javascript:alert(1)) ![x](http://evil.example/x.png) <b onclick=alert(1)>b</b>"
    client.trace(trace_id="md", input=text, output="plain")
    tab.goto(f"/projects/{client.project}/traces/md")
    panel = tab.locator("#span")
    assert "**bold**" in panel.inner_text()  # as it came
    panel.get_by_role("link", name="Markdown of the input").click()
    expect(panel.locator(".md strong")).to_have_text("bold")
    assert panel.locator(".md a, .md img, .md [onclick]").count() == 0


def test_a_large_trace_is_sent_in_parts(tab: Page, client: Client) -> None:
    """7,002 spans: those nearest to the root, the rest on demand; a trace of 4,000 is sent whole, in blocks of 100."""
    trace_id = new_id()

    def send(parent: str, count: int, prefix: str) -> None:
        made = [
            span(id=f"{prefix}{n}", trace_id=trace_id, parent_span_id=parent, name=f"{prefix}{n}")
            for n in range(count)
        ]
        assert client.spans(*made).status == 201

    client.spans(span(id="root", trace_id=trace_id, name="root"))
    send("root", 4000, "a")
    send("a7", 3001, "b")
    tab.goto(f"/projects/{client.project}/traces/{trace_id}")
    assert tab.locator(".tree li").count() == 4001
    assert tab.locator(".tree .block").count() == 41
    assert tab.evaluate("getComputedStyle(document.querySelector('.block')).contentVisibility") == "auto"
    expect(tab.get_by_text("4,001 of 7,002")).to_be_visible()
    tab.get_by_role("link", name="▸ 3,001 more").click()
    expect(tab.locator(".tree li")).to_have_count(3002)
    tab.goto(f"/projects/{client.project}/traces/{trace_id}?span=b2999")  # a span that is not shown opens too
    assert tab.locator("#span").get_by_role("heading", level=2).inner_text().startswith("b2999")
