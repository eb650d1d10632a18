"""Pages that show work under way follow it: one stream per browser, nothing disturbed."""

import re

from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import Client

SLOW = 30_000
"""Milliseconds: a page follows within seconds, on a busy machine later."""


def running_experiment(client: Client, items: int = 6) -> tuple[str, list[str]]:
    """An experiment with one run, and the items that it has not run yet."""
    dataset, ids = client.dataset([f"question {n}" for n in range(items)])
    experiment = client.experiment(dataset, name="under way")
    add(client, experiment, ids[0])
    return experiment, ids[1:]


def add(client: Client, experiment: str, item: str) -> None:
    score = {"scorer_name": "s", "value": 0.5}
    client.runs(experiment, [{"dataset_item_id": item, "output": "answer", "scores": [score]}])


def streams_open(site: Site) -> int:
    page = site.service.raw("GET", "/metrics").body.decode()
    return int(re.findall(r"^evenhand_streams_open (\d+)", page, re.MULTILINE)[0])


def test_runs_appear_and_the_focus_stays(browser: Browser, demo: Site) -> None:
    client = demo.client()
    experiment, left = running_experiment(client)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/experiments/{experiment}")
        expect(tab.get_by_text("1 / 6 runs")).to_be_visible()
        link = tab.locator("tr.link a.go").first
        link.focus()
        tab.evaluate("window.kept = document.activeElement")
        tab.evaluate("scrollTo(0, 40)")
        add(client, experiment, left[0])
        expect(tab.get_by_text("2 / 6 runs")).to_be_visible(timeout=SLOW)
        assert tab.locator("tr.link").count() == 2
        assert tab.evaluate("document.activeElement === window.kept && window.kept.isConnected")
        # The last run completes it: the page says so, and follows nothing any more.
        for item in left[1:]:
            add(client, experiment, item)
        expect(tab.get_by_text("✓ completed")).to_be_visible(timeout=SLOW)
        assert tab.locator("main[data-live]").count() == 0
        tab.wait_for_function("!document.querySelector('main[data-live]')")
    client.close()


def test_nothing_changes_under_somebody_who_types(browser: Browser, demo: Site) -> None:
    client = demo.client()
    experiment, left = running_experiment(client)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/experiments/{experiment}")
        field = tab.get_by_label("from")
        field.focus()
        tab.keyboard.type("0.2")
        add(client, experiment, left[0])
        expect(tab.locator("html.behind")).to_have_count(1, timeout=SLOW)
        expect(tab.get_by_role("link", name="Reload")).to_be_visible()
        assert field.input_value() == "0.2"
        expect(tab.get_by_text("1 / 6 runs")).to_be_visible()
        field.fill("")
        tab.get_by_role("heading", level=1).click()  # nobody types any more
        tab.evaluate("document.activeElement.blur()")
        expect(tab.get_by_text("2 / 6 runs")).to_be_visible(timeout=SLOW)
        assert tab.locator("html.behind").count() == 0
    client.close()


def open_on(context: BrowserContext, path: str) -> Page:
    tab = context.new_page()
    tab.goto(path)
    return tab


def test_seven_tabs_share_one_stream_and_the_eighth_loads(browser: Browser, demo: Site) -> None:
    client = demo.client()
    experiment, left = running_experiment(client)
    path = f"/projects/{client.project}/experiments/{experiment}"
    context = browser.new_context(base_url=demo.url)
    demo.log_in(context)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url) if "/live?" in request.url else None)
    tabs = [open_on(context, path) for _ in range(7)]
    eighth = open_on(context, "/projects/demo/traces")
    expect(eighth.get_by_role("heading", level=1, name="Traces")).to_be_visible()
    add(client, experiment, left[0])
    for tab in tabs:
        expect(tab.get_by_text("2 / 6 runs")).to_be_visible(timeout=SLOW)
    assert streams_open(demo) == 1
    # The tab that holds the stream goes: another one takes over.
    tabs[0].close()
    add(client, experiment, left[1])
    for tab in tabs[1:]:
        expect(tab.get_by_text("3 / 6 runs")).to_be_visible(timeout=SLOW)
    assert streams_open(demo) == 1
    assert len(asked) == 2, asked
    context.close()
    client.close()


def test_a_tab_of_another_project_is_told_through_the_same_stream(browser: Browser, demo: Site) -> None:
    clients = [demo.client(), demo.client()]
    found = [running_experiment(client) for client in clients]
    context = browser.new_context(base_url=demo.url)
    demo.log_in(context)
    tabs = [open_on(context, f"/projects/{client.project}/experiments") for client in clients]
    for client, (experiment, left), tab in zip(clients, found, tabs, strict=True):
        add(client, experiment, left[0])
        expect(tab.get_by_text("2 / 6")).to_be_visible(timeout=SLOW)
    assert streams_open(demo) == 1
    context.close()
    for client in clients:
        client.close()


def test_a_hidden_tab_holds_no_stream(browser: Browser, demo: Site) -> None:
    client = demo.client()
    experiment, left = running_experiment(client)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/experiments/{experiment}")
        expect(tab.locator("html.follows")).to_have_count(1)
        hide = (
            "hidden => {Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
            " document.dispatchEvent(new Event('visibilitychange'))}"
        )
        tab.evaluate(hide, True)
        for _ in range(300):
            if streams_open(demo) == 0:
                break
            tab.wait_for_timeout(100)
        assert streams_open(demo) == 0
        add(client, experiment, left[0])
        tab.evaluate(hide, False)
        expect(tab.get_by_text("2 / 6 runs")).to_be_visible(timeout=SLOW)
    client.close()


def test_a_running_comparison_gives_no_verdict_and_no_interval(browser: Browser, demo: Site) -> None:
    client = demo.client()
    dataset, items = client.dataset([f"question {n}" for n in range(8)])
    base = client.experiment(dataset, name="base")
    for item in items:
        add(client, base, item)
    other = client.experiment(dataset, name="other")
    for item in items[:6]:
        add(client, other, item)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/compare/{base}/{other}")
        expect(tab.get_by_role("heading", level=2, name="Still running")).to_be_visible()
        evidence = tab.locator("table.evid tbody tr").first
        expect(evidence).to_contain_text("No interval before both are complete")
        assert "[" not in evidence.inner_text()
        for item in items[6:]:
            add(client, other, item)
        expect(tab.get_by_role("heading", level=2, name="Still running")).to_have_count(0, timeout=SLOW)
        assert "[" in evidence.inner_text()
    client.close()
