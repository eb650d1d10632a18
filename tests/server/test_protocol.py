"""HTTP/1.1 on the wire: what a connection does, seen over raw sockets."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.server.config import RequestLimits

HEAD = f"Host: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\nContent-Type: application/json\r\n".encode()


class Wire:
    """A raw connection and a reader of answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self, *, with_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """The next answer; a status of 0 when the server has closed the connection."""
        line = self._file.readline()
        if not line:
            return 0, {}, b""
        headers: dict[str, str] = {}
        while (header := self._file.readline().strip()) != b"":
            name, _, value = header.decode().partition(": ")
            headers[name] = value
        body = self._file.read(int(headers.get("content-length", 0))) if with_body else b""
        return int(line.split()[1]), headers, body

    def closed(self) -> bool:
        return self._file.read(1) == b""


@contextmanager
def wire(service: ServiceUnderTest) -> Iterator[Wire]:
    connection = Wire(service.port)
    try:
        yield connection
    finally:
        connection.socket.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    folder: Path = tmp_path_factory.mktemp("wire")
    with running_service(f"sqlite:///{folder / 'wire.db'}") as running:
        yield running


@pytest.fixture(scope="module")
def reachable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    """A server configured for an address that others can reach: any name will do."""
    folder: Path = tmp_path_factory.mktemp("reachable")
    with running_service(f"sqlite:///{folder / 'wire.db'}", host="0.0.0.0") as running:
        yield running


