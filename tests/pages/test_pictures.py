"""Every kind of picture is on a page, drawn under the content-security policy, with its content in words."""

import pytest
from playwright.sync_api import Browser
from tests.pages.every_page import PAGES
from tests.pages.site import Site, open_tab

KINDS = {
    "score over time with bands": ("dashboard", "per day with its 95 % interval"),
    "error rate over time": ("dashboard", "Error rate per day"),
    "latency distribution": ("dashboard", "Duration of the newest traces"),
    "token distribution": ("dashboard", "Tokens of the newest traces"),
    "cost distribution": ("dashboard", "Cost of the newest traces"),
    "histogram of scores": ("experiment", "by item"),
    "forest plot": ("comparison", "exact_match"),
    "paired differences": ("comparison", "difference by item"),
    "categories with intervals": ("comparison", "delivery"),
    "calibration": ("scorer", "what people say by what the judge says"),
    "versions over time": ("scorer", "a line for each version"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_there_in_light_and_dark_and_in_words(browser: Browser, demo: Site, kind: str) -> None:
    page, name = KINDS[kind]
    with open_tab(browser, demo) as tab:  # fails on any message of the policy
        tab.goto(PAGES[page](demo))
        picture = tab.locator("svg.picture[role=img]", has=tab.locator("title", has_text=name)).first
        colours = set()
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            shape = picture.locator("line, rect, circle").last
            colours.add(
                shape.evaluate("one => getComputedStyle(one).stroke + ' ' + getComputedStyle(one).fill")
            )
        assert len(colours) == 2, colours  # another one in the dark, and not plain black in both
        assert any(letter.isdigit() for letter in picture.locator("desc").first.text_content() or "")
        assert picture.evaluate("one => one.querySelectorAll('[style]').length") == 0
