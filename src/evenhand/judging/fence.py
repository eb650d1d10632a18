"""The fence around judged text: marker lines with a code that no judged text can hold, nor its author know.

The code is a keyed hash (HMAC) of the texts that it fences, so it is the same for the same texts under one key, and
nobody without the key can find a text that holds its own code. The key is kept with the run or the database. It is no
part of a judge's identity, and the code is no part of what identifies a prompt (`ChatRequest.unkeyed`): judgements from
the cache fit any key.
"""

import functools
import hmac
import os
import secrets
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.core.jsontext import canonical

KEY_BYTES = 32
CODE_BYTES = 8
"""64 bits: short enough for small models to repeat, too long to be met by chance."""


def new_key() -> bytes:
    """A key that nobody knows."""
    return secrets.token_bytes(KEY_BYTES)


@functools.cache
def process_key() -> bytes:
    """The key of judges that belong to no run: it lives as long as this process."""
    return new_key()


def kept_key(path: Path) -> bytes:
    """The key in a file of the owner's alone, made when there is none."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read_key(path)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        key = new_key()
        file.write(key.hex() + "\n")
    return key


def _read_key(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the key of the judge's prompts: {error}", path=path) from None
    if len(key) != KEY_BYTES:
        # A process that was killed while it made the file: nothing was sent under that key.
        path.unlink()
        return kept_key(path)
    return key


def fence_code(key: bytes, *texts: str) -> str:
    """A code that depends on key and texts and occurs in none of them, in whatever case."""
    message = canonical([text.encode("utf-8", "surrogatepass").hex() for text in texts])
    lowered = [text.lower() for text in texts]
    turn = 0
    while True:
        found = hmac.digest(key, turn.to_bytes(4, "big") + message, "sha256")[:CODE_BYTES].hex()
        if not any(found in text for text in lowered):
            return found
        turn += 1


def fenced(title: str, text: str, code: str) -> str:
    """`text` between marker lines."""
    return f"<<<{title} {code}>>>\n{text}\n<<<END {title} {code}>>>"


def sendable(text: str) -> str:
    """`text` as endpoints take it: UTF-8 without NUL. Half a character pair is not worth a failed call."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
