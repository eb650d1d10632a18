"""The embedded back end on Linux: namespaces by bubblewrap, a system call filter, control groups or rlimits."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from msgspec import Struct

from evenhand.core.errors import SandboxUnavailable
from evenhand.sandbox import seccomp
from evenhand.sandbox.cgroups import Group, Hierarchy, find_hierarchy, sweep
from evenhand.sandbox.port import MEBIBYTE, SUPERVISOR_TASKS, ResourceLimits
from evenhand.sandbox.worker import START_SECONDS, boot_text, compiled_guest, guest_sources

NOBODY = 65534
"""The uid and gid that programs run as when this process is root: the limit on processes does not bind root."""
INSTALL = "apt-get install bubblewrap"
_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_LATER = 3.0


class BubblewrapOptions(Struct, frozen=True, kw_only=True):
    """How the back end is set up."""

    python: str | None = None
    """The interpreter for programs; None: this one if an unprivileged user can reach it, else the system's."""
    packages: bool = False
    """Whether programs can import what is installed for that interpreter besides the standard library."""
    control_groups: bool = True
    """Whether to use control groups where they can be made."""


class Bubblewrap:
    """Starts sandboxes with `bwrap`."""

    name = "bubblewrap"

    def __init__(self, options: BubblewrapOptions | None = None) -> None:
        self.options = options or BubblewrapOptions()
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxUnavailable(f"bubblewrap is not installed; install it with: {INSTALL}")
        self.bwrap = found
        self.python = self.options.python or _reachable_python()
        self.hierarchy: Hierarchy | None = find_hierarchy() if self.options.control_groups else None
        if self.hierarchy is not None:
            sweep(self.hierarchy)
        self.filter = seccomp.filter_program()
        self.guest = guest_sources()
        self._compile_guest()

    def start(self, limits: ResourceLimits) -> "BubblewrapWorker":
        """A new sandbox whose inside is starting."""
        return BubblewrapWorker(self, limits)

    def close(self) -> None:
        """Nothing is shared between sandboxes, so nothing is left."""

    def arguments(self, limits: ResourceLimits) -> list[str]:
        """The command line, without the descriptors that each start adds."""
        prefix = _prefix(self.python)
        command = [self.bwrap, "--unshare-all", "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        command += ["--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
        command += ["--hostname", "sandbox", "--clearenv", "--ro-bind", "/usr", "/usr"]
        for folder in _FOLDERS:
            if os.path.islink(folder):
                command += ["--symlink", os.readlink(folder), folder]
            elif os.path.isdir(folder):
                command += ["--ro-bind", folder, folder]
        for file in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
            command += ["--ro-bind-try", file, file]
        shared = str(min(limits.disk_bytes, 16 * MEBIBYTE))
        command += ["--proc", "/proc", "--dev", "/dev", "--size", shared, "--tmpfs", "/dev/shm"]  # noqa: S108  the sandbox's own
        command += ["--size", str(limits.disk_bytes), "--tmpfs", "/tmp"]  # noqa: S108  the sandbox's own
        if prefix is not None:
            # After /tmp: the interpreter may lie below it.
            command += ["--ro-bind", prefix, prefix]
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108  the sandbox's own
        for name, value in (("PATH", "/usr/bin:/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")):  # noqa: S108  the same
            command += ["--setenv", name, value]
        return command

    def interpreter(self) -> list[str]:
        """The command inside."""
        flags = ["-I"] if self.options.packages else ["-I", "-S"]
        return [self.python, *flags, "-c", boot_text()]

    def _compile_guest(self) -> None:
        """Let the interpreter compile the inside once, in a sandbox; later starts take its result."""
        worker = BubblewrapWorker(self, ResourceLimits(), guest=guest_sources(b"C"))
        self.guest = compiled_guest(worker, otherwise="bubblewrap cannot start a sandbox here")


def _reachable_python() -> str:
    """An interpreter that an unprivileged user can run."""
    own = os.path.realpath(os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
    for candidate in (own, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(candidate) and (os.geteuid() != 0 or _open_to_all(candidate)):
            return candidate
    raise SandboxUnavailable(
        "no Python that an unprivileged user can run; install one: apt-get install python3"
    )


def _open_to_all(path: str) -> bool:
    file = Path(path)
    return file.stat().st_mode & 0o005 == 0o005 and all(p.stat().st_mode & 0o001 for p in file.parents)


def _prefix(python: str) -> str | None:
    """The folder tree that an interpreter outside the system's needs."""
    home = Path(python).resolve().parent.parent
    return None if str(home) == "/" or str(home).startswith("/usr") else str(home)


class BubblewrapWorker:
    """One sandbox made by `bwrap`."""

    name = "bubblewrap"

    def __init__(self, backend: Bubblewrap, limits: ResourceLimits, guest: bytes | None = None) -> None:
        self.group: Group | None = None
        self.pidfd = -1
        self.process = self._spawn(backend, limits)
        try:
            pid = self._inside_pid()
            self.pidfd = os.pidfd_open(pid)
            if backend.hierarchy is not None:
                self.group = Group(backend.hierarchy, limits)
                self.group.add(pid)
            self.send(backend.guest if guest is None else guest)
        except (OSError, ValueError, KeyError) as error:
            self.process.kill()
            said = self.diagnostics()
            self.kill()
            raise SandboxUnavailable(f"bubblewrap cannot start a sandbox here: {said or error}") from None

    def _spawn(self, backend: Bubblewrap, limits: ResourceLimits) -> subprocess.Popen[bytes]:
        info_read, info_write = os.pipe()
        passed = [info_write]
        command = [*backend.arguments(limits), "--info-fd", str(info_write)]
        if backend.filter is not None:
            filter_read, filter_write = os.pipe()
            os.write(filter_write, backend.filter)
            os.close(filter_write)
            passed.append(filter_read)
            command += ["--seccomp", str(filter_read)]
        else:
            command.append("--disable-userns")
        root = os.geteuid() == 0
        try:
            process = subprocess.Popen(  # noqa: S603  our own arguments
                [*command, "--", *backend.interpreter()],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=passed,
                start_new_session=True,
                cwd="/",
                env={},
                user=NOBODY if root else None,
                group=NOBODY if root else None,
                extra_groups=[] if root else None,
            )
        except BaseException:
            os.close(info_read)
            raise
        finally:
            for fd in passed:
                os.close(fd)
        self._info = info_read
        return process

    def _inside_pid(self) -> int:
        """The process that becomes the supervisor, under the number that the host knows."""
        data = b""
        try:
            until = time.monotonic() + START_SECONDS
            while not data.rstrip().endswith(b"}"):
                left = until - time.monotonic()
                if left <= 0 or not select.select([self._info], [], [], left)[0]:
                    raise ValueError("it did not start in time")
                part = os.read(self._info, 4096)
                if not part:
                    raise ValueError("it ended at once")
                data += part
        finally:
            os.close(self._info)
        return int(json.loads(data)["child-pid"])

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def receive(self, until: float) -> bytes | None:
        assert self.process.stdout is not None
        left = max(0.0, until - time.monotonic())
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        if not poll.poll(left * 1000):
            return None
        return os.read(self.process.stdout.fileno(), 1 << 18)

    def rlimits(self, limits: ResourceLimits) -> dict[str, tuple[int, int]]:
        found = {
            "RLIMIT_CPU": (limits.cpu_seconds, limits.cpu_seconds + 1),
            "RLIMIT_NPROC": (limits.processes + SUPERVISOR_TASKS,) * 2,
            "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
            "RLIMIT_FSIZE": (limits.disk_bytes, limits.disk_bytes),
            "RLIMIT_CORE": (0, 0),
        }
        if self.group is None or "memory" not in self.group.folders:
            # Address space is more than memory: leave room for the interpreter's own mappings.
            found["RLIMIT_AS"] = (limits.memory_bytes + 96 * MEBIBYTE,) * 2
        return found

    def memory_kills(self) -> int:
        return 0 if self.group is None else self.group.memory_kills()

    def diagnostics(self) -> str:
        assert self.process.stderr is not None
        fd = self.process.stderr.fileno()
        text = b""
        while len(text) < 4096 and select.select([fd], [], [], 0.1)[0] and (part := os.read(fd, 4096)):
            text += part
        return " ".join(text.decode("utf-8", "replace").split())[:500]

    def kill(self) -> None:
        if self.pidfd >= 0:
            # Process 1 of the namespace: everything inside ends with it.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            os.close(self.pidfd)
            self.pidfd = -1
        else:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(_LATER)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.group is not None:
            self.group.remove()
            self.group = None
