"""Behind a reverse proxy, and called by pages of other sites: wraps the application where the configuration asks for it.

What a proxy says about a request is believed only from the addresses that were listed. It reaches the application as
headers whose names no client can send: `:scheme` and `:root`.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from evenhand.core.errors import OptionError
from evenhand.server.config import ServerConfig
from evenhand.server.http.bodies import Receive

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SCHEME = b":scheme"
ROOT = b":root"
FORWARDED = (b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-for")
CORS_METHODS = b"GET, HEAD, POST, PATCH, DELETE"
CORS_HEADERS = b"authorization, content-type, idempotency-key, x-project-id, x-request-id"
CORS_SECONDS = b"600"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(addresses: Iterable[str]) -> list[Network]:
    """The networks that a list of addresses names; `OptionError` for what is none."""
    found: list[Network] = []
    for address in addresses:
        try:
            found.append(ipaddress.ip_network(address, strict=False))
        except ValueError:
            raise OptionError(
                f"'{address}' is not the address of a proxy; write 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return found


def checked_root(path: str) -> str:
    """A root path such as `/evenhand`; empty for none."""
    if path in ("", "/"):
        return ""
    root = path.rstrip("/")
    if not root.startswith("/") or "//" in root or not all(c.isalnum() or c in "/-_.~" for c in root):
        raise OptionError(f"'{path}' is not a root path; write it like /evenhand")
    return root


def checked_origin(origin: str) -> bytes:
    """An origin as browsers send it."""
    scheme, found, rest = origin.partition("://")
    if scheme not in ("http", "https") or not found or not rest or any(c in rest for c in "/?#@ *"):
        raise OptionError(f"'{origin}' is not an origin; write it like https://example.org")
    return origin.lower().encode()


class Outside:
    """The application as it is seen from outside."""

    def __init__(self, application: App, config: ServerConfig) -> None:
        self.application = application
        self._proxies = networks(config.trusted_proxies)
        self._root = checked_root(config.root_path).encode()
        self._origins = frozenset(map(checked_origin, config.allowed_origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        # Answers pass through `send`, which may add to them; the short way past it would not.
        scope.pop("extensions", None)
        headers: Headers = [(name, value) for name, value in scope["headers"] if name not in FORWARDED]
        self._believe_proxy(scope, headers)
        origin = dict(headers).get(b"origin", b"").lower()
        allowed = origin if origin in self._origins and self._is_api(scope["raw_path"]) else b""
        if allowed and scope["method"] == "OPTIONS":
            await _answer_preflight(send, allowed)
            return
        self._strip_root(scope)
        if self._root:
            headers.append((ROOT, self._root))
        scope["headers"] = headers
        await self.application(scope, receive, self._sending(send, allowed))

    def _believe_proxy(self, scope: Scope, headers: Headers) -> None:
        given = dict(scope["headers"])
        client = scope.get("client")
        if client is None or not self._is_proxy(client[0]):
            return
        if given.get(b"x-forwarded-proto", b"").strip() == b"https":
            headers.append((SCHEME, b"https"))
        host = given.get(b"x-forwarded-host", b"").strip()
        if host and b"," not in host:
            headers[:] = [(name, value) for name, value in headers if name != b"host"] + [(b"host", host)]
        # The last address that no listed proxy wrote: the client as the outermost proxy saw it.
        for part in reversed(given.get(b"x-forwarded-for", b"").split(b",")):
            address = part.strip().decode("latin-1")
            if address and not self._is_proxy(address):
                scope["client"] = (address[:100], 0)
                break

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def _is_api(self, raw_path: bytes) -> bool:
        return raw_path.removeprefix(self._root).startswith(b"/v1/")

    def _strip_root(self, scope: Scope) -> None:
        """Requests come with the root path or, from a proxy that strips it, without."""
        raw_path: bytes = scope["raw_path"]
        if self._root and (raw_path == self._root or raw_path.startswith(self._root + b"/")):
            scope["raw_path"] = raw_path[len(self._root) :] or b"/"
            scope["path"] = scope["path"][len(self._root) :] or "/"

    def _rooted(self, name: bytes, value: bytes) -> bytes:
        """A header with the paths that a browser sees: those of redirects and of cookies."""
        if not self._root:
            return value
        if name == b"location" and value.startswith(b"/"):
            return self._root + value
        if name == b"set-cookie":
            # Not to other applications of the same host, and to ours under its own path.
            return value.replace(b"; Path=/", b"; Path=%b/" % self._root, 1)
        return value

    def _sending(self, send: Send, origin: bytes) -> Send:
        async def passed_on(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [(name, self._rooted(name, value)) for name, value in message["headers"]]
                if origin:
                    message["headers"] += _cors(origin)
            await send(message)

        return passed_on


def _cors(origin: bytes) -> Headers:
    """No credentials: pages of other sites show a token, never a cookie."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"x-request-id, idempotent-replayed, retry-after"),
        (b"vary", b"origin"),
    ]


async def _answer_preflight(send: Send, origin: bytes) -> None:
    headers = [
        (b"content-length", b"0"),
        *_cors(origin),
        (b"access-control-allow-methods", CORS_METHODS),
        (b"access-control-allow-headers", CORS_HEADERS),
        (b"access-control-max-age", CORS_SECONDS),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
