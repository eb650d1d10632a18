"""A raw HTTP load generator in its own process: as little work per request as possible, so the server is measured.

`python -m bench.http_load PORT SECONDS CLIENTS FILE`: FILE holds requests as a JSON list of strings; each client sends
them round-robin from its own start, one at a time. Prints one JSON object.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast


@dataclass(frozen=True)
class LoadResult:
    """What the clients saw."""

    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, requests: list[bytes], start: int, deadline: float) -> None:
        self.requests = requests
        self.position = start
        self.deadline = deadline
        self.times: list[float] = []
        self.failed = 0
        self.done = asyncio.get_running_loop().create_future()
        self.buffer = b""
        self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        self.send()

    def send(self) -> None:
        self.sent = time.perf_counter()
        if self.sent > self.deadline:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self.position = (self.position + 1) % len(self.requests)
        self.transport.write(self.requests[self.position])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.times.append(time.perf_counter() - self.sent)
        if head[9:10] != b"2":
            self.failed += 1
        self.buffer = b""
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.failed += 1
            self.done.set_result(None)


async def drive(port: int, seconds: float, clients: int, requests: list[bytes]) -> LoadResult:
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    made = []
    for n in range(clients):
        _, client = await loop.create_connection(
            lambda n=n: Client(requests, n * len(requests) // clients, start + seconds),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        made.append(client)
    await asyncio.gather(*(client.done for client in made))
    elapsed = time.perf_counter() - start
    times = sorted(t for client in made for t in client.times)
    if not times:
        return LoadResult(0.0, 0.0, 0.0, sum(client.failed for client in made))
    return LoadResult(
        per_second=len(times) / elapsed,
        p50_ms=times[len(times) // 2] * 1000,
        p99_ms=times[min(len(times) - 1, len(times) * 99 // 100)] * 1000,
        failed=sum(client.failed for client in made),
    )


def http_request(
    method: str, path: str, token: str, body: bytes = b"", content_type: str = "application/json"
) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def load(port: int, requests: Sequence[bytes], *, seconds: float, clients: int) -> LoadResult:
    """Run the generator in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requests.json"
        file.write_text(json.dumps([request.decode("latin-1") for request in requests]))
        done = subprocess.run(
            [sys.executable, "-m", "bench.http_load", str(port), str(seconds), str(clients), str(file)],
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds + 15,
            cwd=Path(__file__).resolve().parent.parent,
        )
    return LoadResult(**json.loads(done.stdout))


def main() -> None:
    port, seconds, clients, file = sys.argv[1:]
    requests = [text.encode("latin-1") for text in json.loads(Path(file).read_text())]
    import uvloop  # only the generator's own process needs it

    result = uvloop.run(drive(int(port), float(seconds), int(clients), requests))
    print(json.dumps(result.__dict__))


if __name__ == "__main__":
    main()
