"""A served site, and tabs that note whatever a page should not do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Request
from tests.browser import PATIENCE
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client
from tests.visitor import Visitor

from evenhand.core.ids import new_id
from evenhand.core.objects.projects import Role
from evenhand.server.http.auth import LOGIN_LINK, Access


class Site:
    """A running service as somebody with a browser meets it."""

    def __init__(self, service: ServiceUnderTest) -> None:
        self.service = service
        self.url = service.url

    def client(self, project: str | None = None) -> Client:
        """An administrator's client in a project: its own new one unless `project` says which."""
        chosen = project or f"project-{new_id()}"
        client = Client(self.url, ADMIN, chosen)
        if project is None:
            client.made("/v1/projects", {"id": chosen, "name": "test"})
        return client

    def failed_trace(self) -> str:
        """A trace of the demonstration with an error in it."""
        found = self.service.get("/v1/traces", project_id="demo", has_error="true", limit=1).body["items"]
        return str(found[0]["id"])

    def queued_trace(self, status: str) -> str:
        """The oldest trace of the demonstration's queue with this status."""
        found = self.service.get("/v1/queue", project_id="demo", status=status, limit=1).body["items"]
        return str(found[0]["trace_id"])

    def review_queue(self) -> str:
        """The demonstration's queue with a form."""
        found = self.service.get("/v1/queues", project_id="demo").body["items"]
        return str(found[-1]["id"])

    def listed(self, path: str, project: str = "demo") -> list[dict[str, Any]]:
        """What an endpoint of the API lists in a project."""
        client = self.client(project)
        try:
            items: list[dict[str, Any]] = client.get(path, project_id=project).body["items"]
            return items
        finally:
            client.close()

    def experiments(self) -> list[str]:
        """The ids of the demonstration's experiments, oldest first."""
        return [one["id"] for one in self.listed("/v1/experiments")][::-1]

    def compared(self, name: str) -> tuple[str, str]:
        """The oldest experiment, and the one whose name ends with `name`."""
        found = self.listed("/v1/experiments")
        return found[-1]["id"], next(one["id"] for one in found if one["name"].endswith(name))

    def datasets(self) -> list[str]:
        """The ids of the demonstration's datasets."""
        return [one["id"] for one in self.listed("/v1/datasets")]

    def item(self) -> str:
        """An item that the experiments ran."""
        dataset = self.listed("/v1/experiments")[0]["dataset_id"]
        item: str = self.listed(f"/v1/datasets/{dataset}/items")[0]["id"]
        return item

    def share(self, kind: str, *ids: str) -> str:
        """The path of a link that shows one object of the demonstration to anybody."""
        pairs = [("kind", kind), *(("object_id", one) for one in ids)]
        page = Visitor(self.service).post("/projects/demo/shares", pairs).body.decode()
        [link] = re.findall(r"http://[^/]+(/shared/[\w-]+)", page)
        return str(link)

    def log_in(self, context: BrowserContext, role: Role = "admin", scope: str | None = None) -> None:
        """Give the context a session."""
        sessions = self.service.sessions
        session = sessions.open_now(Access(token_id=LOGIN_LINK, role=role, scope=scope))
        context.add_cookies([{"name": sessions.cookie.decode(), "value": session, "url": self.url}])


@contextmanager
def open_tab(
    browser: Browser,
    site: Site,
    *,
    role: Role = "admin",
    scope: str | None = None,
    refusals: bool = False,
    **options: Any,
) -> Iterator[Page]:
    """A logged-in tab. It fails at the end if a page said something on the console, opened a dialog, asked another host
    for something or failed to load a part. `refusals`: pages with a status of 400 to 499 are part of the test."""
    troubles: list[str] = []
    context = browser.new_context(base_url=site.url, **options)
    context.set_default_timeout(PATIENCE)
    site.log_in(context, role, scope)
    tab = context.new_page()
    tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    tab.on("requestfailed", lambda request: _note_failed(request, troubles))
    tab.on("request", lambda request: _note_foreign(request.url, site.url, troubles))
    try:
        yield tab
    finally:
        context.close()
    if refusals:  # the browser itself says on the console that a page has such a status
        troubles = [one for one in troubles if "responded with a status of 4" not in one]
    assert troubles == [], troubles


def _note_failed(request: Request, troubles: list[str]) -> None:
    """A part that did not load; one that the test's next page cut short is none."""
    if request.failure != "net::ERR_ABORTED":
        troubles.append(f"failed: {request.url} ({request.failure})")


def _note_foreign(url: str, own: str, troubles: list[str]) -> None:
    if not url.startswith((own + "/", "data:", "blob:")):
        troubles.append(f"elsewhere: {url}")
