"""The address of an endpoint: put right where it is plain what was meant, and tried before work is begun."""

import asyncio
import contextlib
import os
from urllib.parse import urlsplit

from evenhand.core.errors import OptionError, Unavailable

REACH_SECONDS = 10.0
"""How long an endpoint may take to accept a connection: the time that a request has for it."""


def base_url(url: str) -> str:
    """The address without a path that only names the call."""
    return url.rstrip("/").removesuffix("/chat/completions").removesuffix("/messages")


async def reachable(url: str) -> None:
    """`Unavailable` when nothing accepts connections at the address: said at once, not after every retry."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError(f"'{url}' is not an http or https address")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise OptionError(f"'{url}' has no valid port") from None
    try:
        async with asyncio.timeout(REACH_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except TimeoutError:
        raise Unavailable(
            f"no answer from {url} in {REACH_SECONDS:g} seconds; is the model running?"
        ) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise Unavailable(f"cannot connect to {url} ({reason}); is the model running?") from None
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
