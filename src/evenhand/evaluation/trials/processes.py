"""Commands of a trial: started under a supervisor, stopped when asked, never left behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from evenhand.core import jsontext
from evenhand.core.errors import EvenhandError, InputError
from evenhand.evaluation.trials import supervisor
from evenhand.settings import child_environment

MARK = "EVENHAND_TRIAL_RUN"
"""The variable in the environment of every command by which leftovers of a run are found."""


class Stopped(EvenhandError):
    """The run was told to stop; the trial is not finished."""


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: int
    """Minus the signal's number when a signal killed it; 124 past the time limit; 127 when it could not start."""
    seconds: float = 0.0
    timed_out: bool = False
    left_running: int = 0
    """Processes that it left behind, and that were killed."""
    error: str = ""
    """Why it could not be started."""


class Processes:
    """Starts commands and can stop them all. One per run, shared by its threads."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopping = False

    def run(
        self,
        argv: list[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: Path,
        stderr: Path,
        timeout: float,
        grace: float,
    ) -> Ended:
        """Run a command to its end or its time limit; `Stopped` when the run is told to stop meanwhile."""
        spec: supervisor.Spec = {
            "argv": argv,
            "cwd": str(cwd),
            "env": child_environment(**env, **{MARK: self._run_id}),
            "stdout": str(stdout),
            "stderr": str(stderr),
            "timeout": timeout,
            "grace": grace,
            "parent": os.getpid(),
        }
        with self._lock:
            if self._stopping:
                raise Stopped("stopped")
            process = subprocess.Popen(  # noqa: S603  our own interpreter and script
                [sys.executable, "-I", "-S", str(supervisor.__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal reaches this process only; it decides what becomes of the trials.
                start_new_session=True,
            )
            self._running.add(process)
        try:
            reply, trouble = process.communicate(jsontext.encode(spec))
        finally:
            with self._lock:
                self._running.discard(process)
        return self._ended(reply, trouble)

    def _ended(self, reply: bytes, trouble: bytes) -> Ended:
        try:
            end = jsontext.decode(reply, type=supervisor.End)
        except InputError:
            if self._stopping:
                raise Stopped("stopped") from None
            last = trouble.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return Ended(exit_code=127, error=f"the supervisor died: {last or 'it was killed'}")
        code = end.get("exit_code")
        if code is None:
            raise Stopped("stopped")
        return Ended(
            exit_code=code,
            seconds=end.get("seconds", 0.0),
            timed_out=end.get("timed_out", False),
            left_running=end.get("left_running", 0),
            error=end.get("error", ""),
        )

    def stop(self) -> None:
        """End every running command; none starts any more."""
        with self._lock:
            self._stopping = True
            for process in self._running:
                process.terminate()


def kill_leftovers(run_id: str) -> int:
    """Kill processes of an earlier process of this run that outlived it; returns how many."""
    mark = f"{MARK}={run_id}".encode()
    spared = _ancestors()
    killed = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in spared:
            continue
        try:
            if mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                os.kill(int(name), signal.SIGKILL)
                killed += 1
        except OSError:
            continue  # another user's process, or one that has just ended
    return killed


def _ancestors() -> set[int]:
    found = set()
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            break
    return found
