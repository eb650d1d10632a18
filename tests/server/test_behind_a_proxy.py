"""Behind a reverse proxy and called from other sites: believed only where the configuration says so."""

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.core.errors import OptionError
from evenhand.server.config import ServerConfig
from evenhand.server.http.auth import LOGIN_LINK, Access
from evenhand.server.http.proxy import Outside


def asked(
    service: ServiceUnderTest, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
    try:
        connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    folder: Path = tmp_path_factory.mktemp("proxied")
    with running_service(
        f"sqlite:///{folder / 'p.db'}",
        root_path="/evenhand",
        trusted_proxies=("127.0.0.1",),
        allowed_hosts=("scores.example",),
        allowed_origins=("https://app.example",),
    ) as service:
        service.post("/v1/projects", {"id": "p", "name": "P"})
        yield service


def session(service: ServiceUnderTest) -> str:
    opened = service.sessions.open_now(Access(token_id=LOGIN_LINK, role="admin", scope=None))
    return f"{service.sessions.cookie.decode()}={opened}"


def test_pages_link_and_redirect_under_the_root_path(proxied: ServiceUnderTest) -> None:
    cookie = session(proxied)
    for path in ("/evenhand/projects/p/traces", "/projects/p/traces"):  # a proxy may strip the path
        answer, text = asked(proxied, path, Cookie=cookie, X_Forwarded_Host="scores.example")
        assert answer.status == 200
        links = re.findall(r' (?:href|src|action)="(/[^"]*)"', text)
        assert len(links) > 10
        assert [link for link in links if not link.startswith("/evenhand/")] == []
        assert "http://scores.example/evenhand/v1/traces" in text  # the command to copy
    script = re.findall(r'src="(/evenhand/static/[^"]+)"', text)[0]
    assert asked(proxied, script)[0].status == 200
    answer, _ = asked(proxied, "/evenhand/", Cookie=cookie)
    assert answer.headers["location"] == "/evenhand/projects/p/dashboard"


def test_cookies_are_secure_behind_https(proxied: ServiceUnderTest) -> None:
    for header, secure in (({"X_Forwarded_Proto": "https"}, True), ({}, False)):
        code = proxied.sessions.new_code(Access(token_id=LOGIN_LINK, role="admin", scope=None))
        answer, _ = asked(proxied, f"/evenhand/login?code={code}", **header)
        assert ("; Secure" in answer.headers["set-cookie"]) is secure
        # Other applications of the host do not get it.
        assert "; Path=/evenhand/;" in answer.headers["set-cookie"]


def test_a_listed_name_is_accepted_beside_those_of_loopback(proxied: ServiceUnderTest) -> None:
    """The printed login link and the health check of a container name the loopback address."""
    for host, status in (
        ("scores.example", 200),
        ("127.0.0.1:8321", 200),
        ("localhost", 200),
        ("evil.example", 400),
    ):
        assert asked(proxied, "/readyz", Host=host)[0].status == status, host


def test_nothing_is_believed_from_others(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'n.db'}", trusted_proxies=("10.1.2.3",)) as service:
        code = service.sessions.new_code(Access(token_id=LOGIN_LINK, role="admin", scope=None))
        forged = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "evil.example"}
        answer, _ = asked(service, f"/login?code={code}", **forged)
        assert "; Secure" not in answer.headers["set-cookie"]
        cookie = answer.headers["set-cookie"].partition(";")[0]
        service.post("/v1/projects", {"id": "p", "name": "P"})
        _, text = asked(service, "/projects/p/traces", Cookie=cookie, **forged)
        assert "evil.example" not in text


def test_wrong_tokens_are_counted_by_the_clients_address(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'w.db'}", trusted_proxies=("127.0.0.0/8",)) as service:
        for _ in range(61):
            answer, _ = asked(service, "/v1/projects", Authorization="Bearer x", X_Forwarded_For="1.1.1.1")
        assert answer.status == 429
        other = asked(service, "/v1/projects", Authorization="Bearer x", X_Forwarded_For="1.1.1.1, 2.2.2.2")
        assert other[0].status == 401


def test_other_sites_call_the_api_with_a_token_and_never_with_a_cookie(proxied: ServiceUnderTest) -> None:
    allowed = {"Origin": "https://app.example", "Authorization": f"Bearer {ADMIN}"}
    answer, text = asked(proxied, "/evenhand/v1/projects", **allowed)
    assert (answer.status, json.loads(text)["items"][0]["id"]) == (200, "p")
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["access-control-allow-credentials"] is None
    preflight, _ = asked(
        proxied,
        "/evenhand/v1/scores",
        "OPTIONS",
        Origin="https://app.example",
        Access_Control_Request_Method="POST",
    )
    assert preflight.status == 204
    assert "POST" in preflight.headers["access-control-allow-methods"]
    for path, origin in (
        ("/evenhand/v1/projects", "https://evil.example"),
        ("/evenhand/projects/p/traces", "https://app.example"),
    ):
        other, _ = asked(proxied, path, Origin=origin, Authorization=f"Bearer {ADMIN}")
        assert other.headers["access-control-allow-origin"] is None
    refused, _ = asked(proxied, "/evenhand/v1/scores", "OPTIONS", Origin="https://evil.example")
    assert refused.status in (401, 405)


@pytest.mark.parametrize(
    "wrong",
    [
        {"root_path": "evenhand"},
        {"root_path": '/a"b'},
        {"trusted_proxies": ("proxy.local",)},
        {"allowed_origins": ("*",)},
        {"allowed_origins": ("https://a.example/path",)},
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        Outside(None, ServerConfig(database="x.db", **wrong))  # type: ignore[arg-type]  # never called
