"""The service as its clients meet it: a real server process on a free port, and a small HTTP client."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from evenhand.core.ids import new_id
from tests.postgres import free_port

ADMIN_TOKEN = "evh_test_" + "a" * 43
START_SECONDS = 120.0


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The contract's error code."""
        code: str = self.body["error"]["code"]
        return code


class Client:
    """One keep-alive connection with one token. Not shared between threads: use `again`."""

    def __init__(
        self, address: str, token: str | None = ADMIN_TOKEN, project: str = "default", *, resend: bool = True
    ) -> None:
        """`resend`: a request that met a connection which the server had closed is sent again."""
        self.address = address
        self._resend = resend
        self.token = token
        self.project = project
        parts = urlsplit(address)
        self._place = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._connection: http.client.HTTPConnection | None = None

    def again(self, *, token: str | type[Any] | None = Any, project: str | None = None) -> "Client":
        """Another connection, with another token where one is given."""
        chosen = self.token if token is Any else token
        return Client(self.address, chosen, project or self.project)  # type: ignore[arg-type]  # Any is the mark of "the same"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
    ) -> Reply:
        """One call."""
        sent = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        sent.update(headers or {})
        for attempt in (0, 1):
            fresh = self._connection is None
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._place, timeout=timeout)
            try:
                self._connection.request(method, path, body=body, headers=sent)
                answer = self._connection.getresponse()
                raw = answer.read()
            except (ConnectionError, http.client.HTTPException, OSError):
                self.close()
                if attempt or fresh or not self._resend:
                    raise
                continue
            if answer.will_close:
                self.close()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, raw)
        raise AssertionError("unreachable")

    def get(self, path: str, /, **query: Any) -> Reply:
        asked = {k: v for k, v in query.items() if v is not None}
        return self.request("GET", path + (f"?{urlencode(asked)}" if asked else ""))

    def post(self, path: str, value: Any = None, /, **headers: str) -> Reply:
        """`value` as JSON; header names with underscores for dashes."""
        named = {key.replace("_", "-"): text for key, text in headers.items()}
        body = b"" if value is None else json.dumps(value).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json", **named})

    def post_raw(
        self, path: str, body: bytes, content_type: str = "application/json", **headers: str
    ) -> Reply:
        named = {key.replace("_", "-"): text for key, text in headers.items()}
        return self.request("POST", path, body, {"Content-Type": content_type, **named})

    def delete(self, path: str) -> Reply:
        return self.request("DELETE", path)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def pages(self, path: str, /, **query: Any) -> Iterator[Any]:
        """Every item of a list."""
        cursor = None
        while True:
            reply = self.get(path, cursor=cursor, **query)
            assert reply.status == 200, reply.raw
            yield from reply.body["items"]
            cursor = reply.body["next_cursor"]
            if cursor is None:
                return

    # What most tests need first.

    def dataset(self, items: Iterable[Any] = (), name: str | None = None) -> tuple[str, list[str]]:
        """The ids of a new dataset and of its items."""
        made = self.made("/v1/datasets", {"project_id": self.project, "name": name or new_id()})
        ids = [
            self.made(
                f"/v1/datasets/{made['id']}/items", item if isinstance(item, dict) else {"input": item}
            )["id"]
            for item in items
        ]
        return made["id"], ids

    def experiment(self, dataset_id: str, **more: Any) -> str:
        body = {"project_id": self.project, "name": new_id(), "dataset_id": dataset_id, **more}
        made: str = self.made("/v1/experiments", body)["id"]
        return made

    def runs(self, experiment_id: str, runs: list[dict[str, Any]]) -> list[str]:
        ids: list[str] = self.made(f"/v1/experiments/{experiment_id}/runs", {"runs": runs})["run_ids"]
        return ids

    def run(self, output: Any, expected: Any = None, **more: Any) -> str:
        """The id of one run of a new experiment."""
        item: dict[str, Any] = (
            {"input": "q"} if expected is None else {"input": "q", "expected_output": expected}
        )
        dataset_id, [item_id] = self.dataset([item])
        experiment = self.experiment(dataset_id)
        return self.runs(experiment, [{"dataset_item_id": item_id, "output": output, **more}])[0]

    def spans(self, *spans: dict[str, Any], **more: Any) -> Reply:
        return self.post("/v1/traces/ingest", {"spans": list(spans), "project_id": self.project, **more})

    def trace(self, **more: Any) -> tuple[str, str]:
        """The ids of a new trace and its root span."""
        one = span(**more)
        reply = self.spans(one)
        assert reply.status == 201, reply.raw
        return one["trace_id"], one["id"]

    def made(self, path: str, value: Any) -> Any:
        reply = self.post(path, value)
        assert reply.status == 201, (reply.status, reply.raw)
        return reply.body


def span(**more: Any) -> dict[str, Any]:
    """A span that is right, with ids of its own."""
    return {
        "id": f"span-{new_id()}",
        "trace_id": f"trace-{new_id()}",
        "name": "answer",
        "start_time": "2026-02-21T22:00:00.000Z",
        **more,
    }


def part(text: str) -> str:
    """An id as a part of a path."""
    return quote(text, safe="")


class ServerProcess:
    """`evenhand serve` in a process of its own."""

    def __init__(
        self, database: str, *, folder: Path, options: Iterable[str] = (), **environment: str
    ) -> None:
        self.database = database
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._options = list(options)
        self.wrapper: list[str] = []
        """A command that starts the server's, such as one that sets limits."""
        self._environment = environment
        self._log = folder / f"server-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "evenhand", "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command = self.wrapper + command
        command += ["--database", self.database, *self._options]
        environment = {**os.environ, "EVENHAND_ADMIN_TOKEN": ADMIN_TOKEN, **self._environment}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                raise AssertionError(f"the server ended with {self._process.returncode}: {self.log()}")
            client = Client(self.address, None)
            try:
                if client.get("/readyz").status == 200:
                    return
            except OSError:
                pass  # not listening yet
            finally:
                client.close()
            time.sleep(0.02)
        raise AssertionError(f"the server was not ready after {START_SECONDS} s: {self.log()}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As the power cut does it: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """As an administrator does it: SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        try:
            status = self._process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._process = None
        return status

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def client(self, **more: Any) -> Client:
        return Client(self.address, **more)


@contextmanager
def running(database: str, folder: Path, *options: str, **environment: str) -> Iterator[ServerProcess]:
    """A server that is up inside the block."""
    server = ServerProcess(database, folder=folder, options=options, **environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def in_parallel(count: int, work: Any) -> list[Any]:
    """The results of `work(index)` from as many threads, started together."""
    results: list[Any] = [None] * count
    gate = threading.Barrier(count)

    def one(index: int) -> None:
        gate.wait()
        results[index] = work(index)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
