"""The client of the scoring service: against the real service, and against servers that misbehave on purpose."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.service import ADMIN, ServiceUnderTest

from evenhand.client import ServiceClient
from evenhand.core.errors import OptionError, ServiceError
from evenhand.core.secret import Secret


@pytest.fixture
def client(service: ServiceUnderTest) -> Iterator[ServiceClient]:
    with ServiceClient(service.url, Secret(ADMIN)) as one:
        one.post("/v1/projects", {"id": "p", "name": "p"})
        yield one


def test_a_dataset_an_experiment_and_scores_make_the_round_trip(client: ServiceClient) -> None:
    rows = [{"input": f"q{n}", "expected_output": "yes", "metadata": {"n": n}} for n in range(450)]
    made = client.create_dataset("p", "rows", rows, description="450 rows")
    # More than two pages of 200, in the order in which they were sent.
    items = list(client.dataset_items(made["id"]))
    assert [item["metadata"]["n"] for item in items] == list(range(450))
    found = client.find_dataset("p", "rows")
    assert found is not None
    assert (found["id"], found["item_count"]) == (made["id"], 450)
    assert client.find_dataset("p", "other") is None

    experiment = client.create_experiment("p", "first", made["id"], {"model": "m"})
    runs = [
        {"dataset_item_id": item["id"], "output": "yes" if n % 2 else "no"} for n, item in enumerate(items)
    ]
    sent = client.submit_runs(experiment["id"], runs)
    score = client.create_score(sent["run_ids"][0], "exact_match")
    assert (score["value"], score["source"]) == (0.0, "rule")
    client.create_score(sent["run_ids"][1], "taste", 0.5, rationale="so so")
    client.complete_experiment(experiment["id"])
    summary = client.experiment_summary(experiment["id"])
    assert (summary["status"], summary["run_count"]) == ("completed", 450)
    assert summary["scores_by_scorer"]["taste"]["mean"] == 0.5


def test_the_same_key_is_the_same_call(client: ServiceClient) -> None:
    first = client.post("/v1/datasets", {"project_id": "p", "name": "once"}, key="k1")
    assert client.post("/v1/datasets", {"project_id": "p", "name": "once"}, key="k1") == first
    with pytest.raises(ServiceError) as caught:
        client.post("/v1/datasets", {"project_id": "p", "name": "another"}, key="k1")
    assert (caught.value.status, caught.value.code) == (409, "CONFLICT")


def test_refusals_carry_status_and_code(client: ServiceClient, service: ServiceUnderTest) -> None:
    with pytest.raises(ServiceError, match="NOT_FOUND") as caught:
        client.get("/v1/experiments/none")
    assert caught.value.status == 404
    with ServiceClient(service.url, Secret("wrong")) as stranger, pytest.raises(ServiceError) as denied:
        stranger.get("/v1/projects")
    assert (denied.value.status, denied.value.code) == (401, "UNAUTHORIZED")


def test_items_that_are_refused_are_told(client: ServiceClient) -> None:
    with pytest.raises(ServiceError, match="1 items were refused"):
        client.create_dataset("p", "bad", [{"input": "fine"}, {"input": None}])


@pytest.mark.parametrize(
    "url", ["", "localhost:8321", "ftp://host/", "http://", "http://host:99999", "http://[::1"]
)
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(OptionError, match="not the address of a service"):
        ServiceClient(url)


Answer = Callable[[socket.socket, int], None]


@contextmanager
def misbehaving(answer: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """A server that does what `answer` says with each connection; its address and the requests that it saw."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []

    def work() -> None:
        number = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                try:
                    seen.append(connection.recv(65536))
                    answer(connection, number)
                except OSError:
                    pass
            number += 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


def reply(status: str, body: bytes, *headers: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers))
    return head.encode() + b"Connection: close\r\n\r\n" + body


def test_a_connection_that_breaks_is_tried_again_with_the_same_key() -> None:
    def answer(connection: socket.socket, number: int) -> None:
        if number < 2:
            return  # closed without a word
        connection.sendall(reply("201 Created", b'{"id": "x"}'))

    with misbehaving(answer) as (url, seen), ServiceClient(url) as client:
        assert client.post("/v1/datasets", {"name": "n"}) == {"id": "x"}
    keys = [
        line for request in seen for line in request.split(b"\r\n") if line.startswith(b"Idempotency-Key")
    ]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_an_overloaded_service_is_asked_again() -> None:
    def answer(connection: socket.socket, number: int) -> None:
        busy = reply("503 Service Unavailable", b"{}", "Retry-After: 0")
        connection.sendall(busy if number == 0 else reply("200 OK", b'{"fine": true}'))

    with misbehaving(answer) as (url, seen), ServiceClient(url) as client:
        assert client.get("/v1/projects") == {"fine": True}
    assert len(seen) == 2


def test_a_refusal_is_not_repeated() -> None:
    body = json.dumps({"error": {"code": "INVALID_REQUEST", "message": "no"}}).encode()
    with (
        misbehaving(lambda c, n: c.sendall(reply("400 Bad Request", body))) as (url, seen),
        ServiceClient(url) as client,
        pytest.raises(ServiceError, match="INVALID_REQUEST"),
    ):
        client.post("/v1/scores", {})
    assert len(seen) == 1


def test_another_kind_of_server_is_told_apart() -> None:
    page = reply("200 OK", b"<html>hello</html>", "Content-Type: text/html")
    with (
        misbehaving(lambda c, n: c.sendall(page)) as (url, _),
        ServiceClient(url) as client,
        pytest.raises(ServiceError, match="no JSON: is it a scoring service"),
    ):
        client.get("/v1/projects")


def test_nobody_there_is_said_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        ServiceClient(f"http://127.0.0.1:{port}") as client,
        pytest.raises(ServiceError, match=r"cannot be reached .connection refused.: is a scoring service"),
    ):
        client.get("/v1/projects")


def test_a_path_before_the_interface_is_kept() -> None:
    """Behind a proxy the service may live under a prefix."""
    with (
        misbehaving(lambda c, n: c.sendall(reply("200 OK", b"{}"))) as (url, seen),
        ServiceClient(f"{url}/evenhand/") as client,
    ):
        client.get("/v1/projects", limit=5, cursor=None)
    assert seen[0].startswith(b"GET /evenhand/v1/projects?limit=5 HTTP/1.1\r\n")


def test_the_token_is_in_no_error(service: ServiceUnderTest) -> None:
    with (
        ServiceClient(service.url, Secret("evh_very_secret")) as client,
        pytest.raises(ServiceError) as caught,
    ):
        client.get("/v1/projects")
    assert "evh_very_secret" not in str(caught.value)
    assert "evh_very_secret" not in repr(client)