def get(path: str, extra: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (path.encode(), HEAD, extra)


def dataset(name: str) -> bytes:
    return json.dumps({"project_id": "wire", "name": name}).encode()


def post(body: bytes, extra: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST /v1/datasets HTTP/1.1\r\n" + HEAD + length + extra + b"\r\n" + body


def test_a_connection_serves_many_requests(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        for _ in range(3):
            connection.send(get("/healthz"))
            status, headers, body = connection.answer()
            assert (status, json.loads(body)["status"]) == (200, "ok")
            assert "connection" not in headers


def test_an_answer_is_the_same_on_a_kept_and_on_a_closing_connection(service: ServiceUnderTest) -> None:
    """The first is written whole by our protocol, the second goes through uvicorn's ASGI messages."""
    for request in (get("/v1/projects"), get("/v1/nothing"), post(b"{}"), post(dataset("")), get("/docs")):
        with wire(service) as connection:
            connection.send(request)
            kept = connection.answer()
            connection.send(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            closing = connection.answer()
            assert closing[1].pop("connection") == "close"
            assert closing == kept
            assert connection.closed()


def test_requests_sent_ahead_are_answered_in_order(service: ServiceUnderTest) -> None:
    names = [f"ahead {n}" for n in range(50)]
    with wire(service) as connection:
        connection.send(b"".join(post(dataset(name)) + get("/healthz") for name in names))
        for name in names:
            status, _, body = connection.answer()
            assert (status, json.loads(body)["name"]) == (201, name)
            assert connection.answer()[0] == 200


def test_a_request_may_come_byte_by_byte(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        for byte in post(dataset("byte by byte")):
            connection.send(bytes([byte]))
        assert connection.answer()[0] == 201
        connection.send(get("/healthz"))
        assert connection.answer()[0] == 200


def test_a_body_in_chunks(service: ServiceUnderTest) -> None:
    body = dataset("in chunks")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    with wire(service) as connection:
        connection.send(
            b"POST /v1/datasets HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
        )
        assert connection.answer()[0] == 201


def test_the_client_is_told_to_go_on(service: ServiceUnderTest) -> None:
    body = dataset("go on")
    with wire(service) as connection:
        whole = post(body, b"Expect: 100-continue\r\n")
        connection.send(whole[: -len(body)])
        assert connection.answer() == (100, {}, b"")
        connection.send(body)
        assert connection.answer()[0] == 201


def test_a_refused_request_is_not_told_to_go_on(service: ServiceUnderTest) -> None:
    head = (
        b"POST /v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
    )
    with wire(service) as connection:
        connection.send(head)
        assert connection.answer()[0] == 401
        # The body that comes all the same belongs to the refused request, not to the next one.
        connection.send(b"0123456789" + get("/healthz"))
        assert connection.answer()[0] == 200


def test_head_has_no_body(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        connection.send(b"HEAD /healthz HTTP/1.1\r\n" + HEAD + b"\r\n" + get("/healthz"))
        status, headers, _ = connection.answer(with_body=False)
        length = headers["content-length"]
        assert status == 200
        status, headers, body = connection.answer()
        assert (status, headers["content-length"], str(len(body))) == (200, length, length)


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(get("/healthz", b"Connection: close\r\n"), id="asked for"),
        pytest.param(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", id="HTTP/1.0"),
    ],
)
def test_the_connection_closes_when_it_should(service: ServiceUnderTest, request_bytes: bytes) -> None:
    with wire(service) as connection:
        connection.send(request_bytes)
        status, headers, _ = connection.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert connection.closed()


def test_an_upgrade_is_not_taken_up(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        connection.send(get("/healthz", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"))
        assert connection.answer()[0] == 200


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"hello\r\n\r\n", id="no HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="smuggling",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nX: a\r\n b\r\nName with space: x\r\n\r\n", id="header name"),
        pytest.param(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 70_000, id="endless head"),
    ],
)
def test_malformed_http_gets_the_json_error_envelope(service: ServiceUnderTest, garbage: bytes) -> None:
    with wire(service) as connection:
        connection.send(garbage)
        status, headers, body = connection.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert json.loads(body)["error"]["code"] == "INVALID_REQUEST"
        assert connection.closed()
    assert service.get("/healthz").status == 200


@pytest.mark.parametrize("name", ["Host", "Authorization", "Content-Type"])
def test_a_header_that_decides_is_given_once(service: ServiceUnderTest, name: str) -> None:
    with wire(service) as connection:
        connection.send(
            get("/healthz", f"{name}: 127.0.0.1\r\n".encode()) + get("/healthz", b"X: 1\r\nX: 2\r\n")
        )
        assert connection.answer()[0] == 400
        assert connection.answer()[0] == 200  # a refusal of the application closes nothing


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"Host:\r\n", id="empty"),
        pytest.param(b"Host: one\r\nHost: one\r\n", id="the same twice"),
        pytest.param(b"Host: one\r\nhOST: two\r\n", id="two"),
        pytest.param(b"Host: user@one\r\n", id="user"),
        pytest.param(b"Host: one/two\r\n", id="path"),
        pytest.param(b"Host: one two\r\n", id="space"),
        pytest.param(b"Host: one, two\r\n", id="list"),
        pytest.param(b"Host: one:port\r\n", id="port"),
        pytest.param(b"Host: ::1\r\n", id="no brackets"),
        pytest.param(b"Host: \xe9\r\n", id="not ASCII"),
    ],
)
def test_a_request_names_one_host_also_where_any_will_do(reachable: ServiceUnderTest, hosts: bytes) -> None:
    with wire(reachable) as connection:
        connection.send(b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n" + get("/healthz"))
        status, _, body = connection.answer()
        assert (status, json.loads(body)["error"]["code"]) == (400, "INVALID_REQUEST")
        assert connection.answer()[0] == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: any.name_at-all:8321\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: [2001:db8::1]:80\r\nConnection: close\r\n\r\n",
    ],
)
def test_any_host_will_do_where_others_can_reach_the_server(
    reachable: ServiceUnderTest, request_bytes: bytes
) -> None:
    with wire(reachable) as connection:
        connection.send(request_bytes)
        assert connection.answer()[0] == 200
        assert connection.closed()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost", 200),
        (b"LOCALHOST:1", 200),
        (b"[::1]:8321", 200),
        (b"127.0.0.1.", 400),
        (b"localhost.evil.example", 400),
        (b"[127.0.0.1", 400),
    ],
)
def test_a_loopback_server_goes_by_loopback_names(
    service: ServiceUnderTest, host: bytes, status: int
) -> None:
    with wire(service) as connection:
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert connection.answer()[0] == status


