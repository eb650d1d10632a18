"""Text from users is text: stored payloads in every field that a page shows run nothing and break nothing."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request
from tests.pages.hostile import EVERYTHING, JUDGE, PROJECT, Hostile
from tests.pages.payloads import PAYLOADS
from tests.pages.site import Site, open_tab
from tests.service import running_service
from tests.service_harness import part


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of its own: every list of it is full of payloads."""
    with running_service(f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'hostile.db'}") as service:
        yield Site(service)


@pytest.fixture(scope="module")
def hostile(site: Site) -> Iterator[Hostile]:
    made = Hostile(site.service)
    yield made
    made.client.close()


def paths(hostile: Hostile) -> list[str]:
    base, other = hostile.experiments[:2]
    return [
        "dashboard",
        f"dashboard?scorer={part(JUDGE)}",
        "traces",
        "traces/all",
        "traces/all?in=json&out=text",
        "traces/all?in=text&full=output",
        f"traces/all?span={part(PAYLOADS[5])}",
        f"traces?name={part(PAYLOADS[6])}&model={part(PAYLOADS[7])}&key={part(PAYLOADS[8])}&value={part(PAYLOADS[9])}",
        "sessions",
        f"sessions/{part(PAYLOADS[2])}",
        "search?q=window.hit",
        f"search?q={part(PAYLOADS[0])}",
        "experiments",
        f"experiments/{base}",
        f"compare/{base}/{other}",
        f"compare/{base}/{other}?force=1",
        f"compare/{base}/{other}?q={part(PAYLOADS[0])}",
        f"compare/{base}/{base}",
        "datasets",
        f"datasets/{hostile.dataset}",
        f"datasets/{hostile.dataset}?since=1&add=1",
        f"items/{hostile.items[0]}",
        f"items/{hostile.items[-1]}?scorer={part(JUDGE)}",
        "queue",
        "queue?status=annotated",
        "queue/t0",
        "queue/t1",
        "queues",
        f"queues/{hostile.queue}",
        f"queues/{hostile.queue}?item={hostile.reviewed}",
        f"queues/{hostile.queue}/add",
        f"agreement?queue={hostile.queue}",
        "scorers",
        f"scorers/{part(JUDGE)}",
        f"scorers/{part(PAYLOADS[11])}",
        "jobs",
        "jobs?status=failed",
        "rules",
        "settings",
    ]


def lists_to_their_end(tab: Page) -> Iterator[None]:
    yield
    while tab.get_by_role("link", name="Older", exact=True).count():
        tab.get_by_role("link", name="Older", exact=True).click()
        tab.wait_for_load_state()
        yield


def check_page(tab: Page, path: str) -> None:
    assert tab.evaluate("window.hit") is None, path
    markup = "main script, main img, main iframe, main object, main embed, main base, main link, main style"
    assert (
        tab.locator(f"{markup}, main [onerror], main [onload], main [onfocus], main [ontoggle]").count() == 0
    ), path
    assert (
        tab.locator("a[href^='javascript:'], a[href^='data:'], form[action^='javascript:']").count() == 0
    ), path
    for width in (1100, 360):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") == width, (path, width)
    assert tab.locator("h1").count() == 1, path
    assert tab.locator(".foot").count() == 1, path  # nothing swallowed the end of the page


def test_no_payload_runs_or_breaks_the_page(browser: Browser, site: Site, hostile: Hostile) -> None:
    """The tab fails on any console message (the policy's among them), dialog, and request to another host."""
    with open_tab(browser, site, viewport={"width": 1100, "height": 800}) as tab:
        for path in ["/projects", *(f"/projects/{PROJECT}/{one}" for one in paths(hostile))]:
            answer = tab.goto(path)
            assert answer is not None
            assert answer.status == 200, (path, answer.status)
            for _ in lists_to_their_end(tab):
                check_page(tab, path)


def test_no_payload_runs_where_forms_answer(
    browser: Browser, site: Site, hostile: Hostile, tmp_path: Path
) -> None:
    """The report of an import, the message after a change, a login link that is shown once."""
    lines = tmp_path / "items.jsonl"
    bad = [one if n % 3 else json.dumps({"inputs": one}) for n, one in enumerate(PAYLOADS)]
    lines.write_text("\n".join([*bad, json.dumps({"input": EVERYTHING})]), encoding="utf-8")
    with open_tab(browser, site, viewport={"width": 1100, "height": 800}) as tab:
        tab.goto(f"/projects/{PROJECT}/datasets/{hostile.dataset}")
        tab.get_by_text("Import JSONL").click()
        tab.get_by_label("A JSON object per line").set_input_files(lines)
        tab.get_by_role("button", name="Import").click()
        check_page(tab, "the report of an import")
        for one in PAYLOADS[:3]:
            tab.goto(f"/projects/{PROJECT}/settings")
            tab.locator("#person").fill(one[:240])
            tab.get_by_role("button", name="Invite").click()
            check_page(tab, "a login link")
            tab.goto(f"/projects/{PROJECT}/rules?new=1")
            tab.get_by_label("Name", exact=True).fill(f"new {one[:200]}")
            tab.get_by_label("Parameters").fill('{"pattern": "x"}')
            tab.get_by_role("button", name="Make rule").click()
            check_page(tab, "a message")


