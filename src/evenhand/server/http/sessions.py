"""Logging in with a browser: a code that works once, or a token, becomes a cookie. Neither stays in an address."""

import base64
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property, partial

from msgspec import Struct

from evenhand.server.http.auth import Access
from evenhand.store import people
from evenhand.store.database import Database
from evenhand.store.keys import kept_key
from evenhand.store.tokens import TRUSTED_SECONDS
from evenhand.store.writer import Work

CODE_SECONDS = 3600
SESSION_SECONDS = 12 * 3600
CACHE_SIZE = 10_000
"""Sessions that a server remembers for a moment, and sessions with a notice."""
_SECRET_BYTES = 32


class Redeemed(Struct, frozen=True):
    """What a login code became."""

    session: str
    """The secret of the session."""
    destination: str
    """The page that the link leads to."""


class Sessions:
    """Browser sessions, kept in the database: a login holds on every server and over restarts.

    A session that ends, or whose person or token is shut out, stops working within `TRUSTED_SECONDS` in every process.
    """

    def __init__(self, database: Database, clock: Callable[[], int] = people.milliseconds) -> None:
        self._database = database
        self._clock = clock
        self._cache: OrderedDict[str, tuple[Access, int]] = OrderedDict()
        self._notices: OrderedDict[str, list[str]] = OrderedDict()

    @cached_property
    def cookie(self) -> bytes:
        """The cookie's name. Unique to this database: browsers send cookies to every port of a host, where the server
        of another one may run."""
        return b"evenhand_session_" + self._own_key("browser_cookie", 4).hex().encode()

    @cached_property
    def _form_key(self) -> bytes:
        return self._own_key("browser_forms", _SECRET_BYTES)

    def _own_key(self, name: str, size: int) -> bytes:
        fresh = secrets.token_bytes(size)
        return self._database.write_now(lambda connection: kept_key(connection, name, fresh))

    def load(self) -> None:
        """Read the keys before the first request, which must not wait for them."""
        assert self.cookie
        assert self._form_key

    def new_code(self, access: Access, destination: str = "/") -> str:
        """A code that opens `access` once, within the hour, and leads to the page at `destination`."""
        code = secrets.token_urlsafe(24)
        self._database.write_now(
            partial(
                people.keep_code,
                code=code,
                principal=_principal(access),
                destination=destination,
                expires_at=self._clock() + 1000 * CODE_SECONDS,
            )
        )
        return code

    async def redeem(self, code: str) -> Redeemed | None:
        """The session for a code; None for a wrong, used or old one."""
        session, moment = secrets.token_urlsafe(32), self._clock()
        destination = await self._database.write(
            partial(
                people.redeem,
                code=code,
                session=session,
                moment=moment,
                expires_at=moment + 1000 * SESSION_SECONDS,
            )
        )
        return None if destination is None else Redeemed(session, destination)

    async def open(self, access: Access) -> str:
        """The secret of a new session."""
        session = secrets.token_urlsafe(32)
        await self._database.write(self._opening(access, session))
        return session

    def open_now(self, access: Access) -> str:
        """`open` for callers outside the event loop."""
        session = secrets.token_urlsafe(32)
        self._database.write_now(self._opening(access, session))
        return session

    def _opening(self, access: Access, session: str) -> Work[None]:
        return partial(
            people.open_session,
            session=session,
            principal=_principal(access),
            expires_at=self._clock() + 1000 * SESSION_SECONDS,
        )

    async def close(self, cookies: bytes) -> None:
        """End the session of the cookie header."""
        session = self._session(cookies)
        if session is not None:
            await self._database.write(partial(people.end_session, session=session))
            self._cache.pop(session, None)
            self._notices.pop(session, None)

    def clear_cache(self) -> None:
        """Look every session up again, because somebody was shut out."""
        self._cache.clear()

    def _session(self, cookies: bytes) -> str | None:
        """What the cookie header says is the secret of a session."""
        return cookie_value(cookies, self.cookie)

    async def access(self, cookies: bytes) -> Access | None:
        """The access of the session in the cookie header, if there is a valid one."""
        session, moment = self._session(cookies), self._clock()
        if session is None:
            return None
        cached = self._cache.get(session)
        if cached is not None and cached[1] > moment:
            return cached[0]
        found = await self._database.read(partial(people.find_session, session=session, moment=moment))
        if found is None:
            self._cache.pop(session, None)
            return None
        access = Access(
            token_id=found.token_id,
            role=found.role,
            scope=found.project_id,
            reviewer=found.person_name,
            person_id=found.person_id,
        )
        self._cache[session] = (access, moment + int(1000 * TRUSTED_SECONDS))
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return access

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
        session = self._session(cookies) or ""
        return hmac.new(self._form_key, session.encode(), hashlib.sha256).digest()

    def notify(self, cookies: bytes, text: str) -> None:
        """Say `text` on the next page that this session opens at this server."""
        session = self._session(cookies)
        if session is not None:
            self._notices.setdefault(session, []).append(text)
            while len(self._notices) > CACHE_SIZE:
                self._notices.popitem(last=False)

    def take_notices(self, cookies: bytes) -> list[str]:
        """What there is to say; it is said once."""
        session = self._session(cookies)
        return [] if session is None else self._notices.pop(session, [])


def _principal(access: Access) -> people.Principal:
    return people.Principal(
        token_id=access.token_id,
        role=access.role,
        project_id=access.scope,
        person_id=access.person_id,
        person_name=access.reviewer,
    )


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
