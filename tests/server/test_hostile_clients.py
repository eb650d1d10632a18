"""Clients that mean harm, or know no better: bodies that hold more than they seem to, uploads that end in the middle,
many connections that do nothing, and a stop while all that is under way."""

import gzip
import json
import os
import resource
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess, running, span

from evenhand.server.config import RequestLimits

LINES = {"Content-Type": "application/x-ndjson"}
PACKED = LINES | {"Content-Encoding": "gzip"}
WAIT = 60.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    limits = RequestLimits(query_seconds=60.0, idle_seconds=600)
    with running_service(f"sqlite:///{folder / 'hostile.db'}", limits=limits) as one:
        yield one


@pytest.fixture
def client(service: ServiceUnderTest) -> Iterator[Client]:
    one = Client(service.url, ADMIN, "hostile")
    yield one
    one.close()


def import_path(dataset: str) -> str:
    return f"/v1/datasets/{dataset}/items/import"


def inputs(client: Client, dataset: str) -> list[object]:
    return [item["input"] for item in client.pages(f"/v1/datasets/{dataset}/items", limit=200)]


# Packed bodies.


def test_files_packed_one_by_one_and_put_together_come_in_whole(client: Client) -> None:
    """`cat a.gz b.gz` is a gzip file; whoever reads only the first part loses the rest in silence."""
    dataset, _ = client.dataset()
    parts = [gzip.compress(b'{"input": %d}\n' % number) for number in range(50)]
    parts.insert(7, gzip.compress(b""))
    reply = client.request("POST", import_path(dataset), b"".join(parts), PACKED)
    assert (reply.status, reply.body["imported_count"]) == (200, 50)
    assert inputs(client, dataset) == list(range(50))
    halves = json.dumps({"project_id": "hostile", "name": "in two halves"}).encode()
    body = gzip.compress(halves[:20]) + gzip.compress(halves[20:])
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.request("POST", "/v1/datasets", body, headers).body["name"] == "in two halves"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b'{"input": 1}\n') + b"something else"),
        ("gzip", gzip.compress(b'{"input": 1}\n') + gzip.compress(b'{"input": 2}\n')[:-5]),
        ("gzip", gzip.compress(b'{"input": 1}\n')[:-1]),
        ("gzip", b""),
        ("deflate", zlib.compress(b'{"input": 1}\n') + zlib.compress(b'{"input": 2}\n')),
        ("deflate", zlib.compress(b'{"input": 1}\n') + b"x"),
    ],
    ids=["garbage behind", "second cut off", "cut off", "empty", "two streams", "byte behind"],
)
def test_what_is_packed_wrongly_changes_nothing(client: Client, encoding: str, body: bytes) -> None:
    dataset, _ = client.dataset()
    reply = client.request("POST", import_path(dataset), body, LINES | {"Content-Encoding": encoding})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert inputs(client, dataset) == []


def test_a_bomb_of_many_small_parts_is_413(tmp_path: Path) -> None:
    limits = RequestLimits(query_seconds=60.0, body_bytes=1_000_000)
    with running_service(f"sqlite:///{tmp_path / 'e.db'}", limits=limits) as service:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        nothing, much = gzip.compress(b""), gzip.compress(b" " * 100_000)
        assert service.raw("POST", "/v1/datasets", nothing * 20_000, headers).status == 400
        assert service.raw("POST", "/v1/datasets", much * 11, headers).status == 413


# Large and tiny pieces.


def test_a_large_body_is_read_like_a_small_one(client: Client) -> None:
    """From a mebibyte on it is read on another thread; nothing else changes."""
    dataset, _ = client.dataset()
    path, long = f"/v1/datasets/{dataset}/items", "x" * 2_000_000
    assert client.made(path, {"input": long})["input"] == long
    wrong = client.post(path, {"input": long, "metadata": 1})
    assert (wrong.status, wrong.code) == (400, "INVALID_REQUEST")
    twice = b'{"input": 1, "input": "' + long.encode() + b'"}'
    refused = client.request("POST", path, twice, {"Content-Type": "application/json"})
    assert (refused.status, refused.body["error"]["details"]) == (400, {"key": "input"})


@pytest.mark.parametrize("bad", ["{}", "0", '{"id": 1}'])
def test_of_far_too_many_bad_spans_none_is_looked_at(client: Client, bad: str) -> None:
    """Naming them would take minutes."""
    body = f'{{"spans": [{",".join([bad] * 500_000)}]}}'.encode()
    reply = client.request("POST", "/v1/traces/ingest", body, {"Content-Type": "application/json"})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.body["error"]["details"] == {"field": "spans", "limit": 10_000}


def test_a_span_has_as_many_scores_as_a_run(client: Client) -> None:
    one = {"scorer_name": "s", "value": 1}
    refused = client.spans(span(scores=[one] * 1_001))
    assert (refused.status, refused.code) == (400, "INVALID_SPAN")
    assert refused.body["error"]["details"]["field"] == "scores"
    assert client.spans(span(scores=[one] * 1_000)).status == 201


