"""One HTTP POST: capped, timed, without redirects; the only place that sees aiohttp's exceptions."""

import ipaddress
import socket
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp

from evenhand.core.errors import ModelRejected
from evenhand.models.config import EndpointConfig
from evenhand.models.retry import Retryable


class HttpAnswer(NamedTuple):
    """A whole answer."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class PrivateAddress(Exception):
    """A connection to an address that the configuration forbids. Not an OSError: no other address is tried."""


class Transport:
    """Connections to one endpoint, opened on first use in the running event loop."""

    def __init__(self, config: EndpointConfig) -> None:
        self._timeout = aiohttp.ClientTimeout(total=config.timeout, sock_connect=config.connect_timeout)
        self._cap = config.max_reply_bytes
        self._allow_private = config.allow_private
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The endpoint's answer; `Retryable` or `ModelRejected` when there is none."""
        session = self._session or self._open()
        try:
            async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                content = await self._read(response)
                found = response.headers
                return HttpAnswer(
                    response.status, found.get("Content-Type", ""), found.get("Retry-After"), content
                )
        except TimeoutError:
            raise Retryable("the endpoint did not answer in time", kind="timeout") from None
        except PrivateAddress as error:
            raise ModelRejected(str(error), kind="forbidden_address") from None
        except (aiohttp.ClientError, OSError) as error:
            # Without its cause: aiohttp's errors carry the request's headers, and the key is in them.
            raise translated(error) from None

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._allow_private:
            connector = aiohttp.TCPConnector(limit=0)
        else:
            # One address after the other, so that a forbidden one ends the attempt.
            connector = aiohttp.TCPConnector(
                limit=0, socket_factory=_public_socket, happy_eyeballs_delay=None
            )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
            # A proxy or a netrc entry from the environment would take the key elsewhere.
            trust_env=False,
        )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        length = response.content_length
        if length is not None and length > self._cap:
            response.close()
            raise _too_long(self._cap)
        if length is not None:
            content = await response.read()
        else:
            content = await self._read_parts(response)
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        return content if encoding == "identity" else unpacked(content, encoding, self._cap)

    async def _read_parts(self, response: aiohttp.ClientResponse) -> bytes:
        parts = bytearray()
        async for part in response.content.iter_any():
            parts += part
            if len(parts) > self._cap:
                response.close()
                raise _too_long(self._cap)
        return bytes(parts)


def unpacked(content: bytes, encoding: str, cap: int) -> bytes:
    """What a compressed body holds, up to `cap` bytes: a small body may stand for a huge one."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Retryable("the reply is compressed in a way that was not asked for", kind="bad_reply")
    # 32 more than the largest window lets zlib find out by itself whether it is gzip or deflate.
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS + 32)
    try:
        found = inflater.decompress(content, cap + 1)
    except zlib.error:
        raise Retryable("the compressed reply is broken", kind="bad_reply") from None
    if len(found) > cap:
        raise _too_long(cap)
    return found


def _too_long(cap: int) -> Retryable:
    return Retryable(f"the reply is longer than {cap} bytes", kind="bad_reply")


def translated(error: Exception) -> Retryable | ModelRejected:
    """Our error for one of aiohttp's or the operating system's; texts from the wire stay out of it."""
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return ModelRejected("the model's address is not usable", kind="bad_request")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return ModelRejected("the endpoint's certificate is not valid", kind="certificate")
    if isinstance(error, aiohttp.ClientConnectorError | socket.gaierror):
        number = getattr(error, "errno", None) or getattr(getattr(error, "os_error", None), "errno", None)
        return Retryable(f"no connection to the endpoint (error {number})", kind="connection")
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientResponseError):
        return Retryable("the reply broke off or is not HTTP", kind="bad_reply")
    return Retryable(f"the connection was lost ({type(error).__name__})", kind="connection")


def _public_socket(addr_info: Any) -> socket.socket:
    """A socket for an address that is about to be connected to; the check cannot be raced by a second lookup."""
    family, kind, protocol, _, address = addr_info
    if not is_public(str(address[0])):
        raise PrivateAddress("the model's address leads to a private network, which is not allowed here")
    return socket.socket(family, kind, protocol)


def is_public(host: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    try:
        address = ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if mapped is not None:
            address = mapped
    return address.is_global and not address.is_multicast
