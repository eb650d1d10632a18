"""One boundary for foreign errors, and which addresses are public."""

import asyncio
import gzip
import inspect
import ssl
import zlib
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from evenhand.core.errors import ModelError, ModelRejected
from evenhand.models.config import EndpointConfig
from evenhand.models.retry import Retryable
from evenhand.models.transport import Transport, is_public, translated

KEY = ConnectionKey("h", 1, False, True, None, None, None)
SECRETIVE = "planted-header-value"
# How to make each of aiohttp's client errors; a new one in aiohttp fails the test below until it is added.
MAKE: dict[str, Callable[[], Exception]] = {
    "ClientConnectionError": lambda: aiohttp.ClientConnectionError(SECRETIVE),
    "ClientConnectionResetError": lambda: aiohttp.ClientConnectionResetError(SECRETIVE),
    "ClientConnectorCertificateError": lambda: aiohttp.ClientConnectorCertificateError(
        KEY, ssl.CertificateError(SECRETIVE)
    ),
    "ClientConnectorDNSError": lambda: aiohttp.ClientConnectorDNSError(KEY, OSError(5, SECRETIVE)),
    "ClientConnectorError": lambda: aiohttp.ClientConnectorError(KEY, OSError(5, SECRETIVE)),
    "ClientConnectorSSLError": lambda: aiohttp.ClientConnectorSSLError(KEY, OSError(5, SECRETIVE)),
    "ClientError": lambda: aiohttp.ClientError(SECRETIVE),
    "ClientOSError": lambda: aiohttp.ClientOSError(104, SECRETIVE),
    "ClientPayloadError": lambda: aiohttp.ClientPayloadError(SECRETIVE),
    "ClientProxyConnectionError": lambda: aiohttp.ClientProxyConnectionError(KEY, OSError(5, SECRETIVE)),
    "ClientSSLError": lambda: aiohttp.ClientSSLError(KEY, OSError(5, SECRETIVE)),
    "InvalidURL": lambda: aiohttp.InvalidURL("http://x", SECRETIVE),
    "InvalidUrlClientError": lambda: aiohttp.InvalidUrlClientError("http://x", SECRETIVE),
    "InvalidUrlRedirectClientError": lambda: aiohttp.InvalidUrlRedirectClientError("http://x", SECRETIVE),
    "NonHttpUrlClientError": lambda: aiohttp.NonHttpUrlClientError("http://x", SECRETIVE),
    "NonHttpUrlRedirectClientError": lambda: aiohttp.NonHttpUrlRedirectClientError("http://x", SECRETIVE),
    "RedirectClientError": lambda: aiohttp.RedirectClientError("http://x", SECRETIVE),
    "ServerConnectionError": lambda: aiohttp.ServerConnectionError(SECRETIVE),
    "ServerFingerprintMismatch": lambda: aiohttp.ServerFingerprintMismatch(b"", b"", SECRETIVE, 1),
    "UploadAbortedError": lambda: aiohttp.UploadAbortedError(SECRETIVE),
    "ServerDisconnectedError": lambda: aiohttp.ServerDisconnectedError(SECRETIVE),
}
# These are ClientResponseErrors, which hold the request they belong to; one of them stands for all.
RESPONSE_ERRORS = {"ClientResponseError", "ContentTypeError", "TooManyRedirects", "WSServerHandshakeError"}
RESPONSE_ERRORS |= {"ClientHttpProxyError"}
# These are time-outs, caught before.
TIMEOUTS = {"ServerTimeoutError", "ConnectionTimeoutError", "SocketTimeoutError"}


def test_the_table_names_every_client_error_of_aiohttp() -> None:
    known = {
        name
        for name, value in vars(aiohttp).items()
        if inspect.isclass(value) and issubclass(value, aiohttp.ClientError)
    }
    assert known - RESPONSE_ERRORS - TIMEOUTS == set(MAKE)
    assert all(issubclass(getattr(aiohttp, name), TimeoutError) for name in TIMEOUTS)
    assert all(issubclass(getattr(aiohttp, name), aiohttp.ClientResponseError) for name in RESPONSE_ERRORS)


@pytest.mark.parametrize("name", MAKE)
def test_every_client_error_becomes_one_of_ours_without_its_text(name: str) -> None:
    error = translated(MAKE[name]())
    assert isinstance(error, ModelError)
    assert isinstance(error, Retryable | ModelRejected)
    assert SECRETIVE not in str(error)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("2002:7f00:1::", False),
        ("not an address", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


async def posted(answer: bytes, *, endless: bytes = b"", cap: int = 10_000) -> bytes:
    """What the transport makes of raw bytes from a socket."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        try:
            while endless:
                writer.write(endless)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = Transport(EndpointConfig(base_url=f"http://127.0.0.1:{port}", model="m", max_reply_bytes=cap))
    try:
        return (await transport.post(f"http://127.0.0.1:{port}/", {}, b"{}")).body
    finally:
        await transport.aclose()
        server.close()
        await server.wait_closed()


def framed(body: bytes, encoding: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


async def test_a_body_without_end_is_cut_off() -> None:
    chunk = b"1000\r\n" + b"a" * 4096 + b"\r\n"
    with pytest.raises(Retryable, match="longer"):
        await posted(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endless=chunk)
    with pytest.raises(Retryable, match="longer"):
        await posted(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", endless=b"a" * 4096)


async def test_compressed_bodies_are_unpacked_up_to_the_cap() -> None:
    assert await posted(framed(gzip.compress(b"small"), "gzip")) == b"small"
    assert await posted(framed(zlib.compress(b"small"), "deflate")) == b"small"
    bomb = gzip.compress(b"a" * 9_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(Retryable, match="longer"):
        await posted(framed(bomb, "gzip"))
    with pytest.raises(Retryable, match="broken"):
        await posted(framed(b"not gzip", "gzip"))
    with pytest.raises(Retryable, match="not asked for"):
        await posted(framed(b"x", "br"))
