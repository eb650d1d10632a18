"""Report files in a real browser: they ask for nothing, run nothing, fit a phone, and can be read by everybody."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from jinja2 import UndefinedError
from playwright.sync_api import Dialog, Page
from tests.browser import PATIENCE, chromium, violations
from tests.reports.every_component import sections

from evenhand.reports.rendering import document, environment, stylesheet

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "'\"><svg onload=alert(1)>",
    "javascript:alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "</style><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[31m\ud800",
]
PLAIN = "A plain title"
POLICY = "default-src 'self'"


def page(text: str) -> str:
    return document(text, sections(text), crumb=text, facts=[text], footer=text)


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


@contextmanager
def served(html: str) -> Iterator[str]:
    """`html` and the stylesheet over HTTP, under the policy of the service's pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            style = self.path == "/evenhand.css"
            body = (stylesheet() if style else html).encode()
            self.send_response(200)
            self.send_header("content-type", "text/css" if style else "text/html; charset=utf-8")
            self.send_header("content-security-policy", POLICY)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
def test_a_page_fits_its_window_and_passes_the_accessibility_rules(tmp_path: Path) -> None:
    """axe with every rule, light and dark, phone and desktop, everything open."""
    path = tmp_path / "report.html"
    path.write_text(page(PLAIN), encoding="utf-8")
    grounds = set()
    with chromium() as browser:
        for width in (360, 1440):
            for scheme in ("light", "dark"):
                tab = browser.new_page(
                    viewport={"width": width, "height": 800},
                    color_scheme="dark" if scheme == "dark" else "light",
                    bypass_csp=True,  # the checker is a script, and reports allow none
                )
                tab.goto(path.as_uri(), timeout=PATIENCE)
                tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                assert tab.evaluate("document.documentElement.scrollWidth") == width
                grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
                assert violations(tab) == "", (width, scheme)
                tab.close()
    assert len(grounds) == 2


@pytest.mark.xdist_group("chromium")
def test_components_hold_under_the_policy_of_the_services_pages() -> None:
    """No console message under `default-src 'self'`, and pictures with the colours of the theme: nothing is black.

    The page links the stylesheet instead of holding it, as the service's pages do.
    """
    template = environment().from_string(
        "<!doctype html><html lang=en><title>t</title><link rel=stylesheet href=/evenhand.css>"
        "{% from 'components.html' import section %}{% for one in given %}{{ section(one) }}{% endfor %}</html>"
    )
    html = template.render(given=sections(PLAIN))
    assert "style=" not in html
    colours: dict[str, set[str]] = {}
    with chromium() as browser, served(html) as address:
        for scheme in ("light", "dark"):
            tab = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
            seen = watched(tab)
            tab.goto(address, timeout=PATIENCE)
            # The browser asks for its icon by itself.
            assert [one for one in seen if not one.endswith("/favicon.ico")] == [
                address,
                f"{address}evenhand.css",
            ]
            drawn = tab.evaluate(
                "[...document.querySelectorAll('.picture circle, .picture rect, .picture polygon, .picture text')]"
                ".map(one => getComputedStyle(one).fill)"
            )
            lines = tab.evaluate(
                "[...document.querySelectorAll('.picture line')].map(one => getComputedStyle(one).stroke)"
            )
            assert "rgb(0, 0, 0)" not in drawn
            assert not {"none", "rgb(0, 0, 0)"} & set(lines)
            colours[scheme] = {*drawn, *lines}
            tab.close()
    # The accent of both themes, from the tokens: #0072b2 and #56b4e9.
    assert "rgb(0, 114, 178)" in colours["light"]
    assert "rgb(86, 180, 233)" in colours["dark"]
    assert "rgb(0, 114, 178)" not in colours["dark"]


def test_a_missing_name_in_a_template_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_a_report_file_allows_its_own_style_element_and_nothing_else() -> None:
    html = page(PLAIN)
    policy = html.split('http-equiv="Content-Security-Policy" content="', 1)[1].split('"', 1)[0]
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy
    assert html.count("<style>") == 1
    assert "style=" not in html.replace(stylesheet(), "")
