"""Runs the trials of a suite, several at a time, and survives being interrupted or killed."""

import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

from evenhand.core.errors import OutputError, Unavailable
from evenhand.evaluation.trials.ledger import Ledger, TrialFolder
from evenhand.evaluation.trials.plan import Key, Trial, planned
from evenhand.evaluation.trials.processes import Processes, Stopped, kill_leftovers
from evenhand.evaluation.trials.suite import Choice, LoadedSuite
from evenhand.evaluation.trials.trial import Bench, run_trial
from evenhand.evaluation.trials.workspaces import Workspaces, resolve_commit
from evenhand.results.writing import JsonlFile


class TrialOptions(Struct, frozen=True, kw_only=True):
    """How a suite is run."""

    folder: Path
    """Where everything goes."""
    parallel: int = 1
    """Trials at a time."""
    seed: int = 0
    """Decides the order."""
    keep_workspaces: bool = False
    """Leave the workspaces for inspection."""
    retry_infra: bool = False
    """Run trials again that ended in an infrastructure failure."""


class Progress(Struct, frozen=True, kw_only=True):
    """How far the trials have come."""

    done: int
    """Finished trials, those of earlier processes included."""
    total: int
    failures: int
    """Infrastructure failures among them."""
    eta_seconds: float | None
    """What the rest will take at the pace so far; None before the first trial ends."""
    record: dict[str, Any] | None
    """The trial that has just finished."""


class TrialsOutcome(Struct, frozen=True, kw_only=True):
    """How the trials of a suite ended."""

    done: int
    total: int
    ran: int
    """Trials that this process finished."""
    interrupted_by: int | None
    """The signal that ended it early; None when everything is finished."""
    collected: Path | None
    """The file with all records, once everything is finished."""


def run_suite(
    loaded: LoadedSuite,
    choice: Choice,
    options: TrialOptions,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> TrialsOutcome:
    """Run what is not finished yet. SIGINT and SIGTERM end it early without losing a finished trial."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(
            "running agents needs Linux, which can stop all that a command has started; "
            "`ab analyze` works everywhere"
        )
    commit = resolve_commit(loaded)
    with TrialFolder(options.folder) as folder:
        pinned = folder.pin(loaded, choice, commit)
        kill_leftovers(pinned.run_id)
        processes = Processes(pinned.run_id)
        workspaces = Workspaces(loaded, folder.workspaces.resolve(), folder.path, pinned.commit)
        if not options.keep_workspaces:
            workspaces.clear()
        bench = Bench(
            loaded=loaded,
            processes=processes,
            workspaces=workspaces,
            trials=folder.trials.resolve(),
            run_folder=folder.path.resolve(),
            keep_workspaces=options.keep_workspaces,
        )
        ledger = Ledger(folder.finished_file)
        try:
            crew = _Crew(bench, ledger, choice, options, on_progress)
            with _signals(crew.interrupt):
                crew.work()
            collected = None
            if crew.interrupted_by is None:
                collected = folder.path / "collected.jsonl"
                with JsonlFile(collected) as file:
                    for record in ledger.chosen(choice):
                        file.write(record)
        finally:
            ledger.close()
        if not options.keep_workspaces:
            workspaces.clear()
    return TrialsOutcome(
        done=crew.done,
        total=crew.total,
        ran=crew.ran,
        interrupted_by=crew.interrupted_by,
        collected=collected,
    )


class _Crew:
    """Threads that take trials one by one; only the calling thread writes and reports."""

    def __init__(
        self,
        bench: Bench,
        ledger: Ledger,
        choice: Choice,
        options: TrialOptions,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._bench = bench
        self._ledger = ledger
        self._on_progress = on_progress
        finished = ledger.settled(retry_infra=options.retry_infra)
        trials = planned(choice, seed=options.seed, finished=finished)
        self.total = len(choice.tasks) * len(choice.arms) * choice.repeats
        self.done = self.total - len(trials)
        self.ran = 0
        self.interrupted_by: int | None = None
        self._failures = sum(bool(record.get("infra_failure")) for record in ledger.chosen(choice))
        if options.retry_infra:
            self._failures = 0
        self._waiting: queue.SimpleQueue[Trial] = queue.SimpleQueue()
        for trial in trials:
            self._waiting.put(trial)
        self._ended: queue.SimpleQueue[tuple[Key, dict[str, Any]] | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._threads = [
            threading.Thread(target=self._take, name=f"trial-{number}", daemon=True)
            for number in range(min(options.parallel, len(trials)))
        ]

    def interrupt(self, number: int) -> None:
        """Start nothing more and end what runs; called from a signal handler."""
        self.interrupted_by = number

    def work(self) -> None:
        """Until every trial is finished, or the run is interrupted."""
        begun = time.monotonic()
        self._report(begun, None)
        for thread in self._threads:
            thread.start()
        alive = len(self._threads)
        trouble: BaseException | None = None
        while alive:
            if self.interrupted_by is not None or trouble is not None:
                self._bench.processes.stop()
            try:
                ended = self._ended.get(timeout=0.2)
            except queue.Empty:
                continue
            if ended is None:
                alive -= 1
            elif isinstance(ended, BaseException):
                trouble = trouble or ended
            elif trouble is None:
                trouble = self._keep(*ended, begun)
        for thread in self._threads:
            thread.join()
        if trouble is not None:
            raise trouble
        if self.done == self.total:
            # A signal that came after the last trial has nothing left to interrupt.
            self.interrupted_by = None

    def _keep(self, key: Key, record: dict[str, Any], begun: float) -> BaseException | None:
        try:
            self._ledger.add(key, record)
        except OSError as error:
            return OutputError(f"{self._ledger.path}: cannot be written: {error.strerror}")
        self.done += 1
        self.ran += 1
        self._failures += bool(record.get("infra_failure"))
        self._report(begun, record)
        return None

    def _take(self) -> None:
        try:
            while self.interrupted_by is None:
                try:
                    trial = self._waiting.get_nowait()
                except queue.Empty:
                    return
                self._ended.put((trial.key, run_trial(self._bench, trial)))
        except Stopped:
            return
        except BaseException as error:
            self._ended.put(error)
        finally:
            self._ended.put(None)

    def _report(self, begun: float, record: dict[str, Any] | None) -> None:
        left = self.total - self.done
        pace = (time.monotonic() - begun) / self.ran if self.ran else None
        self._on_progress(
            Progress(
                done=self.done,
                total=self.total,
                failures=self._failures,
                eta_seconds=None if pace is None else pace * left,
                record=record,
            )
        )


@contextmanager
def _signals(handle: Callable[[int], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `handle` while the block lasts; other threads than the main one cannot ask for that."""

    def caught(number: int, _frame: FrameType | None) -> None:
        handle(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, caught) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
