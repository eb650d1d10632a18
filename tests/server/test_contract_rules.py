"""Section 1 of the contract: what holds for every endpoint. On both databases."""

import http.client
import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.service_harness import Client, Reply

from evenhand.core.ids import new_id

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LISTS = ["/v1/traces", "/v1/datasets", "/v1/experiments", "/v1/queue", "/v1/rules", "/v1/jobs"]


def envelope(reply: Reply) -> Any:
    error = reply.body["error"]
    assert set(error) == {"code", "message", "details"}
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error["code"])
    assert error["message"]
    assert isinstance(error["details"], dict)
    return error


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic dTpw", "bearer évh"])
def test_without_a_valid_token_everything_is_401(client: Client, header: str | None) -> None:
    nobody = client.again(token=None)
    headers = {} if header is None else {"Authorization": header.encode().decode("latin-1")}
    reply = nobody.request("GET", f"/v1/datasets?project_id={client.project}", headers=headers)
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
    assert envelope(reply)
    nobody.close()


def test_errors_of_the_framework_have_the_envelope_too(client: Client) -> None:
    for method, path, status, code in (
        ("GET", "/v1/no-such", 404, "NOT_FOUND"),
        ("GET", "/no-such", 404, "NOT_FOUND"),
        ("PUT", "/v1/datasets", 405, "METHOD_NOT_ALLOWED"),
        ("PATCH", "/v1/scores", 405, "METHOD_NOT_ALLOWED"),
    ):
        reply = client.request(method, path)
        assert (reply.status, reply.code) == (status, code), path
        envelope(reply)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"not json", b"\xff\xfe", b'{"project_id": }', b'{"a": 1} x', b"[]", b"null", b'"x"', b"5"],
)
def test_a_body_that_is_not_the_JSON_asked_for_is_400(client: Client, raw: bytes) -> None:
    reply = client.post_raw("/v1/datasets", raw)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    envelope(reply)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "multipart/form-data; boundary=x", "x"]
)
def test_another_content_type_is_415(client: Client, content_type: str) -> None:
    reply = client.post_raw("/v1/datasets", b"{}", content_type)
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_over_the_limit_is_413(client: Client) -> None:
    big = json.dumps({"project_id": client.project, "name": "x", "description": "y" * 17_000_000}).encode()
    reply = client.post_raw("/v1/datasets", big)
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")


def test_a_list_is_an_envelope_with_a_default_of_50(client: Client) -> None:
    for _ in range(51):
        client.dataset()
    reply = client.get("/v1/datasets", project_id=client.project)
    assert set(reply.body) == {"items", "next_cursor", "limit"}
    assert (len(reply.body["items"]), reply.body["limit"]) == (50, 50)
    rest = client.get("/v1/datasets", project_id=client.project, cursor=reply.body["next_cursor"])
    assert (len(rest.body["items"]), rest.body["next_cursor"]) == (1, None)


@pytest.mark.parametrize("path", LISTS)
def test_every_list_needs_a_project(client: Client, path: str) -> None:
    for query in ("", "?project_id="):
        reply = client.get(path + query)
        assert (reply.status, reply.code) == (400, "PROJECT_REQUIRED")
    assert client.get(path, project_id=client.project).body == {"items": [], "next_cursor": None, "limit": 50}


def test_timestamps_are_UTC_with_milliseconds(client: Client) -> None:
    dataset, _ = client.dataset()
    assert INSTANT.fullmatch(client.get(f"/v1/datasets/{dataset}").body["created_at"])
    trace_id, _ = client.trace(start_time="2026-02-21T23:30:00.5+01:30")
    trace = client.get(f"/v1/traces/{trace_id}").body
    assert INSTANT.fullmatch(trace["created_at"])
    assert trace["spans"][0]["start_time"] == "2026-02-21T22:00:00.500Z"


def test_ids_are_UUIDs_that_sort_by_time(client: Client) -> None:
    made = [client.dataset()[0] for _ in range(5)]
    assert made == sorted(made)
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)
        for one in made
    )
    assert client.get(f"/v1/datasets/{made[0].upper()}").status == 404


def test_an_idempotency_key_repeats_the_first_answer(client: Client) -> None:
    body = {"project_id": client.project, "name": "once"}
    key = new_id()
    first = client.post("/v1/datasets", body, Idempotency_Key=key)
    again = client.post("/v1/datasets", body, Idempotency_Key=key)
    assert (first.status, again.status, first.raw) == (201, 201, again.raw)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    other = client.post("/v1/datasets", {**body, "name": "other"}, Idempotency_Key=key)
    assert (other.status, other.code) == (409, "CONFLICT")
    elsewhere = client.post("/v1/projects", {"name": "x"}, Idempotency_Key=key)
    assert (elsewhere.status, elsewhere.code) == (409, "CONFLICT")


