"""The warm pool: one program per sandbox, bounded, nothing left behind, whatever happens to the process."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ab_suites import alive, wait_for

from evenhand.core.errors import SandboxUnavailable
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.cgroups import Group, Hierarchy, find_hierarchy, sweep
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program, ResourceLimits
from evenhand.sandbox.worker import SandboxBroken, Worker

ROOT = Path(__file__).resolve().parents[2]


async def test_programs_run_side_by_side_and_never_meet(bubblewrap: Pool) -> None:
    source = (
        "import os, sys\nopen('/tmp/mine', 'x').close()\nprint(sys.stdin.read(), len(os.listdir('/tmp')))"
    )
    programs = [Program(source=source, stdin=str(n).encode()) for n in range(24)]
    found = await asyncio.gather(*(bubblewrap.run(program) for program in programs))
    assert [e.stdout.split() for e in found] == [[str(n).encode(), b"2"] for n in range(24)]


def test_it_works_from_several_threads_and_event_loops(bubblewrap: Pool) -> None:
    for n in range(3):
        execution = asyncio.run(bubblewrap.run(Program(source=f"print({n})")))
        assert execution.stdout == b"%d\n" % n


def processes_below(parent: int) -> list[int]:
    """Every descendant of a process."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, queue = [], [parent]
    while queue:
        above = queue.pop()
        below = [pid for pid, owner in parents.items() if owner == above]
        found += below
        queue += below
    return found


def named(pids: list[int], name: str) -> list[int]:
    """Those of the processes that gave themselves this name."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path("/proc", str(pid), "comm").read_text().strip() == name:
                found.append(pid)
    return found


CLOSER = """
import os
from tests.sandbox.test_pool import processes_below
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program
backend = Bubblewrap()
with Pool(backend) as pool:
    pool.prepare()
    assert len(processes_below(os.getpid())) >= pool.warm
    assert pool.execute(Program(source="print(1)")).stdout
groups = backend.hierarchy.parents.values() if backend.hierarchy else []
print(processes_below(os.getpid()), [f for g in groups for f in g.glob(f"evenhand-{os.getpid()}-*")])
"""


def test_closing_leaves_no_process_and_no_control_group(bubblewrap: Pool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOSER], capture_output=True, text=True, cwd=ROOT, timeout=200
    )
    assert done.stdout == "[] []\n", done


OWNER = """
import threading, time
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program, ResourceLimits
pool = Pool(Bubblewrap())
pool.prepare()
program = "import time; open('/proc/self/comm', 'w').write('endless'); time.sleep(600)"
threading.Thread(target=pool.execute, args=(Program(source=program, limits=ResourceLimits(wall_seconds=600)),), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


def groups_of(hierarchy: Hierarchy, owner: int) -> list[Path]:
    """The control groups of a process that are there after a sweep."""
    sweep(hierarchy)
    return [folder for parent in hierarchy.parents.values() for folder in parent.glob(f"evenhand-{owner}-*")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_process_is_killed(bubblewrap: Pool, number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # The program is running, and so are the sandboxes that wait for one.
        wait_for(lambda: named(processes_below(process.pid), "endless") != [])
        below = processes_below(process.pid)
        assert len(below) >= 4
    finally:
        process.send_signal(number)
        process.communicate()
    wait_for(lambda: not any(alive(pid) for pid in below))
    hierarchy = find_hierarchy()
    if hierarchy is not None:
        wait_for(lambda: groups_of(hierarchy, process.pid) == [])


class Broken:
    """A back end that can start nothing."""

    name = "broken"
    starts = 0

    def start(self, limits: ResourceLimits) -> Worker:
        self.starts += 1
        raise SandboxUnavailable("no such thing here")

    def close(self) -> None:
        return


def test_a_back_end_that_cannot_start_says_so_to_everyone_who_waits() -> None:
    backend = Broken()
    with Pool(backend, parallel=2) as pool:
        for _ in range(3):
            with pytest.raises(SandboxUnavailable, match="no such thing"):
                pool.execute(Program(source="1"))
    # Two threads fill the pool; each may start one sandbox at first, and one whenever a failure was taken.
    assert backend.starts <= 2 + 3 * 2


class Dying:
    """A back end whose warm sandboxes die while they wait, as they do when a machine is short of memory."""

    name = "dying"

    def __init__(self) -> None:
        self.inner = Bubblewrap()
        self.killed = 0

    def start(self, limits: ResourceLimits) -> Worker:
        worker = self.inner.start(limits)
        if self.killed < 2:
            self.killed += 1
            signal.pidfd_send_signal(worker.pidfd, signal.SIGKILL)
            worker.process.wait()
        return worker

    def close(self) -> None:
        self.inner.close()


def test_a_sandbox_that_died_while_it_waited_is_replaced(bubblewrap: Pool) -> None:
    backend = Dying()
    with Pool(backend, parallel=1, warm=1) as pool:
        assert pool.execute(Program(source="print(1)")).stdout == b"1\n"
    assert backend.killed == 2


def test_a_closed_pool_refuses() -> None:
    pool = Pool(Broken())
    pool.close()
    pool.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        pool.execute(Program(source="1"))


def test_a_bad_file_name_is_refused(bubblewrap: Pool) -> None:
    for name in ("/etc/x", "../x", "a/../../x"):
        with pytest.raises(ValueError, match="not a name inside"):
            bubblewrap.execute(Program(source="1", files={name: b""}))


def test_groups_of_the_second_version_get_their_files(tmp_path: Path) -> None:
    hierarchy = Hierarchy(version=2, parents=dict.fromkeys(("memory", "pids", "cpu"), tmp_path))
    group = Group(hierarchy, ResourceLimits(memory_bytes=1000, processes=6, cores=0.5))
    folder = group.folders["memory"]
    assert (folder / "memory.max").read_text() == "1000"
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "10"
    assert (folder / "cpu.max").read_text() == "50000 100000"
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert group.memory_kills() == 2


def test_a_broken_sandbox_is_an_error_of_the_sandbox() -> None:
    assert SandboxBroken("x").kind == "sandbox_error"
