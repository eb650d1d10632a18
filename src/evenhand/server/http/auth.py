"""Authentication by bearer tokens: checked in constant time, cached for a moment."""

import base64
import binascii
import hashlib
import hmac
import os
import time
from collections import OrderedDict

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.projects import Role
from evenhand.core.secret import Secret
from evenhand.store.database import Database
from evenhand.store.tokens import TRUSTED_SECONDS, find_token, token_hash, token_id_of

RANK: dict[Role, int] = {"review": 0, "read": 1, "write": 2, "admin": 3}
CACHE_SIZE = 10_000
ENVIRONMENT = "environment"
LOGIN_LINK = "login link"
"""The person who opened the link that the server printed."""


class Access(Struct, frozen=True, kw_only=True):
    """What a caller may do."""

    token_id: str
    """Which token; `environment` for the one from the environment."""
    role: Role
    """Reads, writes, or manages."""
    scope: str | None
    """The one project that the caller sees; None sees all."""
    reviewer: str | None = None
    """The name that annotations and reviews carry: of a person, or of a token with the role `review`."""
    person_id: str | None = None
    """The person who is logged in."""

    @property
    def may_create_projects(self) -> bool:
        return self.scope is None and self.role == "admin"

    def allows(self, role: Role) -> bool:
        return RANK[self.role] >= RANK[role]


def unauthorized() -> Refusal:
    return Refusal("UNAUTHORIZED", "Send a valid token as 'Authorization: Bearer <token>'.")


def bearer_of(authorization: bytes | None) -> bytes | None:
    """The header with the password of `Basic` as the token, where that is what it has."""
    kind, _, credentials = (authorization or b"").partition(b" ")
    if kind.lower() != b"basic":
        return authorization
    try:
        _, _, password = base64.b64decode(credentials.strip(), validate=True).partition(b":")
    except binascii.Error:
        return authorization
    return b"Bearer " + password


class Authenticator:
    """Turns tokens into access. A revoked token stops working within `TRUSTED_SECONDS` in every process."""

    def __init__(self, database: Database, admin_token: Secret | None, wrong_per_minute: int) -> None:
        self._database = database
        self._admin_hash = token_hash(admin_token.reveal()) if admin_token else None
        self._cache: OrderedDict[bytes, tuple[Access, float]] = OrderedDict()
        self._hash_key = os.urandom(32)
        # Valid tokens are never delayed: only wrong ones count.
        self.wrong = PerMinute(wrong_per_minute, "Too many wrong tokens; wait a minute.")

    def cached_access(self, authorization: bytes | None) -> Access | None:
        """The access that the header grants, if it is in the cache."""
        if authorization is None or not authorization.startswith(b"Bearer "):
            return None
        return self._cached(authorization[7:])

    async def access(self, authorization: bytes | None, address: str) -> Access:
        """The access that the header grants, or `UNAUTHORIZED`."""
        if authorization is None:
            raise unauthorized()
        kind, _, credentials = authorization.partition(b" ")
        if kind.lower() != b"bearer":
            raise unauthorized()
        access = await self.access_for(credentials.strip())
        if access is None:
            self.wrong.record(address)
            raise unauthorized()
        return access

    async def access_for(self, token: bytes) -> Access | None:
        """The access that a token grants, if any."""
        cached = self._cached(token)
        if cached is not None:
            return cached
        text = token.decode("latin-1")
        access = await self._look_up(text, token_hash(text))
        key = self._cache_key(token)
        if access is None:
            self._cache.pop(key, None)
            return None
        self._cache[key] = (access, time.monotonic() + TRUSTED_SECONDS)
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return access

    def _cached(self, token: bytes) -> Access | None:
        found = self._cache.get(self._cache_key(token))
        return found[0] if found is not None and found[1] > time.monotonic() else None

    def _cache_key(self, token: bytes) -> bytes:
        """The token's key in the cache: a keyed hash, so that the time of a look-up reveals nothing about the token."""
        return hashlib.blake2b(token, digest_size=32, key=self._hash_key).digest()

    async def _look_up(self, token: str, digest: str) -> Access | None:
        if self._admin_hash is not None and hmac.compare_digest(self._admin_hash, digest):
            return Access(token_id=ENVIRONMENT, role="admin", scope=None)
        token_id = token_id_of(token)
        if token_id is None or "\x00" in token_id:
            return None
        found = await self._database.read(lambda connection: find_token(connection, token_id))
        if found is None:
            return None
        stored, stored_hash = found
        if not hmac.compare_digest(stored_hash, digest) or stored.revoked_at is not None:
            return None
        reviewer = stored.name if stored.role == "review" else None
        return Access(token_id=stored.id, role=stored.role, scope=stored.project_id, reviewer=reviewer)

    def clear_cache(self) -> None:
        """Look every token up again, because one was revoked."""
        self._cache.clear()


class PerMinute:
    """Refuses what comes too often, by address or another key: wrong tokens, views of a share link."""

    def __init__(self, limit: int, refusal: str) -> None:
        self._limit = limit
        self._refusal = refusal
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def record(self, key: str) -> None:
        """Count one; `TOO_MANY_REQUESTS` when it is one too many for this minute."""
        instant = time.monotonic()
        start, count = self._seen.get(key, (instant, 0))
        if instant - start >= 60:
            start, count = instant, 0
        self._seen[key] = (start, count + 1)
        self._seen.move_to_end(key)
        while len(self._seen) > CACHE_SIZE:
            self._seen.popitem(last=False)
        if count + 1 > self._limit:
            raise Refusal("TOO_MANY_REQUESTS", self._refusal)
