"""The conformance kit: what any back end must do, measured by running programs in it.

`self_check(sandbox)` runs it and never raises for a check that fails; a back end of one's own is tested the same
way: ``assert all(finding.ok for finding in self_check(sandbox))``. Probes are bounded: a few hundred MB, some
dozens of processes, a few seconds.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from msgspec import Struct

from evenhand.core.errors import EvenhandError
from evenhand.sandbox import probes
from evenhand.sandbox.port import MEBIBYTE, Execution, Program, ResourceLimits, Sandbox

SMALL = ResourceLimits(
    wall_seconds=60.0,
    cpu_seconds=30,
    memory_bytes=128 * MEBIBYTE,
    processes=16,
    output_bytes=100_000,
    disk_bytes=8 * MEBIBYTE,
)
"""Tight limits, so that reaching them is quick and harmless."""
ROOMY = ResourceLimits(wall_seconds=60.0, cpu_seconds=60)
"""The limits of a warm sandbox, with time for a machine that is busy with other things."""


class Finding(Struct, frozen=True, kw_only=True):
    """What one check saw."""

    check: str
    """The check's name."""
    ok: bool
    """Whether the back end did what it must."""
    measured: str
    """What was seen, for people."""


class Check(NamedTuple):
    """One demand on a back end."""

    name: str
    quick: bool
    """Whether it belongs to the check before first use."""
    look: Callable[[Sandbox], tuple[bool, str]]


def self_check(sandbox: Sandbox, *, quick: bool = False) -> list[Finding]:
    """Every check's finding, in order."""
    return list(findings(sandbox, quick=quick))


def findings(sandbox: Sandbox, *, quick: bool = False) -> Iterator[Finding]:
    """The same one by one, for callers that show progress."""
    for check in CHECKS:
        if quick and not check.quick:
            continue
        try:
            ok, measured = check.look(sandbox)
        except EvenhandError as error:
            ok, measured = False, f"{type(error).__name__}: {error}"
        yield Finding(check=check.name, ok=ok, measured=measured)


def _run(sandbox: Sandbox, program: Program) -> Execution:
    # In a thread of its own: the caller's may have an event loop already.
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(lambda: asyncio.run(sandbox.run(program))).result()


def _program(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(
        sandbox,
        Program(source=probes.ECHO, stdin=b"in", files={"data/a.txt": b"file"}, limits=ROOMY),
    )
    ok = (found.ending, found.exit_code, found.stdout) == (
        "exited",
        7,
        b"in file\n",
    ) and b"err" in found.stderr
    return ok, f"exit status {found.exit_code}, {found.usage.wall_seconds * 1000:.0f} ms"


def _grading(sandbox: Sandbox) -> tuple[bool, str]:
    test = "assert add(1, 2) == 3"
    right = _run(sandbox, Program(source="def add(a, b): return a + b", test=test, limits=ROOMY)).grade
    wrong = _run(sandbox, Program(source="def add(a, b): return a - b", test=test, limits=ROOMY)).grade
    forged = _run(sandbox, Program(source=probes.FORGED, test=test, limits=ROOMY)).grade
    if right is None or wrong is None or forged is None:
        return False, "no grade"
    ok = right.passed and not wrong.passed and not forged.passed
    return ok, f"right {right.reason}, wrong {wrong.reason}, forged {forged.reason}"


def _confinement(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.CONFINEMENT, limits=ROOMY))
    try:
        seen = dict(json.loads(found.stdout))
    except (ValueError, TypeError):
        return False, f"the probe ended as {found.ending}: {found.stderr[-200:].decode('utf-8', 'replace')}"
    loose = {name: what for name, what in seen.items() if what != "held"}
    if loose:
        return False, "; ".join(f"{name}: {what}" for name, what in loose.items())
    return True, f"{len(seen)} of {len(seen)} held: {', '.join(seen)}"


