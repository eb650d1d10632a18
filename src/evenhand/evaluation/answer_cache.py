"""Answers of tasks that are kept between runs, in the file that also keeps models' replies."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from evenhand import settings
from evenhand.core import jsontext
from evenhand.evaluation.journal import encode_step
from evenhand.evaluation.records import Generated
from evenhand.models.cache import ReplyCache
from evenhand.models.port import ChatReply

VERSION = 1
MAX_BYTES = 1024 * 1024 * 1024


def cache_file(wanted: bool | str) -> Path | None:
    """The file that `cache` names: a path, or the user's own for True; None for none."""
    if not wanted:
        return None
    return settings.load().cache_folder / "replies.db" if wanted is True else Path(wanted)


class AnswerCache:
    """What a task answered before: found again by its code, its input and the repeat."""

    def __init__(self, path: Path, *identity: Any) -> None:
        """`identity`: what decides the task's answers, as JSON."""
        self._replies = ReplyCache(path, max_bytes=MAX_BYTES)
        self._identity = sha256(jsontext.canonical([VERSION, "task", *identity])).digest()

    def key(self, asked: Any, repeat: int) -> bytes:
        return sha256(self._identity + jsontext.canonical([asked, repeat])).digest()

    def get(self, key: bytes, sample: int) -> Generated | None:
        """The answer kept under `key`, as one to `sample`. It cost nothing this time."""
        kept = self._replies.get(key)
        if kept is None:
            return None
        try:
            found = msgspec.json.decode(kept.text, type=Generated)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None
        cost = None if found.cost_usd is None else 0.0
        return replace(found, key=sample, cached=True, cost_usd=cost)

    def put(self, key: bytes, answer: Generated) -> None:
        self._replies.put(key, ChatReply(text=encode_step(answer).decode("utf-8")))

    def close(self) -> None:
        """Write what is pending."""
        self._replies.close()