def test_a_line_may_come_in_any_pieces(client: Client) -> None:
    """Also one byte at a time, with line ends, and parts of characters, where the pieces end."""
    lines = '{"input": "é"}\n\n{"input": 2}\r\n{"input": "\\n"}\nbad\n{"input": "last"}'.encode()
    for size in (1, 2, 3, 1000):
        dataset, _ = client.dataset()
        pieces = (lines[at : at + size] for at in range(0, len(lines), size))
        reply = client.request("POST", import_path(dataset), pieces, LINES)
        assert reply.body["skipped"] == [{"line": 5, "reason": "invalid_json"}]
        assert inputs(client, dataset) == ["é", 2, "\n", "last"]


# Uploads that end in the middle.


def unnamed_files() -> int:
    """Files without a name that this process has open, as uploads are."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            found += os.readlink(f"/proc/self/fd/{name}").endswith("(deleted)")
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files as Linux shows them")
@pytest.mark.parametrize("how", ["close", "reset", "half-close"])
def test_an_import_that_ends_in_the_middle_leaves_nothing(
    service: ServiceUnderTest, client: Client, how: str
) -> None:
    dataset, _ = client.dataset()
    head = (
        f"POST {import_path(dataset)} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n"
        "Content-Type: application/x-ndjson\r\nContent-Length: 100000000\r\n\r\n"
    )
    before = unnamed_files()
    with socket.create_connection(("127.0.0.1", service.port), timeout=WAIT) as upload:
        upload.sendall(head.encode() + b'{"input": 1}\n' * 50_000)
        until(lambda: unnamed_files() == before + 1)
        if how == "reset":
            upload.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        elif how == "half-close":
            upload.shutdown(socket.SHUT_WR)
            assert upload.recv(100) == b""
    until(lambda: unnamed_files() == before)
    until(lambda: b"evenhand_requests_under_way 1\n" in client.get("/metrics").raw)
    assert inputs(client, dataset) == []
    assert client.get(f"/v1/datasets/{dataset}").body["version"] == 1


# A stop.


def begun_import(server: ServerProcess, dataset: str, body: bytes) -> socket.socket:
    """An upload whose server waits for the rest."""
    head = (
        f"POST {import_path(dataset)} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
        f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    upload = socket.create_connection(("127.0.0.1", server.port), timeout=300)
    upload.sendall(head.encode())
    assert upload.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    upload.sendall(body[: len(body) // 2])
    return upload


def listening(server: ServerProcess) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=WAIT).close()
    except ConnectionError:
        return False
    return True


@pytest.mark.parametrize("finishes", [True, False])
def test_a_stop_waits_for_an_upload_for_a_while(tmp_path: Path, finishes: bool) -> None:
    body = b'{"input": 1}\n' * 10_000
    with running(f"sqlite:///{tmp_path / 'e.db'}", tmp_path) as server:
        client = server.client()
        dataset, _ = client.dataset()
        client.close()
        with begun_import(server, dataset, body) as upload:
            statuses: list[int] = []
            stopping = threading.Thread(target=lambda: statuses.append(server.stop()))
            stopping.start()
            until(lambda: not listening(server))
            answer = b""
            if finishes:
                with suppress(ConnectionError):
                    upload.sendall(body[len(body) // 2 :])
                    answer = upload.recv(65536)
            stopping.join()
        assert statuses == [0]
        assert "Traceback" not in server.log()
        server.start()
        client = server.client()
        count = client.get(f"/v1/datasets/{dataset}").body["item_count"]
        client.close()
    # On a machine so busy that the rest comes too late, nothing is acknowledged and nothing is stored.
    acknowledged = answer.startswith(b"HTTP/1.1 200 ")
    assert count == (10_000 if acknowledged else 0)
    assert finishes or not acknowledged


# Many connections.


@contextmanager
def with_few_files(folder: Path, files: int) -> Iterator[ServerProcess]:
    """A server that may have so many files open, and no more."""
    server = ServerProcess(f"sqlite:///{folder / 'e.db'}", folder=folder)
    server.wrapper = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"]
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_idle_connections_use_up_no_files_that_the_server_needs(tmp_path: Path) -> None:
    """Each new client takes the place of the one that has been idle for longest; uploads have their file."""
    with with_few_files(tmp_path, 450) as server, ExitStack() as stack:
        client = server.client()
        dataset, _ = client.dataset()
        for _ in range(500):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=WAIT))
        fresh = server.client()
        assert fresh.get("/healthz").status == 200
        reply = fresh.request("POST", import_path(dataset), b'{"input": 1}', LINES)
        assert (reply.status, reply.body["imported_count"]) == (200, 1)
        assert len(os.listdir(f"/proc/{server.pid}/fd")) < 400
        fresh.close()
        client.close()


def test_the_limit_on_open_files_is_raised(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'e.db'}", tmp_path) as server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert soft == (65_536 if hard == resource.RLIM_INFINITY else min(max(soft, 65_536), hard))
