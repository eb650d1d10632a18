"""A newcomer with the demonstration: from the dashboard to the regression, its trace, an annotation and a new version."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service import running_service

from evenhand.server.demo import fill


def test_from_the_link_to_a_new_dataset_version_in_under_ten_clicks(browser: Browser, tmp_path: Path) -> None:
    # A demonstration of its own: it is changed.
    with running_service(f"sqlite:///{tmp_path / 'demo.db'}") as service:
        service.database.write_now(fill)
        site = Site(service)
        with open_tab(browser, site) as tab:
            assert walk(tab, site) < 10


def walk(tab: Page, demo: Site) -> int:
    """The number of clicks."""
    clicks = 0

    def click(name: str, role: str = "link", *, within: str = "body", first: bool = True) -> None:
        nonlocal clicks
        clicks += 1
        found = tab.locator(within).get_by_role(role, name=re.compile(name))  # type: ignore[arg-type]  # link or button
        (found.first if first else found).click()

    client = demo.client("demo")
    before = {one["name"]: one["version"] for one in client.pages("/v1/datasets", project_id="demo")}
    tab.goto("/projects/demo/dashboard")  # what the printed link opens
    click("^Experiments$", within=".rail")
    for name in ("prompt v3", "prompt v4, small model"):
        tab.get_by_label(f"Pick {name}").check()
        clicks += 1
    click("^Compare", "button")
    expect(tab.locator(".verdict")).to_be_visible()
    assert (
        "worse" in tab.locator(".verdict").inner_text().lower()
        or "block" in tab.locator(".verdict").inner_text().lower()
    )
    traces = tab.locator("main a[href*='/traces/run-model-']")
    if not traces.count():  # the row of the item that fell most opens to its answers and traces
        tab.locator("main tr.link .go").first.click()
        clicks += 1
        expect(traces.first).to_be_attached()
    traces.first.click()
    clicks += 1
    tab.wait_for_url("**/traces/run-model-**")
    tab.get_by_label("Label").fill("hallucination")
    tab.get_by_label("Correction").fill("What the policy says.")
    click("Save annotation", "button")
    tab.get_by_label("Dataset").first.select_option(label="support-faq")
    click("Save as dataset item", "button")
    expect(tab.get_by_role("status").first).to_contain_text("new version")
    click("^Datasets$", within=".rail")
    expect(tab.locator("main")).to_contain_text(f"v{before['support-faq'] + 1}")
    client.close()
    return clicks
