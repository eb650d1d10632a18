"""Every page, by a name and its address in the demonstration. A new page adds its line here."""

from collections.abc import Callable

from tests.pages.site import Site

PAGES: dict[str, Callable[[Site], str]] = {
    "projects": lambda site: "/projects",
    "dashboard": lambda site: "/projects/demo/dashboard",
    "traces": lambda site: "/projects/demo/traces",
    "traces-none": lambda site: "/projects/empty/traces",
}
