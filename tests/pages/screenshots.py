"""`make screenshots`: every page of the demonstration, light and dark, 360 and 1440 px wide, as PNG files."""

import sys
import tempfile
from pathlib import Path

from tests.browser import chromium
from tests.pages.every_page import PAGES
from tests.pages.site import Site, open_tab
from tests.service import running_service

from evenhand.server.demo import fill


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        running_service(f"sqlite:///{place}/demo.db") as service,
        chromium() as browser,
    ):
        service.database.write_now(fill)
        site = Site(service)
        client = site.client("demo")
        client.made("/v1/projects", {"id": "empty", "name": "Empty"})
        client.close()
        for scheme in ("light", "dark"):
            for width in (1440, 360):
                size = {"width": width, "height": 900}
                with open_tab(browser, site, viewport=size, color_scheme=scheme, refusals=True) as tab:
                    for name in names or PAGES:
                        tab.goto(PAGES[name](site))
                        tab.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)
                        print(f"{name}-{scheme}-{width}.png", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
