"""The names that the server goes by: a page elsewhere must not reach it by a name of its own."""

import re

from evenhand.core.errors import Refusal
from evenhand.server.config import LOOPBACK, ServerConfig

REMEMBERED = 100
_HOST = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([a-z0-9._~%!$&'()*+,;=-]+))(?::[0-9]*)?", re.IGNORECASE)


class Hosts:
    """Checks `Host` headers."""

    def __init__(self, config: ServerConfig) -> None:
        names = config.allowed_hosts or ((*LOOPBACK, config.host) if config.is_loopback else ())
        self._allowed = frozenset(name.lower().encode() for name in names)
        self.seen: set[bytes | None] = set()
        """Some that are right: nearly every request carries one of these."""

    def check(self, host: bytes | None, http_version: str) -> None:
        """`INVALID_REQUEST` for another's name, for none in HTTP/1.1 and for what is no name (RFC 9112, section 3.2)."""
        found = _HOST.fullmatch(host) if host is not None else None
        if found is None and (host is not None or http_version == "1.1"):
            raise Refusal("INVALID_REQUEST", "The Host header is missing or is no host.")
        name = (found[1] or found[2]).lower() if found is not None else b""
        if self._allowed and name not in self._allowed:
            raise Refusal("INVALID_REQUEST", "This server does not go by that name (Host header).")
        if found is not None and len(self.seen) < REMEMBERED:
            self.seen.add(host)
