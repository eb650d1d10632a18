"""The report page, in a real browser: it asks for nothing, runs nothing, and fits a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page
from tests.browser import PATIENCE, chromium

from evenhand import plots
from evenhand.plots.document import Part

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "'\"><svg onload=alert(1)>",
    "javascript:alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "</style><script>alert(1)</script>",
    "\x00\x1b[31m\ud800",
]


def page(text: str) -> str:
    row = plots.IntervalRow(text, 0.1, -0.2, 0.4, text)
    parts: list[Part] = [
        plots.Badge(text, "good"),
        plots.Paragraph(text),
        plots.Table([text, "n"], [[text, "1"]], numeric=["n"], caption=text),
        plots.Figure(plots.forest([row], title=text, x_label=text), text),
        plots.Preformatted(text, text),
        plots.Details(text, [plots.Paragraph(text)]),
    ]
    return plots.document(text, [plots.Section(text, parts)])


def watched(tab: Page) -> list[str]:
    """Grows by everything that the page asks for, says or pops up."""
    seen: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        seen.append("dialog")
        dialog.dismiss()

    tab.on("dialog", dismiss)
    tab.on("request", lambda request: seen.append(request.url))
    tab.on("console", lambda message: seen.append(message.text))
    return seen


@pytest.mark.xdist_group("chromium")
def test_hostile_text_is_shown_as_text_in_a_real_browser(tmp_path: Path) -> None:
    with chromium() as browser:
        for number, text in enumerate(HOSTILE):
            path = tmp_path / f"{number}.html"
            path.write_text(page(text), encoding="utf-8")
            tab = browser.new_page()
            seen = watched(tab)
            tab.goto(path.as_uri(), timeout=PATIENCE)
            assert seen == [path.as_uri()]
            assert tab.locator("h1").inner_text() == " ".join(
                text.replace("\x00", "").replace("\x1b", "").replace("\ud800", "").split()
            )
            tab.close()


@pytest.mark.xdist_group("chromium")
def test_the_page_fits_a_phone_and_changes_with_the_colour_scheme(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page("A plain title"), encoding="utf-8")
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme="dark")
        tab.goto(path.as_uri(), timeout=PATIENCE)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.emulate_media(color_scheme="light")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != dark
