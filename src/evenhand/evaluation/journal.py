"""The journal of a run: every finished step, appended and never changed.

A step is handed to the operating system the moment it is finished, so a killed process loses only what was in
flight; `sync` makes everything written so far safe from a power failure too. A line torn by a crash is cut off
when the journal is opened; a damaged line elsewhere is left alone, counted, and its step is done again.
"""

import errno
import math
import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evenhand.core import jsontext
from evenhand.core.errors import EvenhandError, Exit
from evenhand.core.outcome import Scored
from evenhand.evaluation.records import Generated, Measured, Step

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Step] = msgspec.json.Decoder(Step)
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file size limit is reached",
}


_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has only the second


class StorageFailed(EvenhandError):
    """The journal could not be written: what was written before stands, and the run can be resumed."""

    exit_status = Exit.OUTPUT


class Place:
    """Where a step is in the journal."""

    __slots__ = ("length", "offset")

    def __init__(self, offset: int, length: int) -> None:
        self.offset = offset
        self.length = length


class Journal:
    """Append-only; one writer at a time (see `lease`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged_lines = 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._file).st_size
        self._synced = self._size
        self._repair()

    def append(self, step: Step) -> Place:
        """Write a step; `StorageFailed` when that is not possible, with nothing half-written left behind."""
        line = encode_step(step)
        offset = self._size
        try:
            written = os.write(self._file, line)
        except OSError as error:
            raise StorageFailed(storage_message(self.path, error)) from None
        if written < len(line):
            os.ftruncate(self._file, offset)
            raise StorageFailed(storage_message(self.path, OSError(errno.ENOSPC, "")))
        self._size += written
        return Place(offset, written)

    def sync(self) -> None:
        """Make everything written so far safe; may be called from another thread."""
        target = self._size
        if target == self._synced:
            return
        try:
            _sync_data(self._file)
        except OSError as error:
            # After a failed sync nobody knows what is on the disk: a second attempt would only look like success.
            raise StorageFailed(storage_message(self.path, error)) from None
        self._synced = target

    def read(self, offset: int, length: int) -> Step:
        """The step at a place."""
        return _DECODER.decode(os.pread(self._file, length, offset))

    def replay(self) -> Iterator[tuple[Step, Place]]:
        """Every readable step in the order of writing."""
        self.damaged_lines = 0
        offset = 0
        with self.path.open("rb", buffering=1 << 20) as file:
            for line in file:
                try:
                    step = _DECODER.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.damaged_lines += 1
                else:
                    yield step, Place(offset, len(line))
                offset += len(line)

    def close(self) -> None:
        os.close(self._file)

    def _repair(self) -> None:
        """Cut off a last line that has no end."""
        position = self._size
        while position > 0:
            start = max(0, position - 65536)
            block = os.pread(self._file, position - start, start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position < self._size:
            os.ftruncate(self._file, position)
            self._size = self._synced = position


class Places:
    """A place for each of a fixed number of samples, compactly."""

    def __init__(self, count: int) -> None:
        self.offsets = array("q", [-1]) * count
        self.lengths = array("i", [0]) * count

    def __contains__(self, key: int) -> bool:
        return self.offsets[key] >= 0

    def put(self, key: int, place: Place) -> None:
        self.offsets[key] = place.offset
        self.lengths[key] = place.length

    def drop(self, key: int) -> None:
        self.offsets[key] = -1

    def read(self, journal: Journal, key: int) -> Step:
        return journal.read(self.offsets[key], self.lengths[key])


def encode_step(step: Step) -> bytes:
    """One line. Lone surrogates, which UTF-8 cannot carry, become question marks."""
    try:
        # The numbers of a generation are our own and finite; what a scorer or a judge says is looked at.
        plain = isinstance(step, Generated) or (isinstance(step, Measured) and _is_plain(step))
        return (_ENCODER.encode(step) if plain else jsontext.encode(step)) + b"\n"
    except UnicodeEncodeError:
        return jsontext.encode(msgspec.convert(_clean(msgspec.to_builtins(step)), Step)) + b"\n"


def _is_plain(step: Measured) -> bool:
    """Whether a scorer said no more than a finite number: there is nothing in it that JSON cannot hold."""
    outcome = step.outcome
    return (
        type(outcome) is Scored
        and type(outcome.value) is float
        and math.isfinite(outcome.value)
        and not outcome.details
        and not step.others
        and (outcome.extracted is None or type(outcome.extracted) is str)
    )


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def storage_message(path: Path, error: OSError) -> str:
    """One sentence about a write that failed."""
    reason = _FULL.get(error.errno or 0, error.strerror or str(error))
    return f"{path} cannot be written: {reason}; what was finished before is kept"
