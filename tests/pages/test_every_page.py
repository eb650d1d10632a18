"""What holds for every page: readable by everybody, silent, complete without scripts, as wide as its window."""

import re

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import violations
from tests.pages.every_page import PAGES
from tests.pages.site import Site, open_tab

from evenhand.server.pages.assets import assets

ALL_SIZES = [(width, scheme) for width in (360, 1440) for scheme in ("light", "dark")]
IN_CI = [(1440, "light"), (360, "dark")]


@pytest.fixture(scope="module", autouse=True)
def _empty_project(demo: Site) -> None:
    client = demo.client("demo")
    client.made("/v1/projects", {"id": "empty", "name": "Empty"})
    client.close()


def check_all_ways(browser: Browser, site: Site, name: str, sizes: list[tuple[int, str]]) -> None:
    path = PAGES[name](site)
    # The checker is a script of its own, which the policy would refuse; without scripts below, the policy holds.
    with open_tab(browser, site, bypass_csp=True) as tab:
        answer = tab.goto(path)
        assert answer is not None
        assert answer.status == 200
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert tab.locator("script:not([src])").count() == 0
        with_scripts = text_of(tab)
        # Blocks out of sight are not drawn, and the checker needs them.
        tab.add_style_tag(content="*{content-visibility:visible!important;transition:none!important}")
        for width, scheme in sizes:
            tab.set_viewport_size({"width": width, "height": 900})
            tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its literals
            assert tab.evaluate("document.documentElement.scrollWidth") == width, (name, width)
            assert violations(tab) == "", (name, width, scheme)
    with open_tab(browser, site, java_script_enabled=False) as tab:
        tab.goto(path)
        assert text_of(tab) == with_scripts, f"{name} is not complete without scripts"


def text_of(tab: Page) -> str:
    """What the page says, without instants (scripts show them in the reader's zone) and buttons for scripts alone."""
    text: str = tab.locator("main").inner_html()
    text = re.sub(
        r"<time.*?</time>|<span data-zone.*?</span>|<button[^>]*data-copy.*?</button>",
        "",
        text,
        flags=re.DOTALL,
    )
    # Ages move on between two visits, and each has a form secret of its own.
    return re.sub(r"[\d,]+ (?:s|min|h|d)(?: ago)?<|value=\"[^\"]{80,}\"", "", text)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_read_by_everybody(browser: Browser, demo: Site, name: str) -> None:
    check_all_ways(browser, demo, name, IN_CI)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_every_page_in_every_size_and_scheme(browser: Browser, demo: Site, name: str) -> None:
    check_all_ways(browser, demo, name, ALL_SIZES)


def test_the_chosen_theme_wins(browser: Browser, demo: Site) -> None:
    with open_tab(browser, demo, color_scheme="light") as tab:
        tab.goto("/projects/demo/traces?errors=1")
        colour = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(colour)
        for _ in range(2):  # auto, light, dark
            tab.get_by_role("button", name="Theme").click()
        assert tab.url.endswith("/projects/demo/traces?errors=1")
        assert tab.evaluate(colour) != light


def test_single_keys_walk_over_rows_and_can_be_switched_off(demo: Site, browser: Browser) -> None:
    client = demo.client()
    for name in ("first", "second", "third"):
        client.trace(name=name)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/traces")
        tab.keyboard.press("j")
        tab.keyboard.press("j")
        assert tab.evaluate("document.activeElement.textContent") == "second"
        tab.keyboard.press("/")
        tab.keyboard.type("jk?")  # silent while somebody types
        assert tab.get_by_label("Metadata key").input_value() == "jk?"
        tab.keyboard.press("Tab")
        tab.get_by_role("heading", name="Traces").first.click()
        tab.keyboard.press("?")
        tab.get_by_label("Single keys do something").uncheck()
        tab.get_by_role("button", name="Close").click()
        assert tab.evaluate("document.activeElement.textContent") != "first"
        tab.evaluate("document.activeElement.blur()")
        tab.keyboard.press("j")
        assert tab.evaluate("document.activeElement === document.body")
    client.close()


def test_modules_are_few() -> None:
    modules = {name: len(content) for name, content in assets().items() if name.endswith(".js")}
    assert modules
    assert sum(modules.values()) <= 30_000, modules


def test_files_may_be_kept_and_pages_not(demo: Site) -> None:
    page = demo.service.raw("GET", "/login", token=None)
    assert page.headers["cache-control"] == "no-store"
    [path] = re.findall(r'href="(/static/[^"]+\.css)"', page.body.decode())
    sheet = demo.service.raw("GET", path, token=None)
    assert (sheet.status, sheet.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert sheet.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert b"style=" not in page.body
    old = path.replace(path.split("/")[2], "0" * 16)
    assert demo.service.raw("GET", old, token=None).status == 404
