"""A real server over a fresh database, in this process, on a free port; and a small client for it.

Use the fixtures `service` (both databases) or `sqlite_service`. Every call goes over a real socket.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from evenhand.core.secret import Secret
from evenhand.server.app import make_application
from evenhand.server.config import RequestLimits, ServerConfig
from evenhand.server.http.routes import Route
from evenhand.server.http.sessions import Sessions
from evenhand.server.serve import uvicorn_server
from evenhand.store.database import Database, open_database

ADMIN = "admin-token-of-the-tests"


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str | None:
        return self.body["error"]["code"] if isinstance(self.body, dict) and "error" in self.body else None


class ServiceUnderTest:
    """Address, database and calls. One connection per call: threads may share it."""

    def __init__(self, port: int, database: Database, sessions: Sessions) -> None:
        self.port = port
        self.database = database
        self.sessions = sessions

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        token: str | None = ADMIN,
    ) -> Reply:
        sent = dict(headers or {})
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        is_json = found.get("content-type", "").startswith("application/json")
        return Reply(response.status, json.loads(data) if is_json and data else data, found)

    def get(self, path: str, *, token: str | None = ADMIN, **query: Any) -> Reply:
        return self.raw("GET", path + (f"?{urlencode(query)}" if query else ""), token=token)

    def post(
        self, path: str, body: Any = None, *, token: str | None = ADMIN, headers: dict[str, str] | None = None
    ) -> Reply:
        data = json.dumps({} if body is None else body).encode()
        return self.raw(
            "POST", path, data, {"Content-Type": "application/json", **(headers or {})}, token=token
        )

    def delete(self, path: str, *, token: str | None = ADMIN) -> Reply:
        return self.raw("DELETE", path, token=token)

    def token(self, project_id: str, role: str = "write") -> str:
        """The secret of a new token for one project."""
        reply = self.post("/v1/tokens", {"name": "test", "role": role, "project_id": project_id})
        assert reply.status == 201, reply
        return str(reply.body["token"])


def page_block(page: str, language: str) -> str:
    """All blocks of a language in a page of the documentation, one after the other."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found
    return "".join(found)


def run_examples(service: ServiceUnderTest, script: str) -> str:
    """What a page's shell examples print."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        env={"PATH": os.environ["PATH"], "URL": service.url, "TOKEN": ADMIN},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def path_id(object_id: str) -> str:
    """An id as one segment of a path."""
    return quote(object_id, safe="")


@contextmanager
def running_service(
    database_url: str,
    *,
    limits: RequestLimits | None = None,
    routes: Sequence[Route] | None = None,
    **config: Any,
) -> Iterator[ServiceUnderTest]:
    """A server over the database at `database_url`, stopped gracefully at the end."""
    # A busy machine must not turn a query of the tests into one that takes too long.
    chosen = limits or RequestLimits(query_seconds=60.0)
    settings = ServerConfig(database=database_url, port=0, admin_token=Secret(ADMIN), limits=chosen, **config)
    database = open_database(
        database_url, capacity=settings.limits.waiting_writes, time_limit=settings.limits.query_seconds
    )
    application = make_application(settings, database, routes)
    server = uvicorn_server(application)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        service = ServiceUnderTest(listener.getsockname()[1], database, application.service.sessions)
        # not /readyz: a server with a tiny time limit for queries may never be ready on a busy machine
        assert service.get("/healthz").status == 200
        yield service
    finally:
        server.should_exit = True
        thread.join(timeout=300)
        listener.close()
        database.close()
