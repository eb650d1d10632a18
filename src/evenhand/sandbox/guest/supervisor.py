"""The first process in the sandbox: starts the program, examines it, holds its limits, reports to the host.

It is process 1 of its own namespace, so nothing inside can signal it, and it is not dumpable, so nothing inside
can read its memory or descriptors. The program is forked off before the test has been received.
"""

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any

from evenhand.sandbox.guest import examiner, program, wire

WORK_FOLDER = "/tmp/work"  # noqa: S108  the sandbox's own tmpfs
STDIN_FILE = "/tmp/stdin"  # noqa: S108  the same
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 4, 22, 38, 2
_JOB_LIMIT = 256 * 1024 * 1024
_OOM_FILES = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


def main() -> None:
    """Serve one job, then end: and with process 1 everything in the namespace ends."""
    _dumpable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _filter_calls()
    receive, report = _take_streams()
    wire.write_json(report, {"event": "ready", "pid": os.getpid()})
    job = wire.read_json(receive, _JOB_LIMIT)
    if job is not None:
        Supervisor(receive, report, job).run()
    os._exit(0)


def _dumpable(value: bool) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0)


def _filter_calls() -> None:
    """Put this process, and what it starts, under the filter that the host sent along, if it sent one."""
    sent = sys.modules.get("evenhand.sandbox.guest.filter")
    if sent is None:
        return
    data: bytes = sent.PROGRAM
    code = ctypes.create_string_buffer(data, len(data))
    program_ = struct.pack("HxxxxxxP", len(data) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(program_), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the filter of system calls could not be set")


def _take_streams() -> tuple[int, int]:
    """Move the host's pipes out of the places where programs expect their own."""
    receive, report = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(null)
    return receive, report


class Supervisor:
    """One program, from start to report."""

    def __init__(self, receive: int, report: int, job: dict[str, Any]) -> None:
        self.receive = receive
        self.report = report
        self.job = job
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.ending = ""
        self.left = int(job["output_bytes"])
        self.truncated = False
        self.child = 0
        self.status: tuple[int, Any] | None = None
        self.nonce = ""
        self.alive = False
        self.started = time.monotonic()

    def run(self) -> None:
        os.makedirs(WORK_FOLDER, exist_ok=True)
        os.chdir(WORK_FOLDER)
        self._write_files()
        graded = bool(self.job["graded"])
        kills = _memory_kills()
        ours, theirs = socket.socketpair()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        gate, opener = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            # Not before the supervisor has all its threads: the program may take every place that is left.
            os.close(opener)
            os.read(gate, 1)
            self._become_program(theirs.fileno() if graded else None, out_write, err_write)
        theirs.close()
        # What the test prints belongs to the output as well.
        os.dup2(out_write, 1)
        os.dup2(err_write, 2)
        os.close(out_write)
        os.close(err_write)
        self._limit_memory()
        # Only now, with the program's process split off, does the test enter this one.
        exam = wire.read_json(self.receive, _JOB_LIMIT) or {}
        self.nonce = str(exam.get("nonce", ""))
        pump = threading.Thread(target=self._pump, args=({out_read: b"O", err_read: b"E"},), daemon=True)
        pump.start()
        # From here the program's time counts: not from before its test arrived.
        self.started = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()
        os.write(opener, b"g")
        os.close(opener)
        os.close(gate)
        grade = None
        if graded:
            stdout = sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
            grade = examiner.examine(ours.fileno(), exam)
            # The test may have closed it.
            with contextlib.suppress(ValueError):
                stdout.flush()
        else:
            self._wait()
        self._finish(pump, grade, _memory_kills() > kills)

    def _limit_memory(self) -> None:
        """Hold the test's own memory too: what the program answers may make it grow."""
        resource.setrlimit(resource.RLIMIT_DATA, (int(self.job["memory_bytes"]) * 3 // 4,) * 2)

    def _write_files(self) -> None:
        files = {name: base64.b64decode(data) for name, data in self.job["files"].items()}
        files[program.FILE_NAME] = self.job["source"].encode("utf-8", "surrogatepass")
        for name, data in files.items():
            folder = os.path.dirname(name)
            if folder:
                os.makedirs(folder, exist_ok=True)
            with open(name, "wb") as file:
                file.write(data)

    def _become_program(self, link: int | None, out: int, err: int) -> None:
        """In the child: keep only the program's own descriptors and limits, then run it."""
        status = 1
        try:
            stdin = self._stdin()
            kept = [stdin, out, err] + ([] if link is None else [link])
            copies = [os.dup(fd) for fd in kept]
            high = max(copies) + 1
            for fd in copies:
                os.dup2(fd, high + fd)
            for place, fd in enumerate(copies):
                os.dup2(high + fd, place)
            os.closerange(len(copies), 1 << 16)
            os.setsid()
            _write("/proc/self/oom_score_adj", "1000")
            for name, (soft, hard) in self.job["rlimits"].items():
                resource.setrlimit(getattr(resource, name), (soft, hard))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _dumpable(True)
            sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115  lives on
            sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115  lives on
            sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  lives on
            sys.argv = [program.FILE_NAME]
            source = self.job["source"]
            self.job = {}
            status = program.run_script(source) if link is None else program.serve(3, source)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def _stdin(self) -> int:
        """Standard input as a file without a name: files have a limit of their own, nameless memory has none."""
        with open(STDIN_FILE, "xb") as file:
            file.write(base64.b64decode(self.job["stdin"]))
        stdin = os.open(STDIN_FILE, os.O_RDONLY)
        os.unlink(STDIN_FILE)
        return stdin

    def _wait(self) -> None:
        """Reap until the program itself has ended."""
        while self.status is None:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                return
            if pid == self.child:
                self.status = (status, usage)

    def _pump(self, streams: dict[int, bytes]) -> None:
        """Pass the program's output to the host, up to its limit."""
        while streams:
            ready, _, _ = select.select(list(streams), [], [])
            for fd in ready:
                data = os.read(fd, 65536)
                if not data:
                    del streams[fd]
                    continue
                kept = data[: self.left]
                self.left -= len(kept)
                if kept:
                    self._send(streams[fd], kept)
                if len(kept) < len(data) and not self.truncated:
                    self.truncated = True
                    self.ending = self.ending or "output_limit"
                    self._kill_all()

    def _watch(self) -> None:
        """End the program at its time limit, or when the host goes away."""
        until = self.started + float(self.job["wall_seconds"])
        while not self.done.is_set():
            left = until - time.monotonic()
            if left <= 0:
                self._time_out()
                return
            if select.select([self.receive], [], [], min(left, 0.25))[0] and not os.read(self.receive, 1):
                os._exit(0)
            if self.job["graded"] and self._has_ended():
                # Whatever it left running does not answer for it.
                self._kill_all()

    def _has_ended(self) -> bool:
        try:
            return os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _time_out(self) -> None:
        """Kill the program; the report follows when the main thread notices."""
        self.ending = self.ending or "timeout"
        self._kill_all()
        # A test that is busy itself notices nothing: then the report is made here.
        if not self.done.wait(0.5):
            self._end(None, False)

    def _kill_all(self) -> None:
        try:
            if os.getpid() == 1:
                os.kill(-1, signal.SIGKILL)
            else:
                os.kill(self.child, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _finish(self, pump: threading.Thread, grade: dict[str, Any] | None, memory: bool) -> None:
        # A program that answered to the end is still waiting for the next call.
        self.alive = self.status is None and not self._has_ended()
        if grade is not None and grade["passed"] and not self.alive:
            # A child of its own answered in its place, or it ended behind the test's back.
            grade.update(passed=False, reason="ended_early", message="the program ended before its test did")
        self._kill_all()
        self._wait()
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        pump.join(10)
        self._end(grade, memory)

    def _end(self, grade: dict[str, Any] | None, memory: bool) -> None:
        with self.lock:
            if self.done.is_set():
                return
            self.done.set()
        status, usage = self.status or (None, None)
        report = {
            "event": "end",
            "nonce": self.nonce,
            "ending": self.ending,
            "memory": memory,
            "status": None if self.alive else status,
            "truncated": self.truncated,
            "grade": grade,
            "wall_seconds": time.monotonic() - self.started,
            "cpu_seconds": usage.ru_utime + usage.ru_stime if usage else 0.0,
            "memory_bytes": usage.ru_maxrss * 1024 if usage else 0,
        }
        self._send(b"J", json.dumps(report).encode("ascii"))
        os._exit(0)

    def _send(self, kind: bytes, body: bytes) -> None:
        with _SENDING:
            wire.write_frame(self.report, kind, body)


_SENDING = threading.Lock()


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError:
        return


def _memory_kills() -> int:
    """How often the kernel killed for memory in this container, where it can be seen from inside."""
    for path in _OOM_FILES:
        try:
            with open(path) as file:
                for line in file:
                    name, _, count = line.partition(" ")
                    if name == "oom_kill":
                        return int(count)
        except (OSError, ValueError):
            continue
    return 0
