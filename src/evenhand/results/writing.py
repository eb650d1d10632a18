"""Writing artifacts: whole or not at all."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from evenhand.core import jsontext

_ENCODER = msgspec.json.Encoder()


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Replace `path` by `text`, or by its parts; a reader sees the old file or the new one, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            for part in (text,) if isinstance(text, str) else text:
                file.write(part.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the name that the caller knows
        raise


def write_json(path: Path, value: Any) -> None:
    """`write_text` of `value` as indented JSON."""
    write_text(path, msgspec.json.format(jsontext.encode(value), indent=2).decode("utf-8") + "\n")


class JsonlFile:
    """A JSONL file that appears under its name when the `with` block ends well, and not at all otherwise."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")

    def __enter__(self) -> "JsonlFile":
        self._file = self._temporary.open("wb")
        return self

    def write(self, value: Any) -> None:
        self._file.write(jsontext.encode(value) + b"\n")

    def write_checked(self, value: Any) -> None:
        """`write` for what was read from JSON before, and so holds no NaN."""
        self._file.write(_ENCODER.encode(value) + b"\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
            if kind is None:
                self._temporary.replace(self._path)
            else:
                self._temporary.unlink(missing_ok=True)
