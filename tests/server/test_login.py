"""The way in with a browser: the link that `evenhand serve` prints, the cookie and the first page."""

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.browser import PATIENCE, chromium
from tests.postgres import PostgresServer
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess, running, span

from evenhand.server.http.auth import Access
from evenhand.server.http.sessions import CODE_SECONDS, SESSION_SECONDS, Sessions
from evenhand.store.database import open_database

ACCESS = Access(token_id="test", role="read", scope=None)
FIRST = "/projects/demo/dashboard"
"""What the link of a demonstration opens."""
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

    def __init__(
        self, server: ServerProcess, path: str, *, method: str = "GET", body: str = "", **headers: str
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        try:
            connection.request(method, path, body=body.encode() or None, headers=headers)
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
    assert (answer.status, answer.location, answer.text) == (303, FIRST, "")
    [cookie] = answer.cookies
    name, *flags = cookie.split("; ")
    assert re.fullmatch(r"evenhand_session_\w{8}=[\w-]{43}", name)
    # no Domain: it is for this host alone
    assert sorted(flags) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Lax"]
    # There is one project: it is chosen by itself.
    assert Page(server, "/", Cookie=f"other=1; {name}").location == FIRST
    first = Page(server, FIRST, Cookie=f"other=1; {name}")
    assert first.status == 200
    for shown in ("Demonstration", "Dashboard", "Traces"):
        assert shown in first.text
    assert first.cookies == []


def test_behind_a_proxy_that_is_not_listed_its_word_counts_for_nothing(server: ServerProcess) -> None:
    """What listed proxies say is in test_behind_a_proxy.py."""
    [cookie] = Page(server, printed_link(server), **{"X-Forwarded-Proto": "https"}).cookies
    assert "Secure" not in cookie


def test_another_cookie_shows_nothing(server: ServerProcess) -> None:
    name, _, right = logged_in(server).partition("=")
    wrong = ("", f"{name}=", f"{name}={right[1:]}", "=; ;;", f"{name.upper()}={right}", f"evenhand={right}")
    for cookie in wrong:
        page = Page(server, FIRST, Cookie=cookie)
        assert page.status == 401
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


def post(server: ServerProcess, path: str, fields: dict[str, str], **headers: str) -> Page:
    """A form as a browser posts it from one of the server's own pages."""
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    return Page(server, path, method="POST", body=urlencode(fields), **{**own, **headers})


def secret_in(page: Page) -> str:
    return re.findall(r'name="_secret" value="([^"]+)"', page.text)[0]  # type: ignore[no-any-return]


def test_a_token_opens_the_page_that_was_asked_for(server: ServerProcess) -> None:
    wanted = "/projects/demo/traces?errors=1"
    asked = Page(server, wanted)
    assert asked.status == 401
    assert f'value="{wanted}"' in asked.text
    fields = {"_secret": secret_in(asked), "token": ADMIN_TOKEN, "next": wanted}
    answer = post(server, "/login", fields)
    assert (answer.status, answer.location) == (303, wanted)
    [cookie] = answer.cookies
    own = cookie.partition(";")[0]
    assert Page(server, wanted, Cookie=own).status == 200
    wrong = post(server, "/login", {**fields, "token": "evh_wrong_token"})
    assert (wrong.status, wrong.cookies) == (401, [])
    assert "No such token" in wrong.text
    # Nothing but a page of this server is a place to go on to.
    for elsewhere_ in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert post(server, "/login", {**fields, "next": elsewhere_}).location == "/"
    out = post(server, "/logout", {"_secret": secret_in(Page(server, FIRST, Cookie=own))}, Cookie=own)
    assert out.location == "/login"
    assert Page(server, FIRST, Cookie=own).status == 401


def test_a_revoked_token_ends_its_sessions(server: ServerProcess) -> None:
    client = Client(server.address, project="demo")
    made = client.made("/v1/tokens", {"name": "t", "role": "read", "project_id": "demo"})
    fields = {"_secret": secret_in(Page(server, "/login")), "token": made["token"], "next": "/"}
    [cookie] = post(server, "/login", fields).cookies
    own = cookie.partition(";")[0]
    assert Page(server, FIRST, Cookie=own).status == 200
    assert Page(server, "/projects/other/dashboard", Cookie=own).status == 404
    assert client.delete(f"/v1/tokens/{made['id']}").status == 200
    assert Page(server, FIRST, Cookie=own).status == 401
    client.close()


def test_a_form_needs_its_secret_and_a_page_of_this_server(server: ServerProcess) -> None:
    client = Client(server.address, project="demo")
    trace_id, _ = client.trace()
    own = logged_in(server)
    secret = secret_in(Page(server, FIRST, Cookie=own))
    path = f"/projects/demo/traces/{trace_id}/queue"
    other = secret_in(Page(server, FIRST))  # of nobody's session
    for fields, headers in (
        ({}, {}),
        ({"_secret": ""}, {}),
        ({"_secret": other}, {}),
        ({"_secret": secret[:-4] + "AAAA"}, {}),
        ({"_secret": secret}, {"Sec-Fetch-Site": "cross-site"}),
        ({"_secret": secret}, {"Sec-Fetch-Site": "same-site"}),
    ):
        assert post(server, path, fields, Cookie=own, **headers).status == 403
    assert trace_id not in client.get("/v1/queue", project_id="demo", limit=200).raw.decode()
    assert post(server, path, {"_secret": secret}, Cookie=own).status == 303
    assert trace_id in client.get("/v1/queue", project_id="demo", limit=200).raw.decode()
    client.close()


def test_errors_are_pages_for_people_and_json_for_programs(server: ServerProcess) -> None:
    own = logged_in(server)
    for path in ("/projects/none/dashboard", "/nowhere", "/projects/demo/nowhere"):
        page = Page(server, path, Cookie=own, Accept="text/html,*/*")
        assert (page.status, "Not found" in page.text) == (404, True)
    assert Page(server, "/nowhere").text.startswith('{"error":')
    assert Page(server, "/v1/nowhere", Accept="text/html").text.startswith('{"error":')
    bad = Page(server, "/projects/demo/traces?after=yesterday", Cookie=own)
    assert bad.status == 400
    assert "<h1>This cannot be done</h1>" in bad.text


def test_the_theme_is_kept(server: ServerProcess) -> None:
    asked = Page(server, "/login")
    assert "data-theme" not in asked.text
    answer = post(server, "/theme", {"_secret": secret_in(asked), "theme": "dark", "next": "/projects"})
    assert (answer.status, answer.location) == (303, "/projects")
    [cookie] = answer.cookies
    assert 'data-theme="dark"' in Page(server, "/login", Cookie=cookie.partition(";")[0]).text


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
    page = Page(server, FIRST, Host=f"evil.example:{server.port}", Cookie=cookie)
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
    Page(server, FIRST, Cookie=cookie)
    Page(server, f"/login?code={code}")
    server.stop()  # every line is written then
    assert server.log().count('"path":"/login"') == 2
    assert server.log().count(code) == 1  # where it was printed
    assert cookie.partition("=")[2] not in server.log()


def test_a_session_outlives_a_kill_and_a_used_link_stays_used(server: ServerProcess) -> None:
    old, cookie = printed_link(server), logged_in(server)
    server.kill()
    server.start()
    assert "Demonstration" in Page(server, FIRST, Cookie=cookie).text
    assert Page(server, old).status == 401
    assert "Demonstration" in Page(server, FIRST, Cookie=logged_in(server)).text


def test_servers_on_one_host_leave_each_others_sessions_alone(server: ServerProcess, tmp_path: Path) -> None:
    """Browsers keep one set of cookies for all ports of a host."""
    with running(f"sqlite:///{tmp_path / 'other.db'}", tmp_path, "--demo") as other:
        kept = dict(logged_in(one).split("=") for one in (server, other))
        both = "; ".join(f"{name}={value}" for name, value in kept.items())
        for one in (server, other):
            assert "Demonstration" in Page(one, FIRST, Cookie=both).text


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            yield stack.enter_context(server.database())
        else:
            yield f"sqlite:///{tmp_path / 'sessions.db'}"


async def test_codes_and_sessions_end_in_time(url: str) -> None:
    now = [0]
    with closing(open_database(url)) as database:
        sessions = Sessions(database, clock=lambda: now[0])
        early, late = sessions.new_code(ACCESS), sessions.new_code(ACCESS)
        now[0] = 1000 * CODE_SECONDS - 1
        redeemed = await sessions.redeem(early)
        assert redeemed is not None
        assert await sessions.redeem(early) is None
        now[0] = 1000 * CODE_SECONDS + 1
        assert await sessions.redeem(late) is None
        cookie = sessions.cookie + b"=" + redeemed.session.encode()
        now[0] = 1000 * (CODE_SECONDS + SESSION_SECONDS) - 2
        assert await sessions.access(cookie) == ACCESS
        now[0] += 3000
        assert await sessions.access(cookie) is None


async def test_a_login_holds_on_every_server_of_a_database(url: str) -> None:
    with closing(open_database(url)) as one:
        first = Sessions(one)
        code = first.new_code(ACCESS)
        redeemed = await first.redeem(code)
        assert redeemed is not None
        second = Sessions(one)
        cookie = second.cookie + b"=" + redeemed.session.encode()
        assert second.cookie == first.cookie
        assert await second.access(cookie) == ACCESS
        assert second.form_is_ours(cookie, first.form_secret(cookie))
        assert not second.form_is_ours(b"other=1", first.form_secret(cookie))
        await second.close(cookie)
        assert await second.access(cookie) is None


def test_secrets_are_stored_as_hashes(tmp_path: Path) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'hashed.db'}")) as database:
        sessions = Sessions(database)
        code, session = sessions.new_code(ACCESS), sessions.open_now(ACCESS)
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("hashed.db*"))
    assert b"browser_sessions" in stored
    assert code.encode() not in stored
    assert session.encode() not in stored


