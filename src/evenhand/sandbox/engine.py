"""A Docker-compatible engine through its HTTP API on a local socket: the few calls that the back end needs."""

import http.client
import json
import select
import socket
import time
from typing import Any
from urllib.parse import quote

_API = "/v1.40"
_STREAM_HEADER = 8
_SECONDS = 60.0


class EngineError(Exception):
    """The engine refused or could not be reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = _connected(self.path)


def _connected(path: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.settimeout(_SECONDS)
    try:
        found.connect(path)
    except OSError as error:
        found.close()
        raise EngineError(f"no engine answers at {path}: {error.strerror or error}") from None
    return found


class Engine:
    """One engine. Every call opens its own connection, so that threads do not share one."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON, or None when it has none."""
        connection = _Connection(self.path)
        try:
            data = None if body is None else json.dumps(body)
            headers = {} if data is None else {"Content-Type": "application/json"}
            connection.request(method, _API + path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"the engine at {self.path} went away: {error}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise EngineError(_message(text), response.status)
        return (
            json.loads(text) if text.strip() and "json" in response.headers.get("Content-Type", "") else None
        )

    def create(self, specification: dict[str, Any]) -> str:
        """Make a container and give its id."""
        return str(self.call("POST", "/containers/create", specification)["Id"])

    def start(self, container: str) -> None:
        """Start it."""
        self.call("POST", f"/containers/{container}/start")

    def remove(self, container: str) -> None:
        """Kill and remove it; one that is gone or going is fine."""
        try:
            self.call("DELETE", f"/containers/{container}?force=1&v=1")
        except EngineError as error:
            if error.status not in (404, 409):
                raise

    def labelled(self, label: str) -> list[str]:
        """Every container with this label, running or not."""
        chosen = quote(json.dumps({"label": [label]}))
        return [str(found["Id"]) for found in self.call("GET", f"/containers/json?all=1&filters={chosen}")]

    def attach(self, container: str) -> "Stream":
        """A two-way stream to the container's standard streams."""
        found = _connected(self.path)
        try:
            query = "stream=1&stdin=1&stdout=1&stderr=1"
            found.sendall(
                f"POST {_API}/containers/{container}/attach?{query} HTTP/1.1\r\n"
                "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
            )
            head = b""
            while b"\r\n\r\n" not in head:
                part = found.recv(4096)
                if not part or len(head) > 65536:
                    raise EngineError("the engine did not open a stream")
                head += part
            first, _, rest = head.partition(b"\r\n\r\n")
            status = int(first.split(b" ", 2)[1])
            if status not in (101, 200):
                raise EngineError(_message(rest), status)
        except BaseException:
            found.close()
            raise
        return Stream(found, rest)


class Stream:
    """Standard streams of a container: input one way, output and error in numbered pieces the other way."""

    def __init__(self, connection: socket.socket, received: bytes) -> None:
        self.connection = connection
        self.buffer = bytearray(received)
        self.errors = bytearray()

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def receive(self, until: float) -> bytes | None:
        """The next piece of standard output; empty at the end, None when the moment has passed."""
        while True:
            while len(self.buffer) >= _STREAM_HEADER:
                length = int.from_bytes(self.buffer[4:8], "big")
                if len(self.buffer) < _STREAM_HEADER + length:
                    break
                number = self.buffer[0]
                piece = bytes(self.buffer[_STREAM_HEADER : _STREAM_HEADER + length])
                del self.buffer[: _STREAM_HEADER + length]
                if number == 1 and piece:
                    return piece
                self.errors += piece[: max(0, 4096 - len(self.errors))]
            left = max(0.0, until - time.monotonic())
            if not select.select([self.connection], [], [], left)[0]:
                return None
            try:
                part = self.connection.recv(1 << 18)
            except OSError:
                return b""
            if not part:
                return b""
            self.buffer += part

    def close(self) -> None:
        self.connection.close()


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace").strip()[:300] or "the engine gave no reason"
