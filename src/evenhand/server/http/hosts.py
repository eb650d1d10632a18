"""Checking the `Host` header, which stops DNS rebinding: a foreign page must not reach the server by its own name."""

import re

from evenhand.core.errors import Refusal
from evenhand.server.config import LOOPBACK, ServerConfig

MAX_ACCEPTED = 100
_HOST = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([a-z0-9._~%!$&'()*+,;=-]+))(?::[0-9]*)?", re.IGNORECASE)


class HostCheck:
    """Checks `Host` headers."""

    def __init__(self, config: ServerConfig) -> None:
        # Names of loopback are no danger: a foreign page comes with its own. Health checks and the printed link use them.
        listed = config.allowed_hosts or ((config.host,) if config.is_loopback else ())
        names = (*LOOPBACK, *listed) if listed else ()
        self._allowed = frozenset(name.lower().encode() for name in names)
        self.accepted: set[bytes | None] = set()
        """Headers that passed the check; nearly every request carries one of them."""

    def check(self, host: bytes | None, http_version: str) -> None:
        """`INVALID_REQUEST` for a name that is not allowed, a malformed one, or none in HTTP/1.1 (RFC 9112, section 3.2)."""
        found = _HOST.fullmatch(host) if host is not None else None
        if found is None and (host is not None or http_version == "1.1"):
            raise Refusal("INVALID_REQUEST", "The Host header is missing or malformed.")
        name = (found[1] or found[2]).lower() if found is not None else b""
        if self._allowed and name not in self._allowed:
            raise Refusal("INVALID_REQUEST", "The Host header names another server.")
        if found is not None and len(self.accepted) < MAX_ACCEPTED:
            self.accepted.add(host)