def test_an_invited_reviewer_is_let_in_once_and_shut_out_at_once(server: ServerProcess) -> None:
    client = Client(server.address)
    person = client.made("/v1/people", {"name": "Ana", "project_id": "demo"})
    opened = Page(server, person["login_path"])
    assert opened.status == 303
    assert Page(server, person["login_path"]).status == 401
    cookie = opened.cookies[0].partition(";")[0]
    assert Page(server, FIRST, Cookie=cookie).status == 403  # a reviewer sees the queue, not the dashboard
    client.delete(f"/v1/people/{person['id']}")
    assert Page(server, FIRST, Cookie=cookie).status == 401
    again = client.post(f"/v1/people/{person['id']}/login-link")
    assert Page(server, again.body["login_path"]).status == 303
    client.close()


def test_several_projects_are_chosen_from_and_none_is_left_out(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'e.db'}", tmp_path) as server:
        cookie = logged_in(server)
        assert Page(server, "/", Cookie=cookie).location == "/projects"
        assert "No projects yet" in Page(server, "/projects", Cookie=cookie).text
        client = Client(server.address)
        client.made("/v1/projects", {"id": "p000", "name": "Project 0."})
        assert Page(server, "/", Cookie=cookie).location == "/projects/p000/dashboard"
        for number in range(1, 201):
            client.made("/v1/projects", {"id": f"p{number:03}", "name": f"Project {number}."})
        client.close()
        assert Page(server, "/", Cookie=cookie).location == "/projects"
        text = Page(server, "/projects", Cookie=cookie).text
        assert ("Project 199." in text, "Project 200." in text) == (True, False)
        [more] = re.findall(r'href="(/projects\?after=[^"]+)"', text)
        assert "Project 200." in Page(server, more, Cookie=cookie).text


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
    client.spans(span(name=HOSTILE + "v" * 150, model=HOSTILE, input=HOSTILE, output=HOSTILE))
    troubles: list[str] = []
    with chromium() as browser, elsewhere() as other:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.goto(server.address + printed_link(server))
        assert page.url == server.address + FIRST
        [cookie] = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        assert page.evaluate("document.cookie") == ""
        for path in ("/projects", "/projects/hostile/traces"):
            page.goto(server.address + path)
            for width in (1100, 360):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") == width
            assert HOSTILE[:40] in page.locator("table").inner_text()
            assert page.locator("img, script:not([src])").count() == 0
        page.goto(server.address + printed_link(server))  # once more: goes on to the first page
        assert page.url == server.address + "/projects"
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
