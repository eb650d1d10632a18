"""Text from users is text: stored payloads in every field that a page shows run nothing and break nothing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.pages.payloads import PAYLOADS
from tests.pages.site import Site, open_tab
from tests.service import ADMIN
from tests.service_harness import Client, part, span

EVERYTHING = "\n".join(PAYLOADS)


@pytest.fixture(scope="module")
def hostile(demo: Site) -> Iterator[Client]:
    """A project in which everything that somebody can name is a payload."""
    client = Client(demo.url, ADMIN, "hostile")
    client.made("/v1/projects", {"id": "hostile", "name": EVERYTHING[:240]})
    root = span(
        id="root", trace_id="all", name=PAYLOADS[0], model=PAYLOADS[1], session_id=PAYLOADS[2], user_id=PAYLOADS[3],
        input={"messages": [{"role": one[:60], "content": one} for one in PAYLOADS] + [{"role": "user", "content": EVERYTHING}]},
        output={one: [one] for one in PAYLOADS[:120]}, metadata={one: one for one in PAYLOADS},
        error={"message": EVERYTHING, "type": PAYLOADS[4], "stack": EVERYTHING},
        scores=[{"scorer_name": one[:200], "value": one, "rationale": one} for one in PAYLOADS],
    )  # fmt: skip
    children = [
        span(id=one[:200], trace_id="all", parent_span_id="root", name=one, model=one) for one in PAYLOADS
    ]
    assert client.spans(root, *children).status == 201
    listed = [span(trace_id=f"t{n}", name=one, model=one, session_id=one[:200], user_id=one[:200], input=one, output=one) for n, one in enumerate(PAYLOADS)]  # fmt: skip
    assert client.spans(*listed).status == 201
    for one in PAYLOADS[:60]:
        said = {"trace_id": "all", "annotator": one[:240], "label": one, "correction": one, "notes": one}
        client.made("/v1/annotations", {**said, "project_id": "hostile"})
    for one in PAYLOADS[:40]:
        client.made("/v1/datasets", {"project_id": "hostile", "name": one[:200], "description": one})
        rule = {"name": one[:240], "filter": {"name": one, "metadata": {one: one}}, "scorer_name": "contains"}
        client.made("/v1/rules", {"project_id": "hostile", "config": {"expected_output": one}, **rule})
    dataset, [item] = client.dataset([{"input": EVERYTHING, "expected_output": EVERYTHING}], name="item")
    for one in PAYLOADS[:10]:
        made = client.made(
            "/v1/experiments", {"project_id": "hostile", "name": one[:240], "dataset_id": dataset}
        )["id"]
        scores = [{"scorer_name": other[:200], "value": 0.5, "rationale": other} for other in PAYLOADS[:5]]
        client.runs(made, [{"dataset_item_id": item, "output": EVERYTHING, "scores": scores}])
    yield client
    client.close()


PATHS = (
    "/projects",
    "/projects/hostile/dashboard",
    "/projects/hostile/traces",
    "/projects/hostile/traces/all",
    "/projects/hostile/traces/all?in=json&out=text",
    "/projects/hostile/traces/all?in=text&full=output",
    f"/projects/hostile/traces/all?span={part(PAYLOADS[5])}",
    f"/projects/hostile/traces?name={part(PAYLOADS[6])}&model={part(PAYLOADS[7])}&key={part(PAYLOADS[8])}&value={part(PAYLOADS[9])}",
    "/projects/hostile/sessions",
    f"/projects/hostile/sessions/{part(PAYLOADS[2])}",
    "/projects/hostile/search?q=window.hit",
    f"/projects/hostile/search?q={part(PAYLOADS[0])}",
    "/projects/hostile/experiments",
    "/projects/hostile/datasets",
    "/projects/hostile/jobs",
    "/projects/hostile/rules",
)


def lists_to_their_end(tab: Page) -> Iterator[None]:
    yield
    while tab.get_by_role("link", name="Older", exact=True).count():
        tab.get_by_role("link", name="Older", exact=True).click()
        tab.wait_for_load_state()
        yield


def test_no_payload_runs_or_breaks_the_page(browser: Browser, demo: Site, hostile: Client) -> None:
    """The tab fails on any console message (the policy's among them), dialog, and request to another host."""
    with open_tab(browser, demo, viewport={"width": 1100, "height": 800}) as tab:
        for path in PATHS:
            tab.goto(path)
            for _ in lists_to_their_end(tab):
                assert tab.evaluate("window.hit") is None, path
                assert (
                    tab.locator("main script, main img, main iframe, main [onerror], main [onload]").count()
                    == 0
                )
                for width in (1100, 360):
                    tab.set_viewport_size({"width": width, "height": 800})
                    assert tab.evaluate("document.documentElement.scrollWidth") == width, (path, width)
                assert tab.locator("h1").count() == 1
                assert tab.locator(".foot").count() == 1  # nothing swallowed the end of the page


def test_every_payload_is_shown_as_it_is(browser: Browser, demo: Site, hostile: Client) -> None:
    with open_tab(browser, demo) as tab:
        tab.goto("/projects/hostile/traces/all")
        shown = tab.locator(".tree li a:first-of-type").all_text_contents()
        assert sorted(shown[1:]) == sorted(PAYLOADS)
        named = tab.locator("#span .kv dt").all_text_contents()
        assert sorted(named) == sorted(PAYLOADS)


def test_errors_repeat_nothing_harmful(browser: Browser, demo: Site) -> None:
    with open_tab(browser, demo, refusals=True) as tab:
        for one in PAYLOADS[:8]:
            for path in (
                f"/projects/{part(one)}/traces",
                f"/projects/demo/traces/{part(one)}",
                f"/{part(one)}",
            ):
                tab.goto(path)
                assert tab.evaluate("window.hit") is None
                assert tab.locator("main script, main img").count() == 0
