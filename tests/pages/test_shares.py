"""Share links in a browser: made on a page, read by somebody without a session, taken back from the list."""

from playwright.sync_api import Browser, expect
from tests.pages.site import Site, open_tab


def test_a_comparison_is_shared_read_and_taken_back(browser: Browser, demo: Site) -> None:
    base, other = demo.compared("small model")
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/demo/compare/{base}/{other}?show=fell")
        tab.get_by_role("button", name="Share…").focus()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog", name="Share this page?")).to_be_visible()
        tab.get_by_label("Works for").select_option("1 day")
        tab.get_by_role("button", name="Make link").click()
        expect(tab.get_by_role("heading", level=2, name="Link to")).to_be_visible()
        link = tab.locator("#link pre").inner_text()
        assert link.startswith(f"{demo.url}/shared/")
        assert link.endswith("?show=fell")
        tab.goto("/projects/demo/shares")
        assert link not in tab.content()  # shown once

        stranger = browser.new_context()  # no session
        reader = stranger.new_page()
        troubles: list[str] = []
        reader.on("console", lambda message: troubles.append(message.text))
        answer = reader.goto(link)
        assert answer is not None
        assert answer.status == 200
        expect(reader.get_by_role("heading", level=2, name="Worse")).to_be_visible()
        expect(reader.get_by_role("note")).to_contain_text("Shared by Local user")
        assert reader.get_by_role("navigation", name="Main").count() == 0
        hrefs = reader.eval_on_selector_all(
            "a[href]", "links => links.map(link => link.getAttribute('href'))"
        )
        assert hrefs
        assert [href for href in hrefs if not href.startswith(("/shared/", "#"))] == []
        # Filters, open rows and Back work behind the link too.
        fell = reader.locator("table.items tr.link").count()
        reader.locator("table.items tr.link .go").first.click()
        assert reader.locator("tr.detail").count() == 1
        assert reader.get_by_role("link", name="trace").count() == 0
        reader.go_back()
        assert reader.locator("tr.detail").count() == 0
        assert reader.locator("table.items tr.link").count() == fell
        assert troubles == []

        tab.get_by_role("button", name="Take back").first.click()
        expect(tab.get_by_role("status")).to_contain_text("is taken back")
        gone = reader.goto(link)
        assert gone is not None
        assert gone.status == 404
        expect(reader.get_by_text("This link shows nothing")).to_be_visible()
        stranger.close()


def test_spans_of_a_shared_trace_open_without_leaving_it(browser: Browser, demo: Site) -> None:
    link = demo.share("trace", "live-0390")
    context = browser.new_context(base_url=demo.url)
    reader = context.new_page()
    reader.goto(link)
    rows = reader.locator(".tree .nm a:first-of-type")
    name = rows.nth(1).inner_text()
    rows.nth(1).click()
    expect(reader.locator("#span-h")).to_contain_text(name)
    assert reader.url.startswith(f"{demo.url}{link}?span=")
    reader.reload()
    expect(reader.locator("#span-h")).to_contain_text(name)
    context.close()


def test_who_only_reads_cannot_share(browser: Browser, demo: Site) -> None:
    with open_tab(browser, demo, role="read") as tab:
        tab.goto("/projects/demo/traces/live-0390")
        assert tab.get_by_role("button", name="Share…").count() == 0
        assert tab.get_by_role("link", name="Share links").count() == 0
