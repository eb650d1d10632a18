"""analysis.html in a real browser: wide and narrow, light and dark, without asking the network for anything."""

from pathlib import Path

import pytest
from tests.ab_rows import worked_example
from tests.browser import PATIENCE, chromium

from evenhand.ab import analyze
from evenhand.reports.ab import ab_page

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.mark.xdist_group("chromium")
def test_the_page_opens_everywhere(tmp_path: Path) -> None:
    """No sideways scrolling of the page, every promised picture, no errors, no requests."""
    path = tmp_path / "analysis.html"
    path.write_text(ab_page(analyze(worked_example())), encoding="utf-8")
    troubles: list[str] = []
    with chromium() as browser:
        for width, scheme in ((1100, "light"), (360, "light"), (360, "dark")):
            page = browser.new_page(
                viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page.on("console", lambda message: troubles.append(message.text))
            page.on("request", lambda request: troubles.append(request.url))
            page.goto(path.as_uri(), timeout=PATIENCE)
            assert troubles == [path.as_uri()]
            troubles.clear()
            assert page.evaluate("document.documentElement.scrollWidth") == width
            titles = page.locator("svg title").all_text_contents()
            for wanted in (
                "Paired delta of success",
                "Paired delta of duration",
                "Paired delta of non-cache tokens",
                "Cost and success per task",
                "Duration of runs",
                "Non-cache tokens of runs",
            ):
                assert any(title.startswith(wanted) for title in titles), wanted
            assert page.locator(".verdict h2").inner_text().lower().startswith("mixed results")
