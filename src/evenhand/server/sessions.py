"""Logging in with a browser: a code that works once becomes a cookie. Tokens never appear in an address."""

import secrets
import time
from collections.abc import Callable

from evenhand.server.auth import Access

CODE_SECONDS = 3600.0
SESSION_SECONDS = 12 * 3600.0


class Sessions:
    """Kept in memory: a restart logs everybody out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Of its own: browsers send cookies to every port of a host, and another server there must not take its place.
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
        """What the cookie header opens."""
        for part in cookies.split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name == self.cookie:
                found = self._sessions.get(value.decode("latin-1"))
                if found is not None and found[1] > self._clock():
                    return found[0]
        return None
