"""Logging in with a browser: a code that works once, or a token, becomes a cookie. Neither stays in an address."""

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct

from evenhand.server.http.auth import Access

CODE_SECONDS = 3600.0
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 10_000
"""The oldest one ends when there are more."""
_SECRET_BYTES = 32


class Redeemed(Struct, frozen=True):
    """What a login code became."""

    session: str
    """The secret of the session."""
    destination: str
    """The page that the link leads to."""


class Sessions:
    """Kept in memory: a restart logs everybody out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Unique to this server: browsers send cookies to every port of a host, where another server may run.
        self.cookie = b"evenhand_session_" + secrets.token_hex(4).encode()
        self._codes: dict[str, tuple[Access, str, float]] = {}
        self._sessions: OrderedDict[str, tuple[Access, float]] = OrderedDict()
        self._form_key = secrets.token_bytes(_SECRET_BYTES)
        self._notices: dict[str, list[str]] = {}

    def new_code(self, access: Access, destination: str = "/") -> str:
        """A code that opens `access` once, within the hour, and leads to the page at `destination`."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = (access, destination, self._clock() + CODE_SECONDS)
        return code

    def redeem(self, code: str) -> Redeemed | None:
        """The session for a code; None for a wrong, used or old one."""
        found = self._codes.pop(code, None)
        if found is None or found[2] < self._clock():
            return None
        return Redeemed(self.open(found[0]), found[1])

    def open(self, access: Access) -> str:
        """The secret of a new session."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = (access, self._clock() + SESSION_SECONDS)
        while len(self._sessions) > MAX_SESSIONS:
            self._notices.pop(self._sessions.popitem(last=False)[0], None)
        return session

    def close(self, cookies: bytes) -> None:
        """End the session of the cookie header."""
        session = self.session(cookies)
        if session is not None:
            del self._sessions[session]
            self._notices.pop(session, None)

    def close_all(self, token_id: str) -> None:
        """End the sessions that a token opened."""
        for session in [one for one, (access, _) in self._sessions.items() if access.token_id == token_id]:
            del self._sessions[session]

    def session(self, cookies: bytes) -> str | None:
        """The secret of the valid session in the cookie header."""
        value = cookie_value(cookies, self.cookie)
        found = self._sessions.get(value) if value is not None else None
        return value if found is not None and found[1] > self._clock() else None

    def access(self, cookies: bytes) -> Access | None:
        """The access of the session in the cookie header, if there is a valid one."""
        session = self.session(cookies)
        return None if session is None else self._sessions[session][0]

    def form_secret(self, cookies: bytes) -> str:
        """What a form of this session must bring back. Masked anew each time: pages are compressed, and the length of
        a compressed page could tell a constant secret bit by bit."""
        mask = secrets.token_bytes(_SECRET_BYTES)
        hidden = _xor(mask, self._form_digest(cookies))
        return base64.urlsafe_b64encode(mask + hidden).decode()

    def form_is_ours(self, cookies: bytes, given: str) -> bool:
        """Whether `given` is what `form_secret` gave to this session."""
        try:
            data = base64.b64decode(given.encode(), altchars=b"-_", validate=True)
        except ValueError:
            return False
        if len(data) != 2 * _SECRET_BYTES:
            return False
        return hmac.compare_digest(
            _xor(data[:_SECRET_BYTES], data[_SECRET_BYTES:]), self._form_digest(cookies)
        )

    def _form_digest(self, cookies: bytes) -> bytes:
        session = self.session(cookies) or ""
        return hmac.new(self._form_key, session.encode(), hashlib.sha256).digest()

    def notify(self, cookies: bytes, text: str) -> None:
        """Say `text` on the next page that this session opens."""
        session = self.session(cookies)
        if session is not None:
            self._notices.setdefault(session, []).append(text)

    def take_notices(self, cookies: bytes) -> list[str]:
        """What there is to say; it is said once."""
        session = self.session(cookies)
        return [] if session is None else self._notices.pop(session, [])


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def cookie_value(cookies: bytes, wanted: bytes) -> str | None:
    """The value of a cookie in the header."""
    for part in cookies.split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == wanted:
            return value.decode("latin-1")
    return None


def same_origin(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that a page of this server sent the request."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site == b"same-origin"
    origin = headers.get(b"origin", b"")
    return bool(origin) and origin.partition(b"://")[2] == headers.get(b"host")