def _memory(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.MEMORY, limits=SMALL))
    return found.ending == "memory_limit", (
        f"{found.ending} at {found.usage.memory_bytes / MEBIBYTE:.0f} MiB of {SMALL.memory_bytes // MEBIBYTE}"
    )


def _processes(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.PROCESSES, limits=SMALL))
    return _counted(found, most=SMALL.processes, unit=f"processes of {SMALL.processes}")


def _threads(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.THREADS, limits=SMALL))
    return _counted(found, most=SMALL.processes, unit=f"threads of {SMALL.processes}")


def _disk(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.DISK, limits=SMALL))
    return _counted(found, most=SMALL.disk_bytes // MEBIBYTE, unit=f"MiB of {SMALL.disk_bytes // MEBIBYTE}")


def _counted(found: Execution, *, most: int, unit: str) -> tuple[bool, str]:
    text = found.stdout.split()[-1:] or [b""]
    if not text[0].isdigit():
        return False, f"the probe ended as {found.ending} without a count"
    count = int(text[0])
    return 0 < count <= most, f"stopped at {count} {unit}"


def _sleep(sandbox: Sandbox) -> tuple[bool, str]:
    limits = ResourceLimits(wall_seconds=1.0)
    found = _run(sandbox, Program(source="import time\ntime.sleep(300)", limits=limits))
    # A busy machine may be late, but nowhere near the end that the program had in mind.
    seconds = found.usage.wall_seconds
    return found.ending == "timeout" and seconds < 60, f"{found.ending} after {seconds:.2f} s of 1"


def _processor(sandbox: Sandbox) -> tuple[bool, str]:
    limits = ResourceLimits(wall_seconds=120.0, cpu_seconds=1)
    found = _run(sandbox, Program(source="while True: pass", limits=limits))
    return found.ending == "cpu_limit", f"{found.ending} after {found.usage.cpu_seconds:.2f} s of 1"


def _output(sandbox: Sandbox) -> tuple[bool, str]:
    limits = ResourceLimits(output_bytes=50_000, wall_seconds=60.0, cpu_seconds=60)
    found = _run(sandbox, Program(source="while True: print('x' * 999)", limits=limits))
    size = len(found.stdout) + len(found.stderr)
    ok = found.ending == "output_limit" and found.truncated and size <= limits.output_bytes
    return ok, f"{found.ending}, {size} bytes kept of {limits.output_bytes}"


def _crash(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source="import os\nos.kill(os.getpid(), 11)", limits=ROOMY))
    return (found.ending, found.signal) == ("signaled", 11), f"{found.ending} {found.signal}"


def _leftovers(sandbox: Sandbox) -> tuple[bool, str]:
    _run(sandbox, Program(source=probes.LEAVE, limits=ROOMY))
    found = _run(sandbox, Program(source=probes.LOOK_FOR_LEFTOVERS, limits=ROOMY))
    return found.stdout.strip() == b"[]", f"the next program sees {found.stdout.decode().strip()}"


def _children(sandbox: Sandbox) -> tuple[bool, str]:
    found = _run(sandbox, Program(source=probes.STUBBORN_CHILD, limits=ResourceLimits(wall_seconds=30.0)))
    # A back end that waits for the child is still waiting when the time is up.
    return (
        found.ending == "exited",
        f"{found.ending} after {found.usage.wall_seconds:.2f} s with a child that would stay 60 s",
    )


CHECKS = (
    Check("program", True, _program),
    Check("grading", True, _grading),
    Check("confinement", True, _confinement),
    Check("time limit", False, _sleep),
    Check("processor limit", False, _processor),
    Check("memory limit", False, _memory),
    Check("process limit", False, _processes),
    Check("thread limit", False, _threads),
    Check("disk limit", False, _disk),
    Check("output limit", False, _output),
    Check("crash told apart", False, _crash),
    Check("stubborn children", False, _children),
    Check("no leftovers", False, _leftovers),
)
