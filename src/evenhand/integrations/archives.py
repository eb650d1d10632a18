"""Reading members of a zip archive that somebody else made: bounded in number, size and ratio, also Zstandard.

Python's zipfile before 3.14 lists members that are compressed with Zstandard (method 93) but cannot read them.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from evenhand.core.errors import InputError, MissingExtra

MAX_MEMBERS = 200_000
MAX_MEMBER_BYTES = 256 << 20
MAX_TOTAL_BYTES = 2 << 30
MAX_RATIO = 1_000
"""How many times larger than its packed form a member may be, past `RATIO_FROM` bytes."""
RATIO_FROM = 1 << 20
ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD)


class Archive:
    """An open archive. Nothing is ever written to disk, so the names of members lead nowhere."""

    def __init__(self, path: Path, file: IO[bytes], opened: zipfile.ZipFile) -> None:
        self._path = path
        self._file = file
        self._members = {info.filename: info for info in opened.infolist()}
        self._left = MAX_TOTAL_BYTES
        if len(opened.infolist()) > MAX_MEMBERS:
            raise self._error(f"the archive has more than {MAX_MEMBERS:,} members")
        if len(self._members) != len(opened.infolist()):
            raise self._error("the archive has two members of one name")

    @property
    def names(self) -> list[str]:
        """The names of all members."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """What a member holds."""
        info = self._members[name]
        if info.flag_bits & 1:
            raise self._error(f"the member '{name}' is encrypted")
        if info.compress_type not in _KNOWN:
            raise self._error(f"the member '{name}' is compressed in an unknown way ({info.compress_type})")
        limit = min(MAX_MEMBER_BYTES, self._left)
        if info.file_size > limit:
            raise self._error(f"the member '{name}' has {info.file_size:,} bytes: too many")
        if info.file_size > max(RATIO_FROM, info.compress_size * MAX_RATIO):
            raise self._error(f"the member '{name}' is packed more than {MAX_RATIO:,} to one")
        data = _inflate(self._packed(info), info.compress_type, info.file_size, self._path)
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self._error(f"the member '{name}' is damaged")
        self._left -= len(data)
        return data

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        self._file.seek(info.header_offset)
        head = self._file.read(_LOCAL_HEADER.size)
        if len(head) < _LOCAL_HEADER.size or not head.startswith(b"PK\x03\x04"):
            raise self._error(f"the member '{info.filename}' is damaged")
        *_, name_length, extra_length = _LOCAL_HEADER.unpack(head)
        self._file.seek(name_length + extra_length, 1)
        return self._file.read(info.compress_size)

    def _error(self, reason: str) -> InputError:
        return InputError(reason, path=self._path)


def _inflate(packed: bytes, method: int, size: int, path: Path) -> bytes:
    try:
        if method == zipfile.ZIP_STORED:
            return packed
        if method == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
        return _zstandard(packed, size)
    except (zlib.error, MemoryError) as error:
        raise InputError(f"the archive is damaged: {error}", path=path) from None


def _zstandard(packed: bytes, size: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise MissingExtra("zstandard", "import", "reading this archive") from None
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as reader:
            return bytes(reader.read(size + 1))
    except zstandard.ZstdError as error:
        raise InputError(f"the archive is damaged: {error}") from None


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at `path`."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as opened:
            yield Archive(path, file, opened)
    except (zipfile.BadZipFile, OSError, NotImplementedError, struct.error) as error:
        raise InputError(f"not a readable archive: {error}", path=path) from None
