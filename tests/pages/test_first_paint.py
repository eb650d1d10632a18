"""What a browser needs before it can show something: few bytes, and scripts that are sound without a build step."""

import re
import shutil
import subprocess
import zlib

import pytest
from playwright.sync_api import Browser
from tests.pages.site import Site, open_tab
from tests.real_parts import need

from evenhand.server.pages.assets import assets

FIRST = 14_000
"""Bytes of the first round trip of a new connection: ten packets."""
MODULES = sorted(name for name in assets() if name.endswith(".js"))


def packed_until(body: bytes, end: str) -> int:
    """How many bytes of a gzip stream it takes to read as far as the last `end` of the verdict."""
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    text = b""
    for at in range(0, len(body), 64):
        text += stream.decompress(body[at : at + 64])
        if re.search(rf'class="verdict.*?{end}'.encode(), text, flags=re.DOTALL):
            return at + 64
    raise AssertionError("the page has no verdict")


def test_the_verdict_and_its_styles_come_in_the_first_14_kb(demo: Site, browser: Browser) -> None:
    path = "/projects/demo/compare/" + "/".join(demo.compared("small model"))
    with open_tab(browser, demo) as tab:
        cookie = "; ".join(f"{one['name']}={one['value']}" for one in tab.context.cookies())
    asked = {"Cookie": cookie, "Accept-Encoding": "gzip"}
    page = demo.service.raw("GET", path, token=None, headers=asked)
    assert page.headers["content-encoding"] == "gzip"
    text = zlib.decompress(page.body, 16 + zlib.MAX_WBITS).decode()
    sheets = re.findall(r'<link rel="stylesheet" href="([^"]+)"', text)
    styles = [demo.service.raw("GET", sheet, token=None, headers=asked) for sheet in sheets]
    assert styles
    assert all(one.headers["content-encoding"] == "gzip" for one in styles)
    used = packed_until(page.body, "</section>") + sum(len(one.body) for one in styles)
    assert used <= FIRST, used
    # Nothing else stands before the first paint: scripts are modules, which wait for the page.
    assert re.findall(r"<script(?![^>]*type=\"module\")", text) == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_sound(name: str) -> None:
    node = shutil.which("node")
    need(node is not None, "'node' (apt-get install nodejs)")
    command = [str(node), "--input-type=module", "--check"]
    done = subprocess.run(command, input=assets()[name], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
