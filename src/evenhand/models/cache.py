"""Replies on disk: one SQLite file that several processes may share.

A cache must never fail a call: whatever is wrong with the file counts as a miss and is visible in `errors`.
Reading happens in the caller's thread (WAL readers never wait for writers); writing in a thread of its own,
many replies to a commit.
"""

import hashlib
import os
import queue
import sqlite3
import threading
import time
from pathlib import Path

import msgspec

from evenhand.core.errors import InputError
from evenhand.core.jsontext import canonical, encode
from evenhand.models.config import EndpointConfig
from evenhand.models.port import ChatReply, ChatRequest

VERSION = 1
KEEP_SHARE = 0.8
"""How full an overfull file is left."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,
    reply BLOB NOT NULL,
    used_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS replies_used_at ON replies (used_at);
"""


class _Kept(ChatReply, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A reply in the file."""

    unkeyed: str = ""
    """The code that the question carried, which the reply may repeat."""


_DECODER = msgspec.json.Decoder(_Kept)


def cache_key(config: EndpointConfig, request: ChatRequest) -> bytes:
    """SHA-256 of endpoint, model, parameters, messages and repeat index; never of the API key or `unkeyed`."""
    parts = [VERSION, config.dialect, config.base_url.rstrip("/"), config.model, config.extra]
    limit = request.max_tokens or (config.default_max_tokens if config.dialect == "anthropic" else None)
    if request.unkeyed:
        messages = tuple(
            msgspec.structs.replace(message, content=message.content.replace(request.unkeyed, "\x00"))
            if isinstance(message.content, str)
            else message
            for message in request.messages
        )
        request = msgspec.structs.replace(request, messages=messages, unkeyed="")
    return hashlib.sha256(canonical([*parts, limit, request.repeat, request])).digest()


def may_be_kept(reply: ChatReply) -> bool:
    """Whether a reply is worth keeping: what a filter withheld, or what is empty, may come out better next time."""
    return reply.finish_reason != "content_filter" and bool(reply.text.strip())


class ReplyCache:
    """The replies in one file."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.errors = 0
        """Troubles with the file so far; each counted as a miss or a reply not kept."""
        self._lock = threading.Lock()
        self._pending: dict[bytes, bytes] = {}
        self._queue: queue.SimpleQueue[tuple[bytes, bytes | None] | None] = queue.SimpleQueue()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Replies may be confidential: the file is the user's alone.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._reader = self._open()
        self._writer = threading.Thread(target=self._write, name="reply-cache", daemon=True)
        self._writer.start()

    def get(self, key: bytes, unkeyed: str = "") -> ChatReply | None:
        """The reply kept under `key`, or None; `unkeyed` stands where the first question's code stood."""
        found = self._pending.get(key)
        if found is None:
            found = self._stored(key)
            if found is None:
                return None
            self._queue.put((key, None))
        try:
            kept = _DECODER.decode(found)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self.errors += 1
            return None
        fields = {name: getattr(kept, name) for name in ChatReply.__struct_fields__}
        if kept.unkeyed:
            # No answer can hold that code: what is replaced is what the model repeated of the question.
            fields["text"] = kept.text.replace(kept.unkeyed, unkeyed)
            if kept.reasoning is not None:
                fields["reasoning"] = kept.reasoning.replace(kept.unkeyed, unkeyed)
        return ChatReply(**{**fields, "cached": True, "cost_usd": 0.0})

    def put(self, key: bytes, reply: ChatReply, unkeyed: str = "") -> None:
        """Keep a reply. It is on disk after `close`, or a moment later."""
        fields = {name: getattr(reply, name) for name in ChatReply.__struct_fields__}
        data = encode(_Kept(**fields, unkeyed=unkeyed))
        self._pending[key] = data
        self._queue.put((key, data))

    def close(self) -> None:
        """Write what is pending and give back the file."""
        self._queue.put(None)
        self._writer.join()
        with self._lock:
            self._reader.close()

    def _stored(self, key: bytes) -> bytes | None:
        try:
            with self._lock:
                row = self._reader.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            self.errors += 1
            return None
        return None if row is None else bytes(row[0])

    def _open(self) -> sqlite3.Connection:
        connection = self._connected()
        try:
            connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise InputError(f"the reply cache cannot be opened: {error}", path=self.path) from None
            # Not a database (any more): replies can be had again, so start afresh.
            self.errors += 1
            self.path.unlink(missing_ok=True)
            connection = self._connected()
            connection.executescript(_SCHEMA)
        return connection

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60.0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.DatabaseError:
            self.errors += 1
        return connection

    def _write(self) -> None:
        connection = self._connected()
        try:
            while True:
                batch = [self._queue.get()]
                while len(batch) < 500 and not self._queue.empty():
                    batch.append(self._queue.get())
                try:
                    self._commit(connection, [item for item in batch if item is not None])
                except sqlite3.Error:
                    self.errors += 1
                for item in batch:
                    if item is not None and item[1] is not None:
                        self._pending.pop(item[0], None)
                if None in batch:
                    return
        finally:
            connection.close()

    def _commit(self, connection: sqlite3.Connection, batch: list[tuple[bytes, bytes | None]]) -> None:
        if not batch:
            return
        now = time.time()
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(
                "INSERT INTO replies (key, reply, used_at) VALUES (?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET reply = excluded.reply, used_at = excluded.used_at",
                [(key, data, now) for key, data in batch if data is not None],
            )
            connection.executemany(
                "UPDATE replies SET used_at = ? WHERE key = ?",
                [(now, key) for key, data in batch if data is None],
            )
            self._evict(connection)
            connection.execute("COMMIT")
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        connection.execute("PRAGMA incremental_vacuum")

    def _evict(self, connection: sqlite3.Connection) -> None:
        """Drop the replies used longest ago once the file is past its limit."""
        if self._size(connection) <= self.max_bytes:
            return
        while self._size(connection) > self.max_bytes * KEEP_SHARE:
            done = connection.execute(
                "DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY used_at LIMIT"
                " max(1, (SELECT count(*) FROM replies) / 10))"
            )
            if done.rowcount <= 0:
                return

    @staticmethod
    def _size(connection: sqlite3.Connection) -> int:
        def number(name: str) -> int:
            return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

        return (number("page_count") - number("freelist_count")) * number("page_size")