def test_a_refused_request_does_not_use_up_its_key(client: Client) -> None:
    key = new_id()
    body = {"project_id": client.project, "name": "d", "dataset_id": "no-such"}
    assert client.post("/v1/experiments", body, Idempotency_Key=key).status == 404
    dataset, _ = client.dataset()
    assert client.post("/v1/experiments", {**body, "dataset_id": dataset}, Idempotency_Key=key).status == 201


def test_projects_are_made_listed_and_made_on_the_fly_for_an_administrator(client: Client) -> None:
    name = f"p-{new_id()}"
    made = client.made("/v1/projects", {"id": name, "name": "mine"})
    assert (made["id"], made["name"]) == (name, "mine")
    assert client.post("/v1/projects", {"id": name, "name": "again"}).code == "CONFLICT"
    on_the_fly = f"fly-{new_id()}"
    client.made("/v1/datasets", {"project_id": on_the_fly, "name": "d"})
    known = [row["id"] for row in client.pages("/v1/projects", limit=200)]
    assert name in known
    assert on_the_fly in known


def test_a_projects_token_makes_no_other_projects(client: Client) -> None:
    token = client.made("/v1/tokens", {"name": "t", "role": "write", "project_id": client.project})["token"]
    scoped = client.again(token=token)
    reply = scoped.post("/v1/datasets", {"project_id": f"new-{new_id()}", "name": "d"})
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert [row["id"] for row in scoped.pages("/v1/projects")] == [client.project]
    scoped.close()


def test_a_revoked_token_is_401(client: Client) -> None:
    made = client.made("/v1/tokens", {"name": "t", "role": "read", "project_id": client.project})
    scoped = client.again(token=made["token"])
    assert scoped.get("/v1/datasets", project_id=client.project).status == 200
    assert client.delete(f"/v1/tokens/{made['id']}").status == 200
    assert scoped.get("/v1/datasets", project_id=client.project).code == "UNAUTHORIZED"
    scoped.close()


def test_a_tokens_secret_is_shown_once(client: Client) -> None:
    made = client.made("/v1/tokens", {"name": "t", "role": "read", "project_id": client.project})
    rows = list(client.pages("/v1/tokens", limit=200))
    assert made["token"] not in json.dumps(rows)
    assert made["id"] in {row["id"] for row in rows}


@pytest.mark.parametrize("name", ["x" * 500, "\U0001f600" * 500, "é" * 250])
def test_a_long_name_is_taken_or_refused_alike_and_never_a_failure(client: Client, name: str) -> None:
    reply = client.post("/v1/datasets", {"project_id": client.project, "name": name})
    assert reply.status in (201, 400)
    project = client.post("/v1/projects", {"id": name, "name": name})
    assert project.status in (201, 400, 409)
    if project.status != 400:
        assert client.post("/v1/datasets", {"project_id": name, "name": new_id()}).status == 201
        assert client.post("/v1/datasets", {"project_id": name, "name": new_id() + name[:460]}).status in (
            201,
            400,
        )


def raw_request(client: Client, text: bytes) -> tuple[int, bytes]:
    """The status and body of the answer to a hand-written request."""
    parts = urlsplit(client.address)
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=300) as connection:
        connection.sendall(text)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read()


@pytest.mark.parametrize("length", ["-1", "9223372036854775808", "abc", "1, 2", "99999999999999999999999"])
def test_case_2_a_malformed_content_length_is_refused(client: Client, length: str) -> None:
    head = f"POST /v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {client.token}\r\n"
    text = f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}".encode()
    status, _ = raw_request(client, text)
    assert status in (400, 413)
    assert client.get("/healthz").status == 200


def test_case_2_chunks_past_the_limit_are_413(client: Client) -> None:
    def chunks() -> Any:
        yield b'{"project_id": "p", "name": "'
        for _ in range(300):
            yield b"x" * 65_536
        yield b'"}'

    own = client.again()
    try:
        reply = own.request("POST", "/v1/datasets", chunks(), {"Content-Type": "application/json"})
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server had already answered and closed
    finally:
        own.close()
    assert client.get("/healthz").status == 200