def test_garbage_after_a_request_leaves_its_answer_alone(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        connection.send(post(dataset("before garbage")) + b"\x00\x01garbage\r\n\r\n")
        status, headers, _ = connection.answer()
        assert (status, headers["connection"]) == (201, "close")
        assert connection.closed()


def test_a_broken_chunk_changes_nothing(service: ServiceUnderTest) -> None:
    with wire(service) as connection:
        connection.send(
            b"POST /v1/datasets HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n"
        )
        assert connection.answer()[0] == 400
        assert connection.closed()


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(service: ServiceUnderTest) -> None:
    whole = post(dataset("left in the middle"))
    for cut in range(10, len(whole), 40):
        with wire(service) as connection:
            connection.send(whole[:cut])
    assert service.post("/v1/datasets", {"project_id": "wire", "name": "left in the middle"}).status == 201


def test_a_large_body_and_a_large_answer(service: ServiceUnderTest) -> None:
    dataset_id = service.post("/v1/datasets", {"project_id": "wire", "name": "large"}).body["id"]
    lines = (json.dumps({"input": "x" * 50_000}) + "\n").encode() * 100
    path = f"/v1/datasets/{dataset_id}/items/import"
    assert service.raw("POST", path, lines, {"Content-Type": "application/x-ndjson"}).status in (200, 201)
    with wire(service) as connection:
        path = f"/v1/datasets/{dataset_id}/items?limit=100"
        connection.send(get(path) * 5)  # answers pile up: 25 MB that nobody reads yet
        for _ in range(5):
            status, _, body = connection.answer()
            assert (status, len(json.loads(body)["items"])) == (200, 100)


def test_a_body_that_is_refused_early_is_read_to_its_end(tmp_path: Path) -> None:
    """Also for clients that ask to close, as `urllib` does: closing while they send could lose the answer."""
    body = b"x" * 3_000_000
    with running_service(
        f"sqlite:///{tmp_path / 'large.db'}", limits=RequestLimits(body_bytes=1_000)
    ) as service:
        for extra in (b"", b"Connection: close\r\n"):
            with wire(service) as connection:
                connection.send(post(body, extra))
                status, _, answer = connection.answer()
                assert (status, json.loads(answer)["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
                if extra:
                    assert connection.closed()
                else:
                    connection.send(get("/healthz"))
                    assert connection.answer()[0] == 200


def test_quiet_connections_and_slow_heads_are_closed(tmp_path: Path) -> None:
    with running_service(
        f"sqlite:///{tmp_path / 'slow.db'}", limits=RequestLimits(idle_seconds=4)
    ) as service:
        with wire(service) as connection:
            assert connection.closed()
        with wire(service) as connection:
            connection.send(b"GET /healthz HTTP/1.1\r\nHost: 127.")
            assert connection.answer()[0] == 408
            assert connection.closed()


def test_a_stopping_server_answers_what_it_was_asked(tmp_path: Path) -> None:
    body = dataset("asked before the stop")
    stopping = threading.Event()
    answers: list[int] = []

    def go_on(connection: Wire) -> None:
        stopping.wait(300)
        connection.send(body)
        answers.append(connection.answer()[0])

    with running_service(f"sqlite:///{tmp_path / 'stop.db'}") as service:
        connection = Wire(service.port)
        connection.send(post(body, b"Expect: 100-continue\r\n")[: -len(body)])
        assert connection.answer()[0] == 100
        asking = threading.Thread(target=go_on, args=(connection,))
        asking.start()
        stopping.set()
    asking.join(300)
    assert answers == [201]
    assert connection.closed()
    connection.socket.close()
