"""The way in with a browser: the link that `evenhand serve` prints, the cookie and the first page."""

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.browser import PATIENCE, chromium
from tests.service_harness import Client, ServerProcess, running

from evenhand.server.http.auth import Access
from evenhand.server.http.sessions import CODE_SECONDS, SESSION_SECONDS, Sessions

ACCESS = Access(token_id="test", role="read", scope=None)
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running(f"sqlite:///{tmp_path / 'e.db'}", tmp_path, "--demo", "--log-level", "debug") as one:
        yield one


def printed_link(server: ServerProcess) -> str:
    """The path of the newest login link."""
    return re.findall(rf"{server.address}(/login\?code=\S+)", server.log())[-1]  # type: ignore[no-any-return]


class Page:
    """An answer to somebody without a token."""

    def __init__(self, server: ServerProcess, path: str, *, method: str = "GET", **headers: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            self.status, self.text = answer.status, answer.read().decode()
        finally:
            connection.close()
        self.location = answer.headers["location"]
        self.cookies = answer.headers.get_all("set-cookie", [])


def logged_in(server: ServerProcess) -> str:
    """The cookie of somebody who opened the link."""
    [cookie] = Page(server, printed_link(server)).cookies
    return cookie.partition(";")[0]


def test_the_printed_link_opens_the_first_page(server: ServerProcess) -> None:
    answer = Page(server, printed_link(server))
    assert (answer.status, answer.location, answer.text) == (303, "/", "")
    [cookie] = answer.cookies
    name, *flags = cookie.split("; ")
    assert re.fullmatch(r"evenhand_session_\w{8}=[\w-]{43}", name)
    # no Domain: it is for this host alone
    assert sorted(flags) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Lax"]
    first = Page(server, "/", Cookie=f"other=1; {name}")
    assert first.status == 200
    for shown in ("Demonstration", "short prompt", "prompt with examples", "exact_match 0.800 (95 %: 0.6"):
        assert shown in first.text
    assert first.cookies == []


def test_another_cookie_shows_nothing(server: ServerProcess) -> None:
    name, _, right = logged_in(server).partition("=")
    wrong = ("", f"{name}=", f"{name}={right[1:]}", "=; ;;", f"{name.upper()}={right}", f"evenhand={right}")
    for cookie in wrong:
        page = Page(server, "/", Cookie=cookie)
        assert page.status == 200
        assert "login link" in page.text
        assert "Demonstration" not in page.text


def test_the_link_works_once(server: ServerProcess) -> None:
    link = printed_link(server)
    assert Page(server, link, method="HEAD").cookies == []  # looking at it does not use it up
    [cookie] = Page(server, link).cookies
    again = Page(server, link)
    assert (again.status, again.cookies) == (401, [])
    assert "used already" in again.text
    # Who is logged in goes on to the page, with the cookie of before.
    own = Page(server, link, Cookie=cookie.partition(";")[0])
    assert (own.status, own.location, own.cookies) == (303, "/", [])


def test_another_code_opens_nothing(server: ServerProcess) -> None:
    link = printed_link(server)
    for query in ("", "?code=", "?code=a&code=b", "?code=%ff", "?code=" + "x" * 9999, link[6:-1]):
        answer = Page(server, "/login" + query)
        assert (answer.status in (400, 401), answer.cookies) == (True, []), query
    assert Page(server, link).status == 303


def test_by_another_name_nothing_is_opened_or_shown(server: ServerProcess) -> None:
    """A page elsewhere whose name was pointed at this machine."""
    link = printed_link(server)
    refused = Page(server, link, Host=f"evil.example:{server.port}")
    assert (refused.status, refused.cookies) == (400, [])
    cookie = logged_in(server)  # the code was not used up
    page = Page(server, "/", Host=f"evil.example:{server.port}", Cookie=cookie)
    assert page.status == 400
    assert "Demonstration" not in page.text


def test_the_cookie_opens_no_part_of_the_interface(server: ServerProcess) -> None:
    """So no page elsewhere can make a browser that is logged in change anything."""
    cookie = logged_in(server)
    for method, path in (("GET", "/v1/projects"), ("POST", "/v1/projects"), ("POST", "/v1/tokens")):
        assert Page(server, path, method=method, Cookie=cookie).status == 401


def test_neither_code_nor_cookie_is_in_the_log(server: ServerProcess) -> None:
    code = printed_link(server).partition("=")[2]
    cookie = logged_in(server)
    Page(server, "/", Cookie=cookie)
    Page(server, f"/login?code={code}")
    server.stop()  # every line is written then
    assert server.log().count('"path":"/login"') == 2
    assert server.log().count(code) == 1  # where it was printed
    assert cookie.partition("=")[2] not in server.log()


def test_a_restart_ends_every_session_and_prints_a_new_link(server: ServerProcess) -> None:
    old, cookie = printed_link(server), logged_in(server)
    server.stop()
    server.start()
    assert "Demonstration" not in Page(server, "/", Cookie=cookie).text
    assert Page(server, old).status == 401
    assert "Demonstration" in Page(server, "/", Cookie=logged_in(server)).text


def test_servers_on_one_host_leave_each_others_sessions_alone(server: ServerProcess, tmp_path: Path) -> None:
    """Browsers keep one set of cookies for all ports of a host."""
    with running(f"sqlite:///{tmp_path / 'other.db'}", tmp_path, "--demo") as other:
        kept = dict(logged_in(one).split("=") for one in (server, other))
        both = "; ".join(f"{name}={value}" for name, value in kept.items())
        for one in (server, other):
            assert "Demonstration" in Page(one, "/", Cookie=both).text


def test_codes_and_sessions_end_in_time() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    early, late = sessions.new_code(ACCESS), sessions.new_code(ACCESS)
    now[0] = CODE_SECONDS - 1
    session = sessions.redeem(early)
    assert session is not None
    now[0] = CODE_SECONDS + 1
    assert sessions.redeem(late) is None
    cookie = sessions.cookie + b"=" + session.encode()
    now[0] = CODE_SECONDS - 1 + SESSION_SECONDS - 1
    assert sessions.access(cookie) == ACCESS
    now[0] += 2
    assert sessions.access(cookie) is None


def test_the_page_says_what_it_leaves_out(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'e.db'}", tmp_path) as server:
        cookie = logged_in(server)
        assert "No projects yet." in Page(server, "/", Cookie=cookie).text
        client = Client(server.address, project="p000")
        for number in range(51):
            client.made("/v1/projects", {"id": f"p{number:03}", "name": f"Project {number}"})
        dataset, _ = client.dataset([{"input": "q"}])
        for number in range(11):
            wanted = {"project_id": "p000", "name": f"try-{number}.", "dataset_id": dataset}
            client.made("/v1/experiments", wanted)
        client.close()
        text = Page(server, "/", Cookie=cookie).text
    assert "Project 49" in text
    assert "Project 50" not in text
    assert "These are the first 50 projects" in text
    assert "try-10." in text
    assert "try-0." not in text
    assert "These are the newest 10." in text
    assert text.count("No experiments yet.") == 49


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another site that tries what a page can try: to show, to read, to send."""

    def do_GET(self) -> None:
        target = self.path[1:]
        page = f"""<!doctype html><title>elsewhere</title>
        <iframe id=frame src="{target}/"></iframe><img src="{target}/"><iframe name=sink></iframe>
        <form id=form method=post target=sink enctype=text/plain action="{target}/v1/projects">
          <input name='{{"id": "forged", "name": "' value='"}}'></form>
        <script>
          document.getElementById('form').submit();
          fetch('{target}/', {{credentials: 'include'}})
            .then(answer => answer.text(), error => 'nothing').then(text => document.title = text);
        </script>"""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def elsewhere() -> Iterator[str]:
    """The address of another site. `localhost` and `127.0.0.1` are two sites to a browser."""
    other = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{other.server_address[1]}"
    finally:
        other.shutdown()
        thread.join()
        other.server_close()


@pytest.mark.xdist_group("chromium")
def test_in_a_real_browser(server: ServerProcess) -> None:
    """The link, the page wide and narrow, hostile names in it, and a page of another site."""
    client = Client(server.address, project="hostile")
    client.made("/v1/projects", {"id": "hostile", "name": HOSTILE + "w" * 150})
    dataset, [item] = client.dataset([{"input": "q"}])
    wanted = {"project_id": "hostile", "name": HOSTILE + "v" * 150, "dataset_id": dataset}
    experiment = client.made("/v1/experiments", wanted)["id"]
    scores = [{"scorer_name": HOSTILE, "value": 1.0}, {"scorer_name": "label", "value": HOSTILE * 9}]
    client.runs(experiment, [{"dataset_item_id": item, "output": "x", "scores": scores}])
    troubles: list[str] = []
    with chromium() as browser, elsewhere() as other:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.goto(server.address + printed_link(server))
        assert page.url == server.address + "/"
        [cookie] = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        assert page.evaluate("document.cookie") == ""
        for width in (1100, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("table").count() == 2
        assert HOSTILE in page.locator("h2").all_inner_texts()[1]
        assert page.locator("img, script").count() == 0
        page.goto(server.address + printed_link(server))  # once more: goes on to the page
        assert page.url == server.address + "/"
        assert troubles == []
        with page.expect_response(lambda answer: answer.request.method == "POST") as posted:
            page.goto(f"{other}/{server.address}")
        assert posted.value.status == 401
        page.wait_for_function("document.title !== 'elsewhere'")
        assert page.title() == "nothing"
        frame = page.query_selector("#frame")
        content = frame.content_frame() if frame is not None else None
        assert content is None or "Demonstration" not in content.content()
    assert client.get("/v1/projects/forged").status == 404
    client.close()
