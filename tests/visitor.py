"""Somebody with a session, over plain HTTP: pages and forms as a browser asks for them, without one."""

from typing import Any
from urllib.parse import urlencode

from evenhand.core.objects.projects import Role
from evenhand.server.http.auth import LOGIN_LINK, Access
from tests.service import Reply, ServiceUnderTest


class Visitor:
    """A session with a role, in all projects or in one."""

    def __init__(
        self,
        service: ServiceUnderTest,
        role: Role = "admin",
        scope: str | None = None,
        name: str | None = None,
    ) -> None:
        self.service = service
        access = Access(token_id=LOGIN_LINK, role=role, scope=scope, reviewer=name)
        session = service.sessions.open_now(access)
        self.cookie = f"{service.sessions.cookie.decode()}={session}"

    def get(self, path: str, **headers: str) -> Reply:
        return self.service.raw("GET", path, None, {"Cookie": self.cookie, **headers}, token=None)

    def post(self, path: str, fields: Any = (), **headers: str) -> Reply:
        """A form with its secret; `fields` is a mapping, or pairs where a name comes several times."""
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields)
        pairs.append(("_secret", self.service.sessions.form_secret(self.cookie.encode())))
        sent = {
            "Cookie": self.cookie,
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
            **headers,
        }
        return self.service.raw("POST", path, urlencode(pairs).encode(), sent, token=None)
