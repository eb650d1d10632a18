"""More than the server can take: refused before anything is accepted, said how long to wait, counted."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client, Reply

from evenhand.server.config import RequestLimits
from evenhand.store.connection import Connection

WAIT = 60.0


@contextmanager
def limited(tmp_path: Path, limits: RequestLimits) -> Iterator[tuple[ServiceUnderTest, Client]]:
    with running_service(f"sqlite:///{tmp_path / 'evenhand.db'}", limits=limits) as service:
        client = Client(service.url, ADMIN)
        yield service, client
        client.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.005)


def metric(client: Client, line: str) -> float:
    """The value of the metric whose line starts like this; 0 when there is none."""
    found = re.search(rf"^{re.escape(line)} (\S+)$", client.get("/metrics").raw.decode(), re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def unfinished(
    service: ServiceUnderTest, path: str = "/v1/datasets", kind: str = "application/json"
) -> socket.socket:
    """A request whose body does not come."""
    one = socket.create_connection(("127.0.0.1", service.port), timeout=WAIT)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: 100\r\n\r\n{{"
    )
    one.sendall(head.encode())
    return one


def everything(one: socket.socket) -> bytes:
    answer = b""
    while piece := one.recv(65536):
        answer += piece
    return answer


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/datasets", "application/json"),
        ("/v1/traces", "application/x-protobuf"),
        ("/v1/datasets/{dataset}/items/import", "application/x-ndjson"),
    ],
)
def test_a_body_that_does_not_come_is_408_and_the_connection_is_closed(
    tmp_path: Path, path: str, kind: str
) -> None:
    with limited(tmp_path, RequestLimits(idle_seconds=2)) as (service, client):
        dataset, _ = client.dataset()
        with unfinished(service, path.format(dataset=dataset), kind) as one:
            head, _, body = everything(one).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 "), head
        assert head.lower().count(b"connection: close") == 1
        if kind == "application/x-protobuf":
            status = Status.FromString(body)
            assert (status.code, status.message) == (4, "The body took too long to arrive.")
        else:
            assert json.loads(body)["error"]["code"] == "REQUEST_TIMEOUT"
        assert client.get("/v1/projects").status == 200
        assert metric(client, "evenhand_requests_under_way") == 1
        assert metric(client, "evenhand_body_bytes") == 0
        assert 'status="408"' in client.get("/metrics").raw.decode()


def test_too_many_requests_at_once_are_503_but_probes_are_answered(tmp_path: Path) -> None:
    with limited(tmp_path, RequestLimits(requests=2)) as (service, client):
        held = [unfinished(service) for _ in range(2)]
        try:
            until(
                lambda: metric(client, "evenhand_requests_under_way") == 3
            )  # the two, and the question itself
            refused = client.post("/v1/projects", {"id": "refused", "name": "x"})
            assert (refused.status, refused.code) == (503, "OVERLOADED")
            assert int(refused.headers["retry-after"]) > 0
            for probe in ("/healthz", "/readyz", "/metrics"):
                assert client.get(probe).status == 200, probe
            assert metric(client, "evenhand_requests_refused_total") == 1
        finally:
            for one in held:
                one.close()
        until(lambda: metric(client, "evenhand_requests_under_way") == 1)
        assert client.get("/v1/projects").status == 200
        assert "refused" not in {row["id"] for row in client.get("/v1/projects").body["items"]}


def test_too_many_bytes_of_bodies_at_once_are_503(tmp_path: Path) -> None:
    with limited(tmp_path, RequestLimits(buffered_bytes=100_000)) as (_, client):
        pieces = (b'{"project_id": "p", "name": "', *[b"x" * 50_000] * 6, b'"}')
        refused = client.request("POST", "/v1/datasets", iter(pieces), {"Content-Type": "application/json"})
        assert (refused.status, refused.code) == (503, "OVERLOADED")
        assert int(refused.headers["retry-after"]) > 0
        assert metric(client, "evenhand_body_bytes") == 0
        assert client.post("/v1/datasets", {"project_id": "p", "name": "x"}).status == 201


@contextmanager
def busy_writer(service: ServiceUnderTest) -> Iterator[None]:
    """The writer is kept from its queue."""
    started, go_on = threading.Event(), threading.Event()

    def work(_: Connection) -> None:
        started.set()
        assert go_on.wait(WAIT)

    thread = threading.Thread(target=lambda: service.database.write_now(work))
    thread.start()
    assert started.wait(WAIT)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


def test_a_full_queue_is_503_for_the_one_too_many_and_the_others_are_stored(tmp_path: Path) -> None:
    with limited(tmp_path, RequestLimits(waiting_writes=3)) as (service, client):
        replies: list[Reply] = []

        def write(name: str) -> None:
            own = client.again()
            replies.append(own.post("/v1/projects", {"id": name, "name": name}))
            own.close()

        accepted = [threading.Thread(target=write, args=(f"accepted-{n}",)) for n in range(3)]
        with busy_writer(service):
            for thread in accepted:
                thread.start()
            until(lambda: metric(client, "evenhand_writes_waiting") == 3)
            refused = client.post("/v1/projects", {"id": "refused", "name": "x"})
            assert (refused.status, refused.code) == (503, "OVERLOADED")
            assert int(refused.headers["retry-after"]) > 0
            span = f'{{"traceId": "{"ab" * 16}", "spanId": "{"cd" * 8}", "startTimeUnixNano": "1"}}'
            otlp = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}'
            exported = client.post_raw("/v1/traces", otlp.encode())
            assert (exported.status, exported.body["code"]) == (503, 14)
            assert int(exported.headers["retry-after"]) > 0
            # reading goes on meanwhile
            assert client.get("/v1/projects").status == 200
            # housekeeping may have been refused as well
            assert metric(client, "evenhand_writes_refused_total") >= 2
        for thread in accepted:
            thread.join()
        assert [reply.status for reply in replies] == [201] * 3
        names = {row["id"] for row in client.get("/v1/projects").body["items"]}
        assert {"accepted-0", "accepted-1", "accepted-2"} <= names
        assert "refused" not in names
        assert client.get(f"/v1/traces/{'ab' * 16}").status == 404


def test_wrong_tokens_are_429_with_retry_after_and_counted(tmp_path: Path) -> None:
    with limited(tmp_path, RequestLimits(wrong_tokens_per_minute=3)) as (_, client):
        guesser = client.again(token="evh_x_guess")
        replies = [guesser.get("/v1/projects") for _ in range(5)]
        assert [reply.status for reply in replies] == [401, 401, 401, 429, 429]
        assert replies[-1].code == "TOO_MANY_REQUESTS"
        assert int(replies[-1].headers["retry-after"]) > 0
        line = 'evenhand_requests_total{method="GET",path="/v1/projects",status="429"}'
        assert metric(client, line) == 2
        assert client.get("/v1/projects").status == 200
        guesser.close()
