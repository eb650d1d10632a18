"""Runs one command of a trial as a process of its own, and leaves nothing behind.

Started by `processes.py` as a script: it uses the standard library only and imports nothing of ours, so that it starts
in a few milliseconds. It reads what to do as JSON from stdin and writes how it ended as JSON to stdout.

It is the subreaper of everything the command starts: a process that daemonizes, or moves to a session of its own, becomes
its child and is found and killed when the command ends or its time is up. When the process that started it dies, even
by SIGKILL, the kernel tells it, and it kills the command and exits.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import TypedDict

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TIMED_OUT = 124
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
CLEANUP_SECONDS = 10.0


class Spec(TypedDict):
    """What to run."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    """The whole environment of the command."""
    stdout: str
    stderr: str
    """Files that the output is appended to."""
    timeout: float
    grace: float
    """Seconds between being asked to end and being killed."""
    parent: int
    """The process that must be alive for this one to go on."""


class End(TypedDict, total=False):
    """How it ended."""

    exit_code: int | None
    """As Popen says it: minus the signal's number when one killed it; 124 past the limit; None when stopped."""
    seconds: float
    timed_out: bool
    stopped: bool
    """Told to stop, or the parent is gone."""
    left_running: int
    """Processes that the command left behind, and that were killed."""
    error: str
    """Why it could not be started."""


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def descendants() -> list[int]:
    """Every live process below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue  # it ended while we looked
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send(number: signal.Signals) -> int:
    """Signal every descendant; returns how many there were."""
    alive = descendants()
    for pid in alive:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
    return len(alive)


def reap() -> dict[int, int]:
    """Collect the children that have ended."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def clear(grace: float) -> int:
    """End every descendant: asked first, killed after `grace` seconds. Returns how many there were."""
    count = send(signal.SIGTERM) if grace > 0 else 0
    end = time.monotonic() + grace
    while grace > 0 and descendants() and time.monotonic() < end:
        reap()
        time.sleep(0.01)
    end = time.monotonic() + CLEANUP_SECONDS
    while (killed := send(signal.SIGKILL)) and time.monotonic() < end:
        count = max(count, killed)
        time.sleep(0.005)
        reap()
    reap()
    return count


def start(spec: Spec, mask: set[signal.Signals] | set[int]) -> int:
    """Start the command in a session of its own; returns its process id."""

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    with open(spec["stdout"], "ab") as out, open(spec["stderr"], "ab") as err:
        process = subprocess.Popen(  # noqa: S603  the command is the suite's own
            spec["argv"],
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509  there is one thread here
        )
    # This process reaps by itself, as it must for children that it did not start.
    process.returncode = 0
    return process.pid


def supervise(spec: Spec) -> End:
    """Run the command until it ends, its time is up, or this process is told to stop."""
    watched = {signal.SIGCHLD, *STOP_SIGNALS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != spec["parent"]:
        return {"exit_code": None, "stopped": True}
    begun = time.monotonic()
    try:
        leader = start(spec, mask)
    except OSError as error:
        return {"exit_code": 127, "error": f"cannot be started: {error.strerror or error}"}
    deadline = begun + spec["timeout"]
    while True:
        came = signal.sigtimedwait(watched, max(0.0, deadline - time.monotonic()))
        if came is None:
            seconds = time.monotonic() - begun
            clear(spec["grace"])
            return {"exit_code": TIMED_OUT, "timed_out": True, "seconds": seconds}
        if came.si_signo in STOP_SIGNALS:
            clear(0.0)
            return {"exit_code": None, "stopped": True}
        ended = reap()
        if leader in ended:
            seconds = time.monotonic() - begun
            left = clear(min(1.0, spec["grace"]))
            return {"exit_code": ended[leader], "seconds": seconds, "left_running": left}


def main() -> None:
    result = supervise(json.load(sys.stdin))
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
