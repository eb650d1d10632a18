"""Logging in with a browser: a code that works once becomes a cookie. Tokens never appear in an address."""

import secrets
import time
from collections.abc import Callable, Mapping

from evenhand.server.http.auth import Access

CODE_SECONDS = 3600.0
SESSION_SECONDS = 12 * 3600.0


class Sessions:
    """Kept in memory: a restart logs everybody out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Unique to this server: browsers send cookies to every port of a host, where another server may run.
        self.cookie = b"evenhand_session_" + secrets.token_hex(4).encode()
        self._codes: dict[str, tuple[Access, float]] = {}
        self._sessions: dict[str, tuple[Access, float]] = {}

    def new_code(self, access: Access) -> str:
        """A code that opens `access` once, within the hour."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = (access, self._clock() + CODE_SECONDS)
        return code

    def redeem(self, code: str) -> str | None:
        """The session for a code; None for a wrong, used or old one."""
        found = self._codes.pop(code, None)
        if found is None or found[1] < self._clock():
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = (found[0], self._clock() + SESSION_SECONDS)
        return session

    def access(self, cookies: bytes) -> Access | None:
        """The access of the session in the cookie header, if there is a valid one."""
        for part in cookies.split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name == self.cookie:
                found = self._sessions.get(value.decode("latin-1"))
                if found is not None and found[1] > self._clock():
                    return found[0]
        return None


def same_origin(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that a page of this server sent the request."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site == b"same-origin"
    origin = headers.get(b"origin", b"")
    return bool(origin) and origin.partition(b"://")[2] == headers.get(b"host")
