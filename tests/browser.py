"""A real Chromium for tests: Debian's, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.real_parts import need

PATIENCE = 300_000.0
"""Milliseconds that a busy machine may take to start the browser, or to open a page."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that ends with the block."""
    path = shutil.which("chromium")
    need(path is not None, "the browser 'chromium' (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


def violations(tab: Page) -> str:
    """What axe finds by its WCAG A and AA rules and its best practices; empty when nothing."""
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(tab, options={"runOnly": rules})
    return str(found.generate_report()) if found.violations_count else ""
