"""A run's folder: the artifacts for people, and under `.run` what a resume needs."""

import contextlib
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenhand.core import jsontext
from evenhand.core.errors import InputError, OutputError, RunConflict
from evenhand.evaluation.journal import StorageFailed, storage_message
from evenhand.results.writing import write_json

FORMAT = 1


class Pinned(Struct, frozen=True, kw_only=True):
    """What a run was started with."""

    format: int
    """The version of this layout."""
    run_id: str
    """Names the run."""
    started_at: str
    """When it was first started."""
    benchmark: str
    """The benchmark's name."""
    problems: int
    """How many problems are asked."""
    repeats: int
    """Answers per problem."""
    identity: dict[str, Any]
    """Everything that decides the result."""
    hashes: dict[str, str]
    """Digests for comparing runs."""
    scorers: tuple[str, ...] = ()
    """The names of the scorers, the first one first, where every line of the results names them."""
    order_seed: int | None = None
    """The seed of the order in which the problems are asked, where they are not asked as they stand."""
    finished: bool = False
    """Whether the artifacts have been written for the whole run."""


class RunFolder:
    """Paths of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / ".run"
        self.plan = self.work / "plan.json"
        self.problems = self.work / "problems.jsonl"
        self.journal = self.work / "journal.jsonl"
        self.lock = self.work / "lock"
        self.judge_key = self.work / "judge.key"

    def create(self) -> None:
        try:
            self.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be made: {error.strerror}") from None

    def discard_if_empty(self) -> None:
        """Take back what `create` made when no run was started in it."""
        if self.plan.exists():
            return
        with contextlib.suppress(OSError):  # a folder that holds something else stays
            self.lock.unlink(missing_ok=True)
            self.work.rmdir()
            self.path.rmdir()

    def pinned(self) -> Pinned | None:
        """What the run here was started with; None when there is no run yet."""
        try:
            data = self.plan.read_bytes()
        except FileNotFoundError:
            return None
        try:
            pinned = jsontext.decode(data, type=Pinned)
        except InputError as error:
            raise InputError(error.reason, path=self.plan) from None
        if pinned.format != FORMAT:
            raise RunConflict(
                f"{self.path} was written by another version of evenhand; start in a new folder"
            )
        return pinned

    def pin(self, pinned: Pinned) -> None:
        try:
            write_json(self.plan, pinned)
        except OSError as error:
            raise StorageFailed(storage_message(self.plan, error)) from None
