"""The curl examples of docs/service.md, run as they stand."""

import json
import re
import socket
from pathlib import Path

import pytest
from tests.service import page_block, run_examples, running_service

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text(encoding="utf-8")


def test_the_curl_examples_print_what_the_page_says(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'e.db'}") as service:
        printed = run_examples(service, page_block(PAGE, "sh")).splitlines()
    told = page_block(PAGE, "text").splitlines()
    assert [re.sub(r"(\.\d{10})\d+", r"\1", line) for line in printed] == [
        re.sub(r"(\.\d{10})\d+", r"\1", line) for line in told
    ]


def test_the_first_page_asks_for_the_login_link_and_a_wrong_code_opens_nothing(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'e.db'}") as service:
        page = service.raw("GET", "/", token=None)
        assert page.status == 401
        assert b"login link" in page.body
        assert service.raw("GET", "/login?code=wrong", token=None).status == 401


@pytest.mark.parametrize(
    "path", ["/docs", "/docs/style.css", "/openapi.json", "/metrics", "/healthz", "/readyz"]
)
def test_public_pages_need_no_token_and_no_network(path: str, tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'e.db'}") as service:
        reply = service.raw("GET", path, token=None)
        assert reply.status == 200
        text = str(reply.body)
        assert "https://" not in text
        assert "<script" not in text
        assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "text", [b"nonsense\r\n\r\n", b"POST /v1/scores HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]
)
def test_what_is_no_http_gets_the_error_envelope(text: bytes, tmp_path: Path) -> None:
    with (
        running_service(f"sqlite:///{tmp_path / 'e.db'}") as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=300) as client,
    ):
        client.sendall(text)
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["code"] == "INVALID_REQUEST"
