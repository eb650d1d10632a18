"""One process at a time works on a run."""

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
    """Holds a run's folder while the `with` block lasts; the system lets go of it when the process dies."""

    def __init__(self, path: Path, *, run: Path) -> None:
        self._path = path
        self._run = run

    def __enter__(self) -> "Lease":
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 4096, 0)
            os.close(self._file)
            raise RunActive(f"the run in {self._run} is active{_who(holder)}") from None
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
        os.close(self._file)


def _who(note: bytes) -> str:
    try:
        holder = jsontext.decode(note)
        return f" on host {holder['host']}, process {holder['pid']}, since {holder['since']}"
    except (InputError, KeyError, TypeError):
        return " in another process"
