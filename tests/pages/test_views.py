"""Saved views in a browser."""

import re

from playwright.sync_api import Browser, Page, expect
from tests.browser import violations
from tests.pages.site import Site, open_tab


def test_a_view_is_saved_opened_and_deleted_by_keyboard(browser: Browser, demo: Site) -> None:
    client = demo.client()
    client.trace(name="fine")
    client.trace(name="broken", error={"message": "no"})
    path = f"/projects/{client.project}/traces"
    with open_tab(browser, demo) as tab:
        tab.goto(f"{path}?errors=1")
        expect(tab.locator("tr.link .go")).to_have_text(["broken"])
        open_views(tab)
        tab.get_by_label("Name", exact=True).fill("Only errors")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("status")).to_contain_text("Saved as “Only errors”")
    # Somebody who only reads, in another browser, sees the same rows; Back goes to where they came from.
    with open_tab(browser, demo, role="read") as tab:
        tab.goto(path)
        expect(tab.locator("tr.link .go")).to_have_count(2)
        open_views(tab)
        expect(tab.get_by_role("button", name="Delete")).to_have_count(0)
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Only errors")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile(f"{path}\\?errors=1$"))
        expect(tab.locator("tr.link .go")).to_have_text(["broken"])
        tab.go_back()
        expect(tab).to_have_url(re.compile(f"{path}$"))
    # The checker is a script of its own, which the policy would refuse.
    with open_tab(browser, demo, bypass_csp=True) as tab:
        tab.goto(path)
        open_views(tab)
        assert violations(tab) == ""
        tab.keyboard.press("Tab")
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("button", name="Delete the view Only errors", exact=True)).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("status")).to_contain_text("was deleted")
        open_views(tab)
        expect(tab.get_by_role("link", name="Only errors")).to_have_count(0)
    client.close()


def open_views(tab: Page) -> None:
    tab.get_by_role("button", name="Views").focus()
    tab.keyboard.press("Enter")