def test_every_payload_is_shown_as_it_is(browser: Browser, site: Site, hostile: Hostile) -> None:
    with open_tab(browser, site) as tab:
        tab.goto(f"/projects/{PROJECT}/traces/all")
        shown = tab.locator(".tree li a:first-of-type").all_text_contents()
        assert sorted(shown[1:]) == sorted(PAYLOADS)
        named = tab.locator("#span .kv dt").all_text_contents()
        assert sorted(named) == sorted(PAYLOADS)
        tab.goto(f"/projects/{PROJECT}/settings")
        people = tab.get_by_role("region", name="People, table").locator("tbody th").all_text_contents()
        assert {one[:240].strip() for one in PAYLOADS} <= {one.strip() for one in people}


def test_files_are_named_harmlessly(site: Site, hostile: Hostile, browser: Browser) -> None:
    """Whatever a session, an experiment or a dataset is called, the header is plain ASCII in quotes, and no cell is a formula."""
    named = re.compile(r'attachment; filename="[A-Za-z0-9._-]{1,90}\.(csv|json)"')
    with open_tab(browser, site) as tab:
        for path in [f"sessions/{part(one[:200])}" for one in PAYLOADS if one.strip() == one] + [
            f"experiments/{hostile.experiments[0]}",
            f"compare/{hostile.experiments[0]}/{hostile.experiments[0]}",
            f"scorers/{part(JUDGE)}",
            "traces",
        ]:
            for kind in ("csv", "json"):
                joint = "&" if "?" in path else "?"
                answer = tab.request.get(f"/projects/{PROJECT}/{path}{joint}format={kind}")
                assert answer.status == 200, path
                assert named.fullmatch(answer.headers["content-disposition"]), path
                assert answer.headers["x-content-type-options"] == "nosniff"


def test_errors_repeat_nothing_harmful(browser: Browser, site: Site) -> None:
    with open_tab(browser, site, refusals=True) as tab:
        for one in PAYLOADS[:8]:
            for path in (
                f"/projects/{part(one)}/traces",
                f"/projects/{PROJECT}/traces/{part(one)}",
                f"/projects/{PROJECT}/scorers/{part(one + ' not there')}",
                f"/{part(one)}",
            ):
                tab.goto(path)
                assert tab.evaluate("window.hit") is None
                assert tab.locator("main script, main img").count() == 0


def evenhand(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "evenhand", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1, 2), done.stderr


def note_requests(tab: Page) -> list[str]:
    """The addresses that the tab asks for from now on."""
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    tab.on("request", note)
    return asked


def test_reports_of_the_command_line_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """A report is a file: no policy of a server stands around it."""
    for name in ("before", "after"):
        rows = [
            {
                "id": f"{n} {one}", "question": one, "response": one if n % 3 or name == "before" else "other", "target": one,
                "category": one, "metadata": {"category": one, "human": float(n % 3 == 0)},
            }
            for n, one in enumerate(PAYLOADS)
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        scorers = ("--scorer", "exact_match")
        evenhand("score", tmp_path / f"{name}.jsonl", *scorers, "-o", tmp_path / name, "--report", tmp_path / f"{name}.html")  # fmt: skip
    evenhand("compare", tmp_path / "before", tmp_path / "after", "--report", tmp_path / "compared.html")
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) >= 3, pages
    for page in pages:
        tab = browser.new_page(viewport={"width": 1100, "height": 800})
        asked = note_requests(tab)
        tab.goto(page.as_uri())
        tab.locator("summary").evaluate_all("all => all.forEach(one => one.parentElement.open = true)")
        assert tab.evaluate("window.hit") is None, page.name
        assert (
            tab.locator("main img, main iframe, main [onerror], main [onload], main [onfocus]").count() == 0
        )
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        for width in (1100, 360):
            tab.set_viewport_size({"width": width, "height": 800})
            assert tab.evaluate("document.documentElement.scrollWidth") == width, (page.name, width)
        tab.close()
