"""Saved views in a browser."""

from playwright.sync_api import Browser, expect
from tests.pages.site import Site, open_tab


def test_a_view_is_saved_opened_and_deleted_by_keyboard(browser: Browser, demo: Site) -> None:
    with open_tab(browser, demo) as tab:
        tab.goto("/projects/demo/traces?errors=1")
        rows = tab.locator("tr.link .go").all_inner_texts()
        tab.get_by_role("button", name="Views").focus()
        tab.keyboard.press("Enter")
        tab.get_by_label("Name", exact=True).fill("Only errors")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("status")).to_contain_text("Saved as “Only errors”")
    # Somebody else, in another browser, opens it and sees the same rows; Back goes to where they came from.
    with open_tab(browser, demo, role="read") as tab:
        tab.goto("/projects/demo/traces")
        tab.get_by_role("button", name="Views").click()
        tab.get_by_role("link", name="Only errors").click()
        assert tab.url.endswith("/projects/demo/traces?errors=1")
        assert tab.locator("tr.link .go").all_inner_texts() == rows
        tab.go_back()
        assert tab.url.endswith("/projects/demo/traces")
    with open_tab(browser, demo) as tab:
        tab.goto("/projects/demo/traces")
        tab.get_by_role("button", name="Views").click()
        tab.get_by_role("button", name="Delete: Only errors").click()
        expect(tab.get_by_role("status")).to_contain_text("was deleted")
