"""The plan of a run: which problems, pinned in a file, before the first call."""

import heapq
from array import array
from collections.abc import Callable, Iterator
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from evenhand.benchmarks.definition import Benchmark, Problem, ProblemMaker
from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.datasets.sources import Source
from evenhand.evaluation.config import Selection

_PROBLEM = msgspec.json.Decoder(Problem)


class ProblemFile:
    """The problems of a run, one a line, read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offsets = array("q", [0])
        with path.open("rb") as file:
            for line in file:
                self._offsets.append(self._offsets[-1] + len(line))
        self._file = path.open("rb")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> Problem:
        start, end = self._offsets[place], self._offsets[place + 1]
        self._file.seek(start)
        return _PROBLEM.decode(self._file.read(end - start))

    def __iter__(self) -> Iterator[Problem]:
        with self.path.open("rb") as file:
            for line in file:
                yield _PROBLEM.decode(line)

    def close(self) -> None:
        self._file.close()


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What planning found."""

    problems: int
    """How many problems were chosen."""
    available: int
    """How many the dataset offers."""
    dataset_sha256: str
    """Digest of every row of the dataset."""
    problems_sha256: str
    """Digest of the chosen problems as they are asked."""


def plan(
    benchmark: Benchmark, source: Source, selection: Selection, system_prompt: str | None, path: Path
) -> Planned:
    """Write the chosen problems to `path`. Every row is looked at, so a bad one is found before the first call."""
    dataset, problems = sha256(), sha256()
    chooser = _Chooser(selection)
    maker = ProblemMaker(benchmark, system_prompt=system_prompt)
    available = count = 0
    # A problem holds what its row holds, which the digest has looked at already, unless a function made it.
    looked_at = benchmark.prepare_row is None and benchmark.seed_fn is None
    encode = msgspec.json.encode if looked_at else jsontext.encode
    with path.open("wb") as file:
        for number, row in enumerate(source.rows()):
            dataset.update(_encoded(row.values, source, row.line, jsontext.canonical))
            try:
                problem = maker.make(row.values, number)
            except InputError as error:
                raise InputError(error.reason, path=source.label, line=row.line) from error
            if problem is None:
                continue
            if chooser.wants(available):
                chooser.offer(available, _encoded(problem, source, row.line, encode))
            available += 1
            count += _write(chooser.ready(), file, problems)
        count += _write(chooser.rest(), file, problems)
    if available == 0:
        raise InputError("the dataset has no rows to ask", path=source.label)
    if count == 0:
        raise InputError("this shard has no rows: there are fewer problems than shards", path=source.label)
    return Planned(
        problems=count,
        available=available,
        dataset_sha256=dataset.hexdigest(),
        problems_sha256=problems.hexdigest(),
    )


class _Chooser:
    """Chooses problems while they go by, in the order of the dataset, keeping no more than it must."""

    def __init__(self, selection: Selection) -> None:
        self._limit = selection.max_problems
        self._seed = selection.shuffle_seed
        self._shard = selection.shard
        self._ready: list[bytes] = []
        self._rank = 0
        # Random choice: the problems with the smallest keys, as a heap with the largest on top.
        self._heap: list[tuple[int, int, bytes]] = []

    def wants(self, position: int) -> bool:
        if self._limit is None or self._seed is None:
            return self._limit is None or position < self._limit
        return len(self._heap) < self._limit or -self._key(position) > self._heap[0][0]

    def offer(self, position: int, line: bytes) -> None:
        if self._limit is None or self._seed is None:
            self._take(line)
        elif len(self._heap) < self._limit:
            heapq.heappush(self._heap, (-self._key(position), position, line))
        else:
            heapq.heapreplace(self._heap, (-self._key(position), position, line))

    def ready(self) -> list[bytes]:
        taken, self._ready = self._ready, []
        return taken

    def rest(self) -> list[bytes]:
        for _, _, line in sorted(self._heap, key=lambda entry: entry[1]):
            self._take(line)
        return self.ready()

    def _take(self, line: bytes) -> None:
        if self._shard is None or self._rank % self._shard[1] == self._shard[0] - 1:
            self._ready.append(line)
        self._rank += 1

    def _key(self, position: int) -> int:
        return int.from_bytes(blake2b(f"{self._seed}:{position}".encode(), digest_size=8).digest(), "big")


def _write(lines: list[bytes], file: BinaryIO, digest: Any) -> int:
    for line in lines:
        digest.update(line + b"\n")
        file.write(line + b"\n")
    return len(lines)


def _encoded(value: Any, source: Source, line: int, encode: Callable[[Any], bytes]) -> bytes:
    try:
        return encode(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"the row cannot be kept as JSON: {error}", path=source.label, line=line) from None
