"""The folder of a run: who works on it, what it was started with, and which trials are finished."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core import jsontext
from evenhand.core.errors import InputError, OutputError, RunConflict
from evenhand.core.ids import new_id
from evenhand.evaluation.lease import Lease
from evenhand.evaluation.trials.plan import Key
from evenhand.evaluation.trials.suite import Choice, LoadedSuite
from evenhand.results.writing import write_json

FORMAT = 1


class Pinned(Struct, frozen=True, kw_only=True):
    """What a run was started with; a later start with anything else is refused."""

    format: int
    run_id: str
    """Marks the processes of this run."""
    commit: str | None
    """The commit that git workspaces check out."""
    shared: str
    """Digest of everything that all trials share."""
    tasks: dict[str, str]
    """Digest of every task that was run."""
    arms: dict[str, str]
    """Digest of every arm that was run."""


class TrialFolder:
    """The folder of a suite's trials, held by one process while the `with` block lasts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / "trials"
        self.workspaces = path / "workspaces"
        self.finished_file = path / "finished.jsonl"
        self._pinned_file = path / "run.json"
        self._lease = Lease(path / "lock", refusal=f"the run in {path} is active")

    def __enter__(self) -> "TrialFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lease.__enter__()
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be made: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.__exit__(kind, error, trace)

    def pinned(self) -> Pinned | None:
        """What the run here was started with; None when there is none."""
        try:
            data = self._pinned_file.read_bytes()
        except FileNotFoundError:
            return None
        try:
            pinned = jsontext.decode(data, type=Pinned)
        except InputError as error:
            raise InputError(error.reason, path=self._pinned_file) from None
        if pinned.format != FORMAT:
            raise RunConflict(f"{self.path} was written by another version of evenhand; use another folder")
        return pinned

    def pin(self, loaded: LoadedSuite, choice: Choice, commit: str | None) -> Pinned:
        """Check the suite against what is there, and write down what is new.

        More repeats, tasks or arms may join a run. What was run already must not have changed.
        """
        before = self.pinned()
        now = digests(loaded, choice, commit)
        if before is not None:
            changed = ["the workspace, usage or limits of the suite"] if before.shared != now.shared else []
            for kind in ("tasks", "arms"):
                known, new = getattr(before, kind), getattr(now, kind)
                changed += [f"{kind[:-1]} {name}" for name in new if known.get(name, new[name]) != new[name]]
            if changed:
                raise RunConflict(
                    f"the run in {self.path} was started with another suite; changed: {', '.join(changed)}. "
                    "Use another folder (--output)"
                )
            now = msgspec.structs.replace(
                now,
                run_id=before.run_id,
                commit=before.commit,
                tasks=before.tasks | now.tasks,
                arms=before.arms | now.arms,
            )
        if now != before:
            write_json(self._pinned_file, now)
        return now


def digests(loaded: LoadedSuite, choice: Choice, commit: str | None) -> Pinned:
    """What decides a trial, as digests: values such as keys in `env` are not written down."""
    suite = loaded.suite
    shared = {
        name: getattr(suite, name)
        for name in suite.__struct_fields__
        if name not in ("name", "tasks", "arms", "repeats")
    }
    return Pinned(
        format=FORMAT,
        run_id=new_id(),
        commit=commit,
        shared=_digest(shared),
        tasks={task.id: _digest([task, loaded.prompts[task.id]]) for task in choice.tasks},
        arms={arm.name: _digest(arm) for arm in choice.arms},
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(jsontext.canonical(msgspec.to_builtins(value))).hexdigest()


class Ledger:
    """The finished trials: one JSON line each, on the disk before the trial counts as finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[Key, dict[str, Any]] = {}
        self._load()
        new = not path.exists()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if new:
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def _load(self) -> None:
        self.records, whole = _read(self.path)
        if self.path.exists() and whole < self.path.stat().st_size:
            os.truncate(self.path, whole)

    def add(self, key: Key, record: dict[str, Any]) -> None:
        """Write a finished trial down, durably."""
        line = jsontext.encode(record) + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        self.records[key] = record

    def settled(self, *, retry_infra: bool) -> set[Key]:
        """The trials that need not run again."""
        return _settled(self.records, retry_infra=retry_infra)

    def chosen(self, choice: Choice) -> Iterable[dict[str, Any]]:
        """The finished trials of a choice, in canonical order."""
        arms, tasks = {arm.name for arm in choice.arms}, {task.id for task in choice.tasks}
        for key in sorted(self.records):
            if key.arm in arms and key.task in tasks and key.repeat <= choice.repeats:
                yield self.records[key]

    def close(self) -> None:
        os.close(self._file)


def finished_trials(folder: Path, *, retry_infra: bool) -> set[Key]:
    """The trials of a run's folder that need not run again; changes nothing there."""
    return _settled(_read(TrialFolder(folder).finished_file)[0], retry_infra=retry_infra)


def _settled(records: dict[Key, dict[str, Any]], *, retry_infra: bool) -> set[Key]:
    return {key for key, record in records.items() if not (retry_infra and record.get("infra_failure"))}


def _read(path: Path) -> tuple[dict[Key, dict[str, Any]], int]:
    """The finished trials, and how many bytes of the file are whole lines.

    A last line without an end is a write that a crash cut short: its trial did not finish.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}, 0
    records = {}
    whole = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        try:
            record = jsontext.decode(line)
            records[Key(record["task_id"], record["arm"], record["repeat"])] = record
        except (InputError, KeyError, TypeError):
            raise InputError("is not a finished trial", path=path, line=number) from None
    return records, whole
