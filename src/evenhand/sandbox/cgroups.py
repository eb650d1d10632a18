"""Limits on everything in a sandbox together, where this process may make control groups (versions 1 and 2)."""

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

from msgspec import Struct, field

from evenhand.sandbox.port import SUPERVISOR_TASKS, ResourceLimits

_PERIOD = 100_000
_numbers = itertools.count(1)


class Hierarchy(Struct, frozen=True, kw_only=True):
    """The folders below which groups can be made, and which limits they hold."""

    version: int
    """1 or 2."""
    parents: dict[str, Path] = field(default_factory=dict)
    """Version 1: a folder for each of `memory`, `pids`, `cpu`; version 2: the same folder for each."""

    @property
    def holds(self) -> tuple[str, ...]:
        """Which of memory, pids and cpu are limited."""
        return tuple(sorted(self.parents))


def find_hierarchy() -> Hierarchy | None:
    """What this process may use; None when it may make no group."""
    own = _own_groups()
    mounts = _mounts()
    parents: dict[str, Path] = {}
    for controller in ("memory", "pids", "cpu"):
        if controller in mounts and controller in own:
            parent = mounts[controller] / own[controller].lstrip("/")
            if _usable(parent, _FILES[1][controller]):
                parents[controller] = parent
    if parents:
        return Hierarchy(version=1, parents=parents)
    if "unified" in mounts:
        parent = mounts["unified"] / own.get("", "/").lstrip("/")
        # Only a group without processes of its own can pass limits on to groups below it.
        for folder in (parent, parent.parent):
            held = [c for c in ("memory", "pids", "cpu") if _usable(folder, _FILES[2][c])]
            if held:
                return Hierarchy(version=2, parents=dict.fromkeys(held, folder))
    return None


_FILES = {
    1: {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.cfs_quota_us"},
    2: {"memory": "memory.max", "pids": "pids.max", "cpu": "cpu.max"},
}


def _own_groups() -> dict[str, str]:
    found = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _mounts() -> dict[str, Path]:
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ", 2)
            place = Path(before.split(" ")[4])
            if kind == "cgroup2":
                found.setdefault("unified", place)
            elif kind == "cgroup":
                for controller in options.split(" ")[-1].split(","):
                    found.setdefault(controller, place)
    return found


def _usable(parent: Path, file: str) -> bool:
    probe = parent / f"evenhand-{os.getpid()}-probe{next(_numbers)}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return os.access(probe / file, os.W_OK)
    finally:
        probe.rmdir()


def sweep(hierarchy: Hierarchy) -> None:
    """Remove the empty groups that a killed process of ours left behind."""
    for parent in set(hierarchy.parents.values()):
        for folder in parent.glob("evenhand-*-*"):
            owner = folder.name.split("-")[1]
            if owner.isdigit() and not Path("/proc", owner).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


class Group:
    """One control group, for one sandbox."""

    def __init__(self, hierarchy: Hierarchy, limits: ResourceLimits) -> None:
        self.version = hierarchy.version
        name = f"evenhand-{os.getpid()}-{next(_numbers)}"
        self.folders = {controller: parent / name for controller, parent in hierarchy.parents.items()}
        made: list[Path] = []
        try:
            for folder in dict.fromkeys(self.folders.values()):
                folder.mkdir()
                made.append(folder)
            self._limit(limits)
        except OSError:
            for folder in made:
                folder.rmdir()
            raise

    def _limit(self, limits: ResourceLimits) -> None:
        values = {
            "memory": str(limits.memory_bytes),
            "pids": str(limits.processes + SUPERVISOR_TASKS),
            "cpu": str(int(limits.cores * _PERIOD)) + (f" {_PERIOD}" if self.version == 2 else ""),
        }
        for controller, folder in self.folders.items():
            (folder / _FILES[self.version][controller]).write_text(values[controller])
        memory = self.folders.get("memory")
        if memory is not None:
            swap = "memory.memsw.limit_in_bytes" if self.version == 1 else "memory.swap.max"
            # A kernel without swap accounting has no such file.
            with contextlib.suppress(OSError):
                (memory / swap).write_text(values["memory"] if self.version == 1 else "0")

    def add(self, pid: int) -> None:
        """Put a process into the group; what it starts from then on is in it too."""
        for folder in dict.fromkeys(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def memory_kills(self) -> int:
        """How often the kernel killed in this group for memory."""
        folder = self.folders.get("memory")
        if folder is None:
            return 0
        file = folder / ("memory.oom_control" if self.version == 1 else "memory.events")
        with contextlib.suppress(OSError):
            for line in file.read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Kill what is left in the group and remove it."""
        for folder in dict.fromkeys(self.folders.values()):
            for wait in (0.0, 0.001, 0.004, 0.016, 0.064, 0.25, 0.5, 1.0, 2.0, 4.0):
                time.sleep(wait)
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    self._kill(folder)

    @staticmethod
    def _kill(folder: Path) -> None:
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
