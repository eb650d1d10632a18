"""Dataset imports: JSON lines, read as they arrive and kept in a temporary file until all are there.

The writer gets the items only when the upload is complete: a slow client holds up nobody, and an import is stored
whole or not at all. Memory holds one piece of the upload and at most one line.
"""

import errno
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from evenhand.core.errors import InputError, Refusal, StoreFull
from evenhand.core.jsontext import check_depth, repeated_key
from evenhand.core.objects.datasets import ImportReport, SkippedLine
from evenhand.server.http.bodies import has_too_many_keys
from evenhand.server.ingest.items import ItemCreate, item_text
from evenhand.store.datasets import ItemText

LISTED_SKIPS = 1_000
_BOM = b"\xef\xbb\xbf"
_ITEM = msgspec.json.Decoder(ItemCreate)
_PACK = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(ItemText)


class Upload:
    """Takes the pieces of an upload; keeps good lines, notes bad ones. Use as a context manager."""

    def __init__(self, line_limit: int, most_lines: int) -> None:
        self._line_limit = line_limit
        self._most_lines = most_lines
        try:
            self._spool: BinaryIO = tempfile.TemporaryFile(prefix="evenhand-import-")  # noqa: SIM115  closed by __exit__
        except FileNotFoundError as error:  # so it is called when no folder takes a file
            raise StoreFull("no folder takes a temporary file for the upload") from error
        self._rest = bytearray()
        self._dropping = False
        self._line = 0
        self.imported = 0
        self.skipped_count = 0
        self.skipped: list[SkippedLine] = []

    def __enter__(self) -> "Upload":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def feed(self, piece: bytes) -> None:
        """Take the next piece; every complete line in it is dealt with."""
        # Only the new piece is looked through: a long line may come in many small ones.
        first, *others = piece.split(b"\n")
        self._rest += first
        for start in others:
            self._take(bytes(self._rest))
            self._rest = bytearray(start)
        if len(self._rest) > self._line_limit:
            self._dropping = True
            self._rest.clear()

    def finish(self) -> None:
        """The last line needs no line end."""
        if self._rest or self._dropping:
            self._take(bytes(self._rest))
        self._rest.clear()
        self._spool_do(self._spool.flush)

    def items(self) -> Iterator[ItemText]:
        """The good lines, from the first; can be asked for again."""
        self._spool.seek(0)
        while head := self._spool.read(4):
            yield _UNPACK.decode(self._spool.read(int.from_bytes(head, "big")))

    def report(self) -> ImportReport:
        return ImportReport(
            imported_count=self.imported, skipped_count=self.skipped_count, skipped=self.skipped
        )

    def _take(self, line: bytes) -> None:
        self._line += 1
        if self._line > self._most_lines:
            raise Refusal(
                "PAYLOAD_TOO_LARGE",
                f"An import has at most {self._most_lines:,} lines.",
                {"limit_lines": self._most_lines},
            )
        if self._dropping or len(line) > self._line_limit:
            self._dropping = False
            self._skip("line_too_long")
            return
        if self._line == 1:
            line = line.removeprefix(_BOM)
        line = line.strip(b" \t\r")
        if not line:
            return
        found = read_line(line)
        if isinstance(found, str):
            self._skip(found)
            return
        packed = _PACK.encode(found)
        self._spool_do(lambda: self._spool.write(len(packed).to_bytes(4, "big") + packed))
        self.imported += 1

    def _skip(self, reason: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < LISTED_SKIPS:
            self.skipped.append(SkippedLine(line=self._line, reason=reason))

    @staticmethod
    def _spool_do(action: Any) -> None:
        try:
            action()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull("no space is left for the upload") from error
            raise


def read_line(line: bytes) -> ItemText | str:
    """The item on a line, or the reason why there is none."""
    try:
        check_depth(line)
    except InputError:
        return "nested_too_deeply"
    if has_too_many_keys(line):
        return "too_many_keys"
    try:
        line.decode("utf-8")
        if not line.startswith(b"{"):
            msgspec.json.decode(line)
            return "not_an_object"
        item = item_text(_ITEM.decode(line))
        if repeated_key(line) is not None:
            return "duplicate_key"
    except UnicodeDecodeError:
        return "invalid_utf8"
    except (InputError, msgspec.DecodeError, ValueError):
        return "invalid_json"
    except Refusal as refused:
        return _reason(refused)
    return item


def _reason(refused: Refusal) -> str:
    if "required" in str(refused):
        return "missing_input"
    return "invalid_metadata" if "must be an object" in str(refused) else "invalid_json"
