"""A/B reports in a browser: an uploaded file, and two experiments chosen as arms."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.ab_rows import worked_example
from tests.pages.site import Site, open_tab

from evenhand.ab import analyze


def test_an_analysis_is_uploaded_shown_and_deleted(browser: Browser, demo: Site, tmp_path: Path) -> None:
    client = demo.client()
    file = tmp_path / "analysis.json"
    file.write_text(analyze(worked_example(), n_resamples=200).to_json())
    with open_tab(browser, demo, refusals=True) as tab:
        tab.goto(f"/projects/{client.project}/ab")
        tab.get_by_label("analysis.json").set_input_files(file)
        tab.get_by_role("button", name="Upload").click()
        expect(tab.get_by_role("status")).to_contain_text("uploaded")
        expect(tab.get_by_role("heading", level=1)).to_have_text("with_tool against without_tool")
        verdict = tab.locator("section.verdict h2")
        expect(verdict).to_be_visible()
        expect(tab.get_by_role("heading", name="Gates")).to_be_visible()
        tab.get_by_role("button", name="Delete…").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(tab.get_by_role("status")).to_contain_text("was deleted")
        file.write_text('{"gates": []}')
        tab.get_by_label("analysis.json").set_input_files(file)
        tab.get_by_role("button", name="Upload").click()
        expect(tab.get_by_text("this is no analysis.json")).to_be_visible()
    client.close()


def test_two_experiments_with_traces_are_arms(tab: Page, demo: Site) -> None:
    tab.goto("/projects/demo/ab")
    tab.get_by_label("Candidate").select_option(label="prompt v4, small model")
    tab.get_by_label("against").select_option(label="prompt v3")
    tab.get_by_role("button", name="Show report").click()
    base, other = demo.compared("small model")
    assert tab.url.endswith(f"/projects/demo/ab/{base}/{other}")
    expect(tab.get_by_role("heading", level=1)).to_have_text("prompt v4, small model against prompt v3")
    expect(tab.get_by_role("heading", name="Paired deltas", exact=True)).to_be_visible()
    tab.get_by_role("link", name="Swap").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("prompt v3 against prompt v4, small model")
