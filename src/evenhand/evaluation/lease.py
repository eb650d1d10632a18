"""One process at a time works on a run, or on a file of verdicts."""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from types import TracebackType

from evenhand.core import jsontext
from evenhand.core.errors import InputError, RunActive
from evenhand.core.timestamps import format_instant, now


class Lease:
    """Holds what `path` stands for while the `with` block lasts; the system lets go of it when the process dies.

    With `remove` the file goes when the block ends: it lies in a user's folder.
    """

    def __init__(self, path: Path, *, refusal: str, remove: bool = False) -> None:
        self._path = path
        self._refusal = refusal
        self._remove = remove

    def __enter__(self) -> "Lease":
        self._file = self._locked()
        while not self._is_current():
            # Whoever held it has removed it: the lock on a file without a name keeps nobody else out.
            os.close(self._file)
            self._file = self._locked()
        note = {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now())}
        with contextlib.suppress(OSError):  # the note is for people; a full disk must not stop a resume
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, jsontext.encode(note), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            if self._remove:
                self._path.unlink()
        os.close(self._file)

    def _locked(self) -> int:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(file, 4096, 0)
            os.close(file)
            raise RunActive(f"{self._refusal}{_who(holder)}") from None
        return file

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False


def _who(note: bytes) -> str:
    try:
        holder = jsontext.decode(note)
        return f" on host {holder['host']}, process {holder['pid']}, since {holder['since']}"
    except (InputError, KeyError, TypeError):
        return " in another process"
